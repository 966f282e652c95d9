"""How soon a memory could be full, and so when to look at it again. PURE: times are arguments, by a steady clock.

The law is earlyoom's: the time to the next look is the room that is left, divided by the rate at which it fills. The
rate is assumed there; here it is the worst seen lately, which fades: a card that stands full and still is looked at no
more often than an empty one, and one that each training step fills and leaves is watched closely for some steps.
"""

from typing import NamedTuple

LOOKS_BEFORE_FULL = 4  # at the worst rate: two may be late, and one still finds room
HALF_LIFE_SECONDS = 60.0  # of the worst rate: about a step of training, in which it comes again
SHORTEST_SECONDS = 0.05  # between two sights that make a rate: what is closer makes a page a flood

# Share of a memory: where so much more is in use than was told last, the next reading cannot wait. 4 GiB of 80: an
# engine that wakes up, a very long batch. A trainer's memory makes such a step a few times in each training step.
STEEP_RATIO = 0.05
# Near the limit less is news, but only what is higher than all of the last minute: as a share of the room left by that,
# and of the whole, so that the last MiB of a full card do not become one.
NEAR_ROOM_RATIO = 0.25
NEAR_WHOLE_RATIO = 1 / 256
HEIGHT_SECONDS = 60.0
NEVER = float("inf")


class Peak(NamedTuple):
    """More was in use, between two samples, than in either."""

    used_bytes: int
    at: float


class Nearing:
    """One memory as it is seen: at samples, whose figures are told, and at looks between them."""

    __slots__ = (
        "_height",
        "_hurried_bytes",
        "_peak",
        "_room_bytes",
        "_seen_at",
        "_told_bytes",
        "_worst_at",
        "used_bytes",
        "worst",
    )

    def __init__(self) -> None:
        self.used_bytes = 0  # as it was seen last
        self._room_bytes = 0
        self.worst = 0.0  # the worst rate at which it filled, as it was then, in bytes a second
        self._worst_at = 0.0
        self._seen_at: float | None = None
        self._told_bytes: int | None = None
        self._hurried_bytes = 0  # since then: a sample that comes without this memory is not hurried again and again
        self._height = Peak(0, -NEVER)  # the highest of the last minute that was told
        self._peak: Peak | None = None  # the highest look since the last sample

    def look(self, used_bytes: int, usable_bytes: int, at: float) -> bool:
        """A look saw this much in use. True: the next sample should not wait for its time."""
        if used_bytes == self.used_bytes and self._seen_at is not None:  # of most looks
            self._seen_at = at
            return False
        self._see(used_bytes, usable_bytes, at)
        if self._peak is None or used_bytes > self._peak.used_bytes:
            self._peak = Peak(used_bytes, at)
        if not self._is_news(used_bytes, usable_bytes):
            return False
        self._hurried_bytes = used_bytes
        return True

    def stood_still(self, at: float) -> None:
        """Looks saw no change until then."""
        if self._seen_at is not None and self._seen_at < at:
            self._seen_at = at

    def tell(self, used_bytes: int, usable_bytes: int, at: float) -> Peak | None:
        """A sample tells this much; gives what was seen since the last one that is more than both tell."""
        self._see(used_bytes, usable_bytes, at)
        peak, self._peak = self._peak, None
        told, self._told_bytes, self._hurried_bytes = self._told_bytes, used_bytes, 0
        if used_bytes >= self._height.used_bytes or at - self._height.at > HEIGHT_SECONDS:
            self._height = Peak(used_bytes, at)
        return peak if peak and peak.used_bytes > max(used_bytes, told or 0) else None

    def seconds_between_looks(self, at: float) -> float:
        """What the law says, without bounds: infinite where nothing has filled lately, 0 where there is no room."""
        rate = self._faded(at)
        if rate <= 0:
            return NEVER
        return max(0, self._room_bytes) / rate / LOOKS_BEFORE_FULL

    def _see(self, used_bytes: int, usable_bytes: int, at: float) -> None:
        if self._seen_at is not None and used_bytes > self.used_bytes:
            rate = (used_bytes - self.used_bytes) / max(at - self._seen_at, SHORTEST_SECONDS)
            if rate > self._faded(at):
                self.worst, self._worst_at = rate, at
        self.used_bytes, self._room_bytes, self._seen_at = used_bytes, usable_bytes - used_bytes, at

    def _faded(self, at: float) -> float:
        """The worst rate, as far as it still counts."""
        if self.worst <= 0:
            return 0.0
        return float(self.worst * 0.5 ** ((at - self._worst_at) / HALF_LIFE_SECONDS))

    def _is_news(self, used_bytes: int, usable_bytes: int) -> bool:
        if self._told_bytes is None:
            return False
        rise = used_bytes - max(self._told_bytes, self._hurried_bytes)
        if rise <= 0 or rise >= STEEP_RATIO * usable_bytes:
            return rise > 0
        height = max(self._height.used_bytes, self._hurried_bytes)
        near = max(NEAR_ROOM_RATIO * (usable_bytes - height), NEAR_WHOLE_RATIO * usable_bytes)
        return used_bytes - height >= near


def bounded(seconds: float, fastest_seconds: float, slowest_seconds: float) -> float:
    """The law's answer, held between the two paces that are allowed."""
    return min(max(seconds, fastest_seconds), max(slowest_seconds, fastest_seconds))
