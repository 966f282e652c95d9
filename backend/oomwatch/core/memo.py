"""What a condition worked out, until there is something new to work out: open alerts are judged every second."""

from collections.abc import Callable, Hashable
from typing import TypeVar

T = TypeVar("T")


class Memo:
    """One result a key: the latest. It belongs to a record, and goes with it."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[object, object]] = {}

    def once(self, key: Hashable, stamp: object, compute: Callable[[], T]) -> T:
        """The result of `compute`, worked out anew only where `stamp` is another than the last time."""
        known = self._known.get(key)
        if known is not None and known[0] == stamp:
            return known[1]  # type: ignore[return-value]
        result = compute()
        self._known[key] = (stamp, result)
        return result

    def last(self, key: Hashable) -> object | None:
        """The result that was worked out last; while a new one is worked out, the one before it."""
        known = self._known.get(key)
        return known[1] if known is not None else None
