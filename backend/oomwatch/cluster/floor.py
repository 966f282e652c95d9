"""PURE: for which homes this replica speaks. It has the floor of one that came to it once it has read what was said."""

from collections.abc import Callable, Iterable

HANDOVER_SECONDS = 1.0  # what the last speaker had judged is stored by then


class Floor:
    """Homes are nodes, and ownership.LEADER. Times are of a clock that nobody sets."""

    def __init__(self) -> None:
        self._waiting: dict[str, float] = {}
        self._ready: dict[str, None] = {}

    def review(self, homes: Iterable[str], is_ours: Callable[[str], bool], now: float) -> None:
        """Note which came to us, and which went."""
        known = dict.fromkeys(homes)
        for home in known:
            if not is_ours(home):
                self._waiting.pop(home, None)
                self._ready.pop(home, None)
            elif home not in self._ready:
                self._waiting.setdefault(home, now)
        self._ready = {home: None for home in self._ready if home in known}
        self._waiting = {home: at for home, at in self._waiting.items() if home in known}

    def due(self, now: float, *, waited_seconds: float = HANDOVER_SECONDS) -> list[str]:
        """Those that have waited, and are to be read of."""
        return [home for home, at in self._waiting.items() if now - at >= waited_seconds]

    def take(self, homes: Iterable[str]) -> list[str]:
        """They were read of. Gives those that are ours still."""
        ours = [home for home in homes if home in self._waiting]
        for home in ours:
            del self._waiting[home]
            self._ready[home] = None
        return ours

    def yield_all(self) -> None:
        """We stood still: others may have spoken meanwhile."""
        self._ready.clear()
        self._waiting.clear()

    @property
    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, home: object) -> bool:
        return home in self._ready

    def __len__(self) -> int:
        return len(self._ready)
