"""What a condition worked out, until there is something new to work out: open alerts are judged every second.

Conditions judge by what they found before, so what is kept decides about alerts. Therefore only the judge has it kept
(`with fleet.keeping:`). Whoever else asks a condition, a page or a scrape, is told what it would say and leaves no
trace: alerts depend on the messages and the times alone, and never on who looked.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Keeping:
    """Whether what is worked out is kept. One for all memos of a fleet."""

    __slots__ = ("_seen", "on")

    def __init__(self) -> None:
        self.on = False
        self._seen: dict[tuple[Memo, Hashable], tuple[object, object]] | None = None

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False

    @contextmanager
    def looking(self) -> Iterator[None]:
        """For who asks about many subjects: what these share is worked out once, and forgotten at the end."""
        self._seen = {}
        try:
            yield
        finally:
            self._seen = None

    def only_seen(self, memo: "Memo", key: Hashable, stamp: object, compute: Callable[[], T]) -> T:
        """What `Memo.once` gives to all but the judge."""
        if self._seen is None:
            return compute()
        known = self._seen.get((memo, key))
        if known is None or known[0] != stamp:
            known = self._seen[memo, key] = (stamp, compute())
        return known[1]  # type: ignore[return-value]


class Memo:
    """One result a key: the latest. It belongs to a record, and goes with it."""

    __slots__ = ("_keeping", "_known")

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping
        self._known: dict[Hashable, tuple[object, object]] = {}

    def once(self, key: Hashable, stamp: object, compute: Callable[[], T]) -> T:
        """The result of `compute`, worked out anew only where `stamp` is another than the last time."""
        known = self._known.get(key)
        if known is not None and known[0] == stamp:
            return known[1]  # type: ignore[return-value]
        if not self._keeping.on:
            return self._keeping.only_seen(self, key, stamp, compute)
        result = compute()
        self._known[key] = (stamp, result)
        return result

    def last(self, key: Hashable) -> object | None:
        """The result that was kept last; while a new one is worked out, the one before it."""
        known = self._known.get(key)
        return known[1] if known is not None else None
