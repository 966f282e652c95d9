"""Templates: the scenarios of two articles as configurations of verl, with what is estimated for them."""

from oomwatch.doctor.templates.template import Template, template_named, templates, versions

__all__ = ["Template", "template_named", "templates", "versions"]
