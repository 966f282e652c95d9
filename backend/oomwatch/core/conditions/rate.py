"""Something happens too often."""

from typing import ClassVar, Literal

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.lives import RunNews
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import UNKNOWN, Verdict, inactive
from oomwatch.units import Duration, Quantity


class Rate(Kind, frozen=True, kw_only=True, tag="rate"):
    """{kind: rate, of: reshard_cycles, above_per_minute: 6, window: 1m}

    Cycles are counted by the most reliable marker that the run prints, and once however many processes print it.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("run",)
    hears: ClassVar[tuple[News, ...]] = ("events",)
    over_when_run: ClassVar[RunNews | None] = None
    predicts: ClassVar[Channel | None] = None
    topic: ClassVar[Topic | None] = "switch"
    fact_names: ClassVar[tuple[str, ...]] = ("cycles", "marker", "window_seconds")

    of: Literal["reshard_cycles"]
    above_per_minute: Quantity
    window: Duration = Duration(60)

    def __post_init__(self) -> None:
        if self.window <= 0:
            raise ValueError("window must be longer than 0s")
        if self.above_per_minute < 0:
            raise ValueError("above_per_minute cannot be negative")

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        run = fleet.runs.get(subject.name)
        marker = run.cycle_marker() if run else None
        if run is None or marker is None:
            return UNKNOWN
        cycles = run.cycles_between(now - self.window, now)
        per_minute = cycles * 60 / self.window
        if per_minute <= self.above_per_minute:
            return inactive(per_minute, float(self.above_per_minute), "per_minute")
        facts: dict[str, wire.Fact] = {"cycles": cycles, "marker": marker, "window_seconds": float(self.window)}
        return Verdict("active", per_minute, float(self.above_per_minute), "per_minute", facts)
