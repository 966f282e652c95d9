"""PURE: which replicas are alive, as the database and NATS tell. Times are seconds of a clock that nobody sets."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

DEAD_SECONDS = 6.0  # three beats in the database, six over NATS
CLOCK_OFF_SECONDS = 2.0  # as for the agents' clocks: less is delay
FORGOTTEN_SECONDS = 600.0
NEVER = float("-inf")
CLAIM_COUNTS_SECONDS = 3.0  # who says that it leads is believed for so long


class Pulsed(NamedTuple):
    """What a replica says of itself. Unix seconds, on its clock."""

    started_at: float
    off_seconds: float  # its clock against ours
    leads: float | None = None
    ails: bool = False


class Members:
    """`me` is always alive to itself. While neither the database nor NATS can be asked, nobody dies."""

    def __init__(self, me: str) -> None:
        self.me = me
        self._seen_at: dict[str, float] = {}
        self._pulses: dict[str, tuple[Pulsed, float]] = {}
        self._gone_at: dict[str, float] = {}
        self._blind_since: float | None = None

    def pulse(self, replica: str, pulsed: Pulsed, now: float) -> bool:
        """It says this of itself now. True: it is new, or was dead."""
        before = self._pulses.get(replica)
        self._pulses[replica] = pulsed, now
        has_restarted = before is not None and before[0].started_at != pulsed.started_at
        return self._saw(replica, now, now) or has_restarted

    def stored(self, seconds_ago: Mapping[str, float], now: float) -> list[str]:
        """What the table of members says; gives those that are new."""
        is_new = [name for name, ago in seconds_ago.items() if ago <= DEAD_SECONDS and self._saw(name, now - ago, now)]
        return [name for name in is_new if name != self.me]

    def _saw(self, replica: str, at: float, now: float) -> bool:
        if max(self._seen_at.get(replica, NEVER), self._gone_at.get(replica, NEVER)) >= at:
            return False
        is_new = replica not in self.alive(now)
        self._seen_at[replica] = at
        return is_new

    def gone(self, replica: str, now: float) -> None:
        """It has said goodbye; what the database tells of it is of before."""
        self._gone_at[replica] = now
        self._seen_at.pop(replica, None)
        self._pulses.pop(replica, None)

    def ails(self, replica: str) -> bool:
        """Whether it says that it cannot write to the database."""
        return replica in self._pulses and self._pulses[replica][0].ails

    def can_see(self, *, can_see: bool, now: float) -> None:
        """Whether the database or NATS answers. Time in which neither does makes nobody older."""
        if can_see and self._blind_since is not None:
            blind = now - self._blind_since
            self._seen_at = {name: at + blind for name, at in self._seen_at.items()}
            self._blind_since = None
        elif not can_see and self._blind_since is None:
            self._blind_since = now

    def alive(self, now: float) -> tuple[str, ...]:
        """By name."""
        at = now if self._blind_since is None else self._blind_since
        self._seen_at = {name: seen for name, seen in self._seen_at.items() if at - seen < FORGOTTEN_SECONDS}
        return tuple(sorted({self.me, *(name for name, seen in self._seen_at.items() if at - seen <= DEAD_SECONDS)}))

    def leader_but_me(self, now: float) -> tuple[str, float] | None:
        """Another that says it leads, and since when; the one that has done so the shortest is right."""
        claims = [
            (pulsed.leads, name)
            for name, (pulsed, at) in self._pulses.items()
            if name != self.me and pulsed.leads is not None and now - at <= CLAIM_COUNTS_SECONDS
        ]
        since, name = max(claims, default=(None, ""))
        return None if since is None else (name, since)

    def clocks_off(self, now: float) -> Iterable[tuple[str, float]]:
        """Live replicas whose clock differs from ours, and by how many seconds."""
        alive = self.alive(now)
        for name, (pulsed, _) in sorted(self._pulses.items()):
            if name in alive and abs(pulsed.off_seconds) > CLOCK_OFF_SECONDS:
                yield name, pulsed.off_seconds
