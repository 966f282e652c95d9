"""Host memory will reach its limit before long."""

from collections.abc import Iterator
from typing import ClassVar

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.filling import FACTS, Filling, Horizon, filling, last_filling, rhythm_of
from oomwatch.core.fleet import Fleet
from oomwatch.core.foretold import Foretold
from oomwatch.core.hostmemory import HostUse, uses
from oomwatch.core.lives import RunNews
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict, inactive
from oomwatch.units import Duration, Quantity

GROWER_SHARE_MIN = 0.2  # of the growth: a process that took less is not the one to name


class HostForecast(Kind, frozen=True, kw_only=True, tag="host_forecast"):
    """{kind: host_forecast, until: 95%, within: 60m, within_steps: 40}

    The memory in use by the machine, or by the container, grows, and is expected at `until` of the limit within the
    time, or within so many steps where those take longer. Ray kills workers at 95 %.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("node",)
    hears: ClassVar[tuple[News, ...]] = ("blocks", "steps")
    predicts: ClassVar[Channel | None] = "host"
    topic: ClassVar[Topic | None] = "host"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        *FACTS,
        "until_ratio",
        "used_bytes",
        "limit_bytes",
        "limited_by",
        "process",
        "pid",
        "process_growth_bytes",
    )

    until: Quantity = Quantity(0.95)
    within: Duration = Duration(3600)
    within_steps: int = 40

    def __post_init__(self) -> None:
        if not 0 < self.until <= 1:
            raise ValueError(f"until: {self.until:g} is no share; write 95% or 0.95")
        Horizon(self.within, self.within_steps).check()

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        node = fleet.nodes.get(subject.name)
        host = node.hello.facts.host if node else None
        if node is None or host is None or node.host is None or now - node.host_at > node.stale_after_seconds:
            return UNKNOWN
        run = rhythm_of(fleet, subject, now)
        since = begun.started_at if (begun := fleet.lives(fleet.labels(subject))) else float("-inf")
        found = [(one, use) for use in uses(node.host, host) if (one := self._filling(node, run, use, now, since))]
        if not found:
            return INACTIVE
        forecast, use = min(found, key=lambda pair: pair[0].agreed_seconds)
        near_seconds = Horizon(self.within, self.within_steps).seconds_of(fleet, subject)
        if forecast.agreed_seconds > near_seconds:
            return inactive(forecast.agreed_seconds, near_seconds, "seconds")
        facts = forecast.facts_at(now) | self._use(use) | _grower(node, forecast)
        return Verdict("active", float(facts["eta_seconds"]), near_seconds, "seconds", facts)

    def foretold(self, fleet: Fleet, subject: Subject, now: float) -> Iterator[Foretold]:
        """What the last judgement believed, however far off."""
        node = fleet.nodes.get(subject.name)
        host = node.hello.facts.host if node else None
        if node is None or host is None or node.host is None or now - node.host_at > node.stale_after_seconds:
            return
        if fleet.is_between_starts(subject):
            return
        for use in uses(node.host, host):
            if found := last_filling(node, use.limited_by, self.until * use.limit_bytes):
                yield found.foretold_at(now, use.limited_by)

    def _filling(
        self, node: NodeRecord, run: RunRecord | None, use: HostUse, now: float, since: float
    ) -> Filling | None:
        return filling(node, run, use.limited_by, self.until * use.limit_bytes, now, since=since)

    def _use(self, use: HostUse) -> dict[str, wire.Fact]:
        return {
            "until_ratio": float(self.until),
            "used_bytes": use.used_bytes,
            "limit_bytes": use.limit_bytes,
            "limited_by": use.limited_by,
        }


def _grower(node: NodeRecord, forecast: Filling) -> dict[str, wire.Fact]:
    """The process that took most of the growth, where its part is worth naming."""
    grower = node.history.grower(forecast.since, forecast.until)
    growth_bytes = forecast.growth_bytes_per_hour * (forecast.until - forecast.since) / 3600
    if grower is None or grower.growth_bytes < GROWER_SHARE_MIN * growth_bytes:
        return {}
    return {"process": grower.name, "pid": grower.pid, "process_growth_bytes": round(grower.growth_bytes)}
