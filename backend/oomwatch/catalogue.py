"""Sentences for people, in English and Simplified Chinese, from the one catalogue that the page uses as well."""

import functools
import importlib.resources
import re
from collections.abc import Mapping

import msgspec

from oomwatch import wire

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


# English nouns (and a verb) that follow a number, and what they are after 1. frontend's i18n.js has the same.
AFTER_ONE = {
    "are": "is",
    **{
        f"{noun}s": noun
        for noun in (
            *("GPU", "acknowledgement", "alert", "attempt", "block", "card", "channel", "condition", "cycle", "host"),
            *("line", "log", "message", "minute", "mistake", "node", "prompt", "rank", "request", "rule", "run"),
            *("sample", "second", "sequence", "silence", "step", "time", "token"),
        )
    },
    "processes": "process",
    "switches": "switch",
}
_COUNTED = re.compile(rf"\{{(\w+)\}}( [a-z]+)? ({'|'.join(AFTER_ONE)})\b")


def agreed(sentence: str, values: Mapping[str, object], language: wire.Language) -> str:
    """A sentence with {placeholders} whose nouns agree with the numbers before them: "{steps} step" where it is 1."""
    if language != "en":
        return sentence

    def agree(match: re.Match[str]) -> str:
        if str(values.get(match[1])) != "1":
            return match[0]
        return f"{{{match[1]}}}{match[2] or ''} {AFTER_ONE[match[3]]}"

    return _COUNTED.sub(agree, sentence)


def say(key: str, language: wire.Language, /, **values: object) -> str:
    """The sentence of a key with its {placeholders} filled. Raises KeyError for an unknown key or a missing value.

    Every key and value that the code uses is tested, so that this is never seen by a user. Placeholders are replaced
    once and without format specifications: a value that itself contains braces stays as it is.
    """
    sentence = agreed(entries()[key][language], values, language)
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), sentence)


def placeholders(sentence: str) -> frozenset[str]:
    return frozenset(_PLACEHOLDER.findall(sentence))


@functools.cache
def entries() -> Mapping[str, Mapping[str, str]]:
    """The whole catalogue: key -> language -> sentence."""
    content = importlib.resources.files("oomwatch_frontend").joinpath("catalogue.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, dict[str, str]])
