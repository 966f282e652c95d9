"""Something was reported lately."""

from typing import ClassVar

import msgspec
from msgspec import Struct

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.lives import RunNews
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.notable import NOTABLE, OUT_OF_MEMORY, Notable
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import UNKNOWN, Verdict, inactive
from oomwatch.units import Duration


class EventSeen(Kind, frozen=True, kw_only=True, tag="event"):
    """{kind: event, of: [device_oom, host_oom], within: 10m}

    Judged of the GPU that the event names, of the node where it names none, and of the run where it happened on a node
    that no agent watches.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu", "node", "run")
    hears: ClassVar[tuple[News, ...]] = ("events",)
    predicts: ClassVar[Channel | None] = None
    topic: ClassVar[Topic | None] = None  # that of the event which is seen (core/notable.py)

    of: tuple[str, ...]
    within: Duration = Duration(600)

    def __post_init__(self) -> None:
        if not self.of:
            raise ValueError("of must name at least one kind of event")
        for kind in self.of:
            if kind not in _BODIES:
                raise ValueError(f'unknown kind of event "{kind}"; known are {", ".join(_BODIES)}')

    @property
    def over_when_run(self) -> RunNews | None:
        """A run that works again has left its failure behind: the next one is another. What else was told stays."""
        return "works" if all(issubclass(_BODIES[kind], OUT_OF_MEMORY) for kind in self.of) else None

    @property
    def fact_names(self) -> tuple[str, ...]:
        """Whatever the named events carry."""
        fields = [field.name for body in _BODIES.values() for field in msgspec.structs.fields(body)]
        return ("event", "process", "pid", "actor", *dict.fromkeys(fields))

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        record = _record(fleet, subject)
        if record is None:
            return UNKNOWN
        told = [one for one in record.notable if _kind(one.body) in self.of and one.at > now - self.within]
        recent = [one for one in told if self.over_when_run is None or not fleet.is_left_behind(one)]
        if not recent:
            return inactive(0.0, None, "count")
        facts = _facts(recent[-1]) | (_whereabouts(recent[-1]) if subject.scope == "run" else {})
        return Verdict("active", float(len(recent)), None, "count", facts)


_BODIES: dict[str, type[Struct]] = {str(body.__struct_config__.tag): body for body in NOTABLE}


def _record(fleet: Fleet, subject: Subject) -> GpuRecord | NodeRecord | RunRecord | None:
    if subject.scope == "gpu":
        return fleet.gpu(subject)
    return fleet.nodes.get(subject.name) if subject.scope == "node" else fleet.runs.get(subject.name)


def _whereabouts(notable: Notable) -> dict[str, wire.Fact]:
    """What the texts call the node, where its address is all that is known of it."""
    return {"node": notable.origin.ip} if notable.origin and notable.origin.ip else {}


def _kind(body: wire.EventBody) -> str:
    return str(body.__struct_config__.tag)


def _facts(notable: Notable) -> dict[str, wire.Fact]:
    """The event's own fields, and the process that it concerns: who wrote it, unless it names another."""
    origin = notable.origin
    facts: dict[str, wire.Fact] = {"event": _kind(notable.body)}
    if origin is not None and origin.pid is not None:
        facts["pid"] = origin.pid
    if origin is not None and origin.actor is not None:
        facts["actor"] = facts["process"] = origin.actor
    fields = msgspec.structs.asdict(notable.body)
    return facts | {name: value for name, value in fields.items() if value is not None}
