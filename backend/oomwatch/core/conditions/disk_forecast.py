"""The disk that Ray spills to, or /dev/shm, will be full before long."""

from collections.abc import Iterator
from typing import ClassVar

from oomwatch.core.conditions.kind import Kind
from oomwatch.core.filling import FACTS, Horizon, filling, last_filling, rhythm_of
from oomwatch.core.fleet import Fleet
from oomwatch.core.foretold import Foretold
from oomwatch.core.hostdisks import Disk, DiskUse, disk_use
from oomwatch.core.lives import RunNews
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.units import Duration, Quantity

UNTIL: dict[Disk, float] = {"spill_disk": 0.95, "shm": 1.0}  # Ray spills no more to a disk that is 95 % full


class DiskForecast(Kind, frozen=True, kw_only=True, tag="disk_forecast"):
    """{kind: disk_forecast, of: [spill_disk, shm], within: 60m, within_steps: 40}

    What is used of the file system grows, and is expected at `until` (95 % of the disk that Ray spills to, all of
    /dev/shm) within the time, or within so many steps where those take longer.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("node",)
    hears: ClassVar[tuple[News, ...]] = ("blocks", "steps")
    predicts: ClassVar[Channel | None] = "disk"
    topic: ClassVar[Topic | None] = "disk"
    over_when_run: ClassVar[RunNews | None] = None  # what fills a disk outlives its run
    fact_names: ClassVar[tuple[str, ...]] = (*FACTS, "until_ratio", "path", "used_bytes", "limit_bytes")

    of: tuple[Disk, ...] = ("spill_disk", "shm")
    until: Quantity | None = None
    within: Duration = Duration(3600)
    within_steps: int = 40

    def __post_init__(self) -> None:
        if not self.of:
            raise ValueError("of must name spill_disk, shm or both")
        if self.until is not None and not 0 < self.until <= 1:
            raise ValueError(f"until: {self.until:g} is no share; write 95% or 0.95")
        Horizon(self.within, self.within_steps).check()

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        node = fleet.nodes.get(subject.name)
        uses = self._uses(node, now)
        if node is None or not uses:
            return UNKNOWN
        run = rhythm_of(fleet, subject, now)
        near_seconds = Horizon(self.within, self.within_steps).seconds_of(fleet, subject)
        verdicts = [verdict for use in uses if (verdict := self._verdict(node, run, use, near_seconds, now))]
        return min(verdicts, key=lambda one: one.value or 0.0, default=INACTIVE)

    def foretold(self, fleet: Fleet, subject: Subject, now: float) -> Iterator[Foretold]:
        """What the last judgement believed, however far off."""
        node = fleet.nodes.get(subject.name)
        for use in self._uses(node, now):
            if node and (found := last_filling(node, use.disk, self._full_bytes(use))):
                yield found.foretold_at(now, use.disk)

    def _uses(self, node: NodeRecord | None, now: float) -> list[DiskUse]:
        """Of the file systems that are told; none where the reading is old."""
        facts = node.hello.facts.host if node else None
        if node is None or facts is None or node.host is None or now - node.host_at > node.stale_after_seconds:
            return []
        return [use for disk in self.of if (use := disk_use(disk, node.host, facts))]

    def _full_bytes(self, use: DiskUse) -> float:
        return (self.until or UNTIL[use.disk]) * use.limit_bytes

    def _verdict(
        self, node: NodeRecord, run: RunRecord | None, use: DiskUse, near_seconds: float, now: float
    ) -> Verdict | None:
        forecast = filling(node, run, use.disk, self._full_bytes(use), now)
        if forecast is None or forecast.agreed_seconds > near_seconds:
            return None
        facts = forecast.facts_at(now) | {"until_ratio": float(self.until or UNTIL[use.disk])} | use.facts()
        return Verdict("active", float(facts["eta_seconds"]), near_seconds, "seconds", facts)
