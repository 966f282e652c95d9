"""Sentences for people, in English and Simplified Chinese, from the one catalogue that the page uses as well."""

import functools
import importlib.resources
import re
from collections.abc import Mapping

import msgspec

from oomwatch import wire

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


def say(key: str, language: wire.Language, /, **values: object) -> str:
    """The sentence of a key with its {placeholders} filled. Raises KeyError for an unknown key or a missing value.

    Every key and value that the code uses is tested, so that this is never seen by a user. Placeholders are replaced
    once and without format specifications: a value that itself contains braces stays as it is.
    """
    return _PLACEHOLDER.sub(lambda match: str(values[match[1]]), entries()[key][language])


def placeholders(sentence: str) -> frozenset[str]:
    return frozenset(_PLACEHOLDER.findall(sentence))


@functools.cache
def entries() -> Mapping[str, Mapping[str, str]]:
    """The whole catalogue: key -> language -> sentence."""
    content = importlib.resources.files("oomwatch_frontend").joinpath("catalogue.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, dict[str, str]])
