"""oomwatch: warns before a GPU or host runs out of memory, and says what to change."""

__version__ = "0.1.0"
