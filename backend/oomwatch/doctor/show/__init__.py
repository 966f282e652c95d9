"""A report as text for a terminal of a hundred columns, or of fewer."""

from oomwatch.doctor.show.page import page_of

__all__ = ["page_of"]
