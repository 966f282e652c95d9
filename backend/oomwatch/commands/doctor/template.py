"""`oomwatch template`: configurations to begin with."""

import argparse

from oomwatch.doctor.templates.printed import printed
from oomwatch.doctor.templates.template import Template, template_named, templates, versions
from oomwatch.options import SettingError


def run(options: argparse.Namespace) -> int:
    """Print a template, or list them. Gives the exit status."""
    version = _version(options.verl)
    if options.name is None:
        for template in templates():
            print(_row(template, version, options))
        return 0
    found = template_named(options.name)
    if found is None:
        known = ", ".join(template.name for template in templates())
        raise SettingError(f'there is no template "{options.name}"; there are {known}')
    print(printed(found, version, options.format, options.language))
    return 0


def _version(told: str | None) -> str:
    """The told release, else the newest. Raises SettingError for one that no template is for."""
    known = versions()
    if told is None:
        return known[-1]
    minor = ".".join(told.split(".")[:2])
    if minor not in known:
        raise SettingError(f'flag --verl: there is no template for verl "{told}"; there are for {", ".join(known)}')
    return told


def _row(template: Template, version: str, options: argparse.Namespace) -> str:
    headline = template.report(version, options.language).headline
    return f"{template.name}  {template.title.said(options.language)}\n    {headline}"
