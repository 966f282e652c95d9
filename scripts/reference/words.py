"""What the code says in English, in the language of a page: the Chinese sentences are those of chinese.yaml."""

import functools
from collections.abc import Iterable
from pathlib import Path

import yaml

from oomwatch import wire

TABLE = Path(__file__).with_name("chinese.yaml")


@functools.cache
def chinese() -> dict[str, str]:
    """English sentence -> Chinese sentence."""
    told: dict[str, str] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return told


class Words:
    """Says sentences in one language, and knows afterwards which it was asked for."""

    def __init__(self, language: wire.Language) -> None:
        self.language = language
        self.asked: dict[str, None] = {}

    def __call__(self, english: str, /, **values: str) -> str:
        """The sentence, its {placeholders} filled. One without a translation stays English."""
        sentence = " ".join(english.split())
        if sentence:
            self.asked[sentence] = None
        told = english if self.language == "en" else chinese().get(sentence, sentence)
        for name, value in values.items():
            told = told.replace(f"{{{name}}}", value)
        return told

    def listed(self, parts: Iterable[str]) -> str:
        """The parts with what stands between them in the language."""
        return ("、" if self.language == "zh" else ", ").join(parts)

    def any_of(self, parts: Iterable[str]) -> str:
        """The parts, of which one is meant."""
        return f" {self('or')} ".join(parts)

    def missing(self) -> list[str]:
        """What was asked for and has no translation."""
        return [sentence for sentence in self.asked if sentence not in chinese()]
