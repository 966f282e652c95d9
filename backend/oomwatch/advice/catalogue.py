"""The catalogue of remedies, read once from the package's own file."""

import functools
import importlib.resources
from typing import Literal

import msgspec
from msgspec import Struct

from oomwatch import wire
from oomwatch.yamlread import shipped

Argument = bool | int | float | str


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    en: str
    zh: str

    def by_language(self) -> dict[str, str]:
        return {"en": self.en, "zh": self.zh}


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    level: Literal[1, 2, 3, 4]
    en: str
    zh: str

    def by_language(self) -> dict[str, str]:
        return {"en": self.en, "zh": self.zh}


class Entry(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"with_": "with"}):
    """One remedy as remedies.yaml has it; that file explains the fields."""

    remedy: wire.Name
    causes: dict[str, float]
    text: Words
    once_failed: Words | None = None
    price: Price
    source: str
    keys: tuple[str, ...] = ()
    change: str | None = None
    with_: dict[str, Argument] = {}
    when: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    strength: float = 0.6
    limits_damage: bool = False


@functools.cache
def entries() -> tuple[Entry, ...]:
    """All remedies, in the order of the file."""
    return msgspec.convert(_load("remedies.yaml"), tuple[Entry, ...])


def _load(name: str) -> object:
    return shipped(importlib.resources.files("oomwatch.advice").joinpath(name).read_text(encoding="utf-8"))
