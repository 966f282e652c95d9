"""Text of any characters. PostgreSQL takes every one but NUL, which is kept as one that stands for it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Dialect, String, Text, TypeDecorator

NUL, STAND_IN = "\0", "\uffff"  # Unicode promises never to make the second a character


class Spelled(TypeDecorator[str]):
    """VARCHAR, in which a name comes back as it was. Documents need none of it: JSON spells NUL out."""

    impl = String
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        return _stored if dialect.name == "postgresql" else None

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:  # noqa: ARG002
        return _read if dialect.name == "postgresql" else None


class SpelledText(Spelled):
    """TEXT, likewise."""

    impl = Text
    cache_ok = True


def _stored(text: str | None) -> str | None:
    return text if text is None else text.replace(NUL, STAND_IN)


def _read(text: str | None) -> str | None:
    return text if text is None else text.replace(STAND_IN, NUL)
