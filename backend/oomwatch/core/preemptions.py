"""How often each rollout engine of a node put requests back for want of KV cache, lately."""

from collections.abc import Iterable
from typing import NamedTuple

from oomwatch import wire

LATELY_SECONDS = 60.0  # an engine's page is read every ten seconds
GONE_SECONDS = 3600.0


class _Engine(NamedTuple):
    total: int
    at: float  # when it was read
    risen: int  # by how much, the last time that it rose
    risen_at: float


class Preemptions:
    """The counters of a node's engines, by the address of their page."""

    def __init__(self) -> None:
        self._engines: dict[str, _Engine] = {}

    def observe(self, engines: Iterable[wire.EngineSample], at: float) -> None:
        for engine in engines:
            if engine.preemptions_total is not None:
                self._observe(engine.address, engine.preemptions_total, at)

    def _observe(self, address: str, total: int, at: float) -> None:
        known = self._engines.get(address)
        if known is None or total < known.total:  # new, or started again: its counter began at zero
            self._engines[address] = _Engine(total, at, 0, float("-inf"))
        elif total > known.total:
            self._engines[address] = _Engine(total, at, total - known.total, at)
        else:
            self._engines[address] = known._replace(at=at)
        self._engines = {key: one for key, one in self._engines.items() if at - one.at <= GONE_SECONDS}

    def lately(self, address: str, now: float) -> int:
        """How many requests an engine put back the last time it did so, if that was lately; else 0."""
        engine = self._engines.get(address)
        return engine.risen if engine is not None and now - engine.risen_at <= LATELY_SECONDS else 0

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._engines = {
            key: one._replace(at=one.at + seconds, risen_at=one.risen_at + seconds)
            for key, one in self._engines.items()
        }
