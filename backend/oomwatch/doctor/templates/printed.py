"""A template as a file to begin with: YAML for verl's trainer, overrides, or a launch script."""

from collections.abc import Iterator, Sequence
from typing import Literal

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.doctor.show.layout import wrapped
from oomwatch.doctor.templates.template import Line, Template, plain

Format = Literal["yaml", "overrides", "script"]

_YAML_HEAD = """\
hydra:
  searchpath: [pkg://verl.trainer.config]

defaults:
  - ppo_trainer
  - _self_
"""


def printed(template: Template, version: str, form: Format, language: wire.Language) -> str:
    """The whole text, with what the article claims and what is estimated."""
    lines = template.lines(version)
    if form == "overrides":
        return "\n".join(line.override for line in lines)
    head = list(about(template, version, language))
    if form == "script":
        return "\n".join(["#!/usr/bin/env bash", *head, "set -euo pipefail", *_script(lines)])
    return "\n".join([*head, _YAML_HEAD, *_yaml(lines, language)])


def about(template: Template, version: str, language: wire.Language) -> Iterator[str]:
    """Comments: for whom it is, what is reported of it, what is estimated, and what of the article it leaves out."""
    report = template.report(version, language)
    article = say(f"doctor.text.template.article.{template.article}", language)
    claim = template.claim.said(language)
    sentences = [
        f"{template.name}: {template.title.said(language)}",
        say(
            "doctor.text.template.for",
            language,
            version=version,
            model=report.model.name if report.model else "",
            gpus=report.derived["gpus"],
            card=template.card,
        ),
        say("doctor.text.template.claim", language, article=article, claim=claim),
        say("doctor.text.template.estimate", language, headline=report.headline),
        *(
            say("doctor.text.template.left_out", language, said=one.said, why=one.why(language))
            for one in template.left_out
        ),
        say("doctor.text.template.files", language),
    ]
    for sentence in sentences:
        yield from wrapped(sentence, "# ", "#   ")


def _script(lines: Sequence[Line]) -> Iterator[str]:
    yield "python3 -m verl.trainer.main_ppo \\"
    for line in lines:
        text = f"'{line.override}'" if isinstance(line.value, list) else line.override
        yield f"    {text} \\"
    yield '    "$@"'


def _yaml(lines: Sequence[Line], language: wire.Language) -> Iterator[str]:
    """Nested mappings; each section is opened where its first setting comes."""
    open_sections: list[str] = []
    for line in sorted(lines, key=lambda one: _place(one, lines)):
        *sections, name = line.key.split(".")
        common = _common(open_sections, sections)
        for depth in range(common, len(sections)):
            yield f"{'  ' * depth}{sections[depth]}:"
        open_sections = sections
        value = f"[{', '.join(line.value)}]" if isinstance(line.value, list) else plain(line.value)
        comment = line.comment(language)
        yield f"{'  ' * len(sections)}{name}: {value}" + (f"  # {comment}" if comment else "")


def _place(line: Line, lines: Sequence[Line]) -> list[int]:
    """Where each of its sections, and it itself, comes first: so that sections are whole, in the template's order."""
    parts = line.key.split(".")
    starts = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return [
        next(at for at, other in enumerate(lines) if other.key == start or other.key.startswith(f"{start}."))
        for start in starts
    ]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many sections both are in."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
    )
