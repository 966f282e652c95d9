"""The templates, read once from the package's own file, and what they are for a release of verl."""

import functools
import importlib.resources
from typing import Literal

import msgspec
from msgspec import Struct

from oomwatch import wire
from oomwatch.doctor.read import Reading, read
from oomwatch.doctor.report import Given, Report, make_report
from oomwatch.plan import verlkeys
from oomwatch.plan.cards import card_named
from oomwatch.yamlread import shipped

OLDEST = "0.4"  # verl before it is not read
Plain = bool | int | float | str


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    en: str
    zh: str

    def said(self, language: wire.Language) -> str:
        return self.zh if language == "zh" else self.en


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """A setting, with what of the article it stands for."""

    key: str
    value: Plain | list[str]
    since: str = OLDEST
    en: str = ""
    zh: str = ""

    def comment(self, language: wire.Language) -> str:
        return self.zh if language == "zh" else self.en

    @property
    def override(self) -> str:
        """As Hydra takes it."""
        value = self.value
        return f"{self.key}=[{','.join(value)}]" if isinstance(value, list) else f"{self.key}={plain(value)}"


class LeftOut(Struct, frozen=True, forbid_unknown_fields=True):
    said: str
    en: str
    zh: str

    def why(self, language: wire.Language) -> str:
        return self.zh if language == "zh" else self.en


class Template(Struct, frozen=True, forbid_unknown_fields=True, rename={"name": "template"}):
    """One scenario."""

    name: str
    title: Words
    article: Literal[1, 2]
    card: str
    claim: Words
    settings: tuple[Line, ...]
    left_out: tuple[LeftOut, ...]

    def lines(self, version: str) -> tuple[Line, ...]:
        """The settings for a release, "0.9" or "0.9.1"."""
        return tuple(line for line in self.settings if _numbers(line.since) <= _numbers(version))

    def report(self, version: str, language: wire.Language) -> Report:
        """What the doctor says of it, on the card that it is for."""
        return make_report(self.reading(version), Given(card=card_named(self.card)), language)

    def reading(self, version: str) -> Reading:
        return read([], [line.override for line in self.lines(version)], version)


def plain(value: Plain) -> str:
    """A value as YAML and Hydra have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@functools.cache
def templates() -> tuple[Template, ...]:
    """All of them, in the order of the file."""
    text = importlib.resources.files("oomwatch.doctor.templates").joinpath("templates.yaml").read_text(encoding="utf-8")
    return msgspec.convert(shipped(text), tuple[Template, ...])


def template_named(name: str) -> Template | None:
    """In any case of letters."""
    return next((one for one in templates() if one.name.lower() == name.strip().lower()), None)


def versions() -> tuple[str, ...]:
    """The releases that there are templates for, the oldest first: "0.4" to "0.9"."""
    return tuple(one for one in verlkeys.minors() if _numbers(one) >= _numbers(OLDEST))


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")[:2]]
