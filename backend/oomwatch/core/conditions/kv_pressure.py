"""The KV cache of a rollout engine is full: requests wait, or are put back and computed again. Slow, not deadly."""

from typing import ClassVar, NamedTuple

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.lives import RunNews
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict, inactive
from oomwatch.units import Quantity

# Engines' pages are read every ten seconds; of one that was not read for so long nothing is known.
UNKNOWN_AFTER_SECONDS = 35.0
STEPS, STEPS_UNDER_PRESSURE = 3, 2  # of so many steps, in which sequences were put back


class _Pressed(NamedTuple):
    engine: wire.EngineSample
    kv_used_ratio: float
    preemptions: int


class KvPressure(Kind, frozen=True, kw_only=True, tag="kv_pressure"):
    """{kind: kv_pressure, above: 95%}

    Of a node: an engine's page says that its cache is above that, and that requests were put back lately, or that more
    of them wait than run. Of a run whose engines have no page: in two of the last three steps sequences were put back.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("node", "run")
    hears: ClassVar[tuple[News, ...]] = ("engines", "steps")
    predicts: ClassVar[Channel | None] = None
    topic: ClassVar[Topic | None] = "speed"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        "engine",
        "address",
        "model",
        "engines",
        "kv_used_ratio",
        "requests_running",
        "requests_waiting",
        "preemptions",
        "step",
        "preemptions_mean",
    )

    above: Quantity = Quantity(0.95)

    def __post_init__(self) -> None:
        if not 0 <= self.above < 1:
            raise ValueError(f"above: {self.above:g} is no share below 1; write 95% or 0.95")

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        if subject.scope == "run":
            run = fleet.runs.get(subject.name)
            return UNKNOWN if run is None else self._judge_steps(fleet, run)
        node = fleet.nodes.get(subject.name)
        if node is None or not node.engines or now - node.engines_at > UNKNOWN_AFTER_SECONDS:
            return UNKNOWN
        pressed = [one for engine in node.engines if (one := self._pressed(node, engine, now))]
        if not pressed:
            used = [engine.kv_used_ratio for engine in node.engines if engine.kv_used_ratio is not None]
            return inactive(max(used), float(self.above), "ratio") if used else INACTIVE
        worst = max(pressed, key=lambda one: (one.preemptions, one.engine.requests_waiting or 0))
        return Verdict("active", worst.kv_used_ratio, float(self.above), "ratio", _facts(worst, len(pressed)))

    def _pressed(self, node: NodeRecord, engine: wire.EngineSample, now: float) -> _Pressed | None:
        if engine.kv_used_ratio is None or engine.kv_used_ratio <= self.above:
            return None
        preemptions = node.preemptions.lately(engine.address, now)
        waiting, running = engine.requests_waiting, engine.requests_running
        queued = waiting is not None and running is not None and waiting > running
        return _Pressed(engine, engine.kv_used_ratio, preemptions) if preemptions or queued else None

    def _judge_steps(self, fleet: Fleet, run: RunRecord) -> Verdict:
        """By what the trainer counts, where no page of an engine tells it better."""
        if any(node.engines for name in run.nodes if (node := fleet.nodes.get(name))):
            return UNKNOWN
        last = [record.step for record in run.steps.segment() if record.usual][-STEPS:]
        put_back = [step for step in last if step.preemptions_mean]
        if not last or last[-1].preemptions_mean is None:
            return UNKNOWN
        if len(put_back) < STEPS_UNDER_PRESSURE:
            return inactive(last[-1].preemptions_mean or 0.0, 0.0, "count")
        mean = put_back[-1].preemptions_mean or 0.0
        return Verdict("active", mean, 0.0, "count", {"step": last[-1].step, "preemptions_mean": mean})


def _facts(worst: _Pressed, engines: int) -> dict[str, wire.Fact]:
    engine = worst.engine
    told: dict[str, wire.Fact | None] = {
        "engine": engine.engine,
        "address": engine.address,
        "model": engine.model,
        "engines": engines,
        "kv_used_ratio": worst.kv_used_ratio,
        "requests_running": engine.requests_running,
        "requests_waiting": engine.requests_waiting,
        "preemptions": worst.preemptions,
    }
    return {name: value for name, value in told.items() if value is not None}
