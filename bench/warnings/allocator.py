"""torch's caching allocator on one GPU: what it reserves for what is allocated, and when it gives up."""

from typing import NamedTuple


class Level(NamedTuple):
    """What one GPU holds from a moment of a phase on. `at` is the share of the phase that has passed. Bytes."""

    at: float
    used: float  # of the device, all processes
    allocated: float  # by torch in the trainer
    reserved: float


class Full(Exception):  # noqa: N818 - no defect: the card is full
    """Not even with its cache given back does the allocator get what it is asked for."""

    def __init__(self, at: float, tried_bytes: float, before: list[Level]) -> None:
        super().__init__(f"{tried_bytes:.0f} bytes do not fit")
        self.at = at
        self.tried_bytes = tried_bytes
        self.before = before


class Allocator:
    """Reserved memory only grows, until the program empties the cache or the device is full."""

    def __init__(self, usable_bytes: float, slack: float) -> None:
        self._usable_bytes = usable_bytes
        self._slack = slack
        self._reserved = 0.0
        self.retries_total = 0
        self.reserved_peak = 0.0
        self.allocated_peak = 0.0

    def restart(self) -> None:
        self._reserved, self.retries_total = 0.0, 0
        self.reserved_peak = self.allocated_peak = 0.0

    def empty(self) -> None:
        """What torch.cuda.empty_cache() does."""
        self._reserved = 0.0

    def hold(
        self, base: float, extras: list[float], stuck: float, others: float, *, flush: bool = False
    ) -> list[Level]:
        """One phase: `base` is allocated all along, and each of `extras` in turn. Raises Full.

        `stuck` is reserved and of no use; `others` is what the device's other memory takes meanwhile.
        """
        levels: list[Level] = []
        share = 1 / max(1, len(extras))
        if flush:
            self.retries_total += 1
        for place, extra in enumerate(extras or [0.0]):
            grown = self._grow(base + extra, stuck, others, place * share, levels)
            if grown or not levels:
                levels.append(Level(place * share, others + self._reserved, base + extra, self._reserved))
        self.reserved_peak = max(self.reserved_peak, self._reserved)
        self.allocated_peak = max(self.allocated_peak, base + max(extras, default=0.0))
        return levels

    def _grow(self, allocated: float, stuck: float, others: float, at: float, before: list[Level]) -> bool:
        """Reserve for so much; whether more had to be reserved."""
        wanted = allocated * (1 + self._slack) + stuck
        room = self._usable_bytes - others
        if max(wanted, self._reserved) <= room:
            grown = wanted > self._reserved
            self._reserved = max(wanted, self._reserved)
            return grown
        if allocated + stuck > room:
            raise Full(at, max(allocated + stuck - self._reserved, 2.0**21), before)
        self.retries_total += 1
        self._reserved = min(room, wanted)
        return True
