"""The types that only the REST interface has: what a script wants to read without knowing the wire."""

from typing import Literal, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch.core.mute.matcher import text_of
from oomwatch.service.service import Service
from oomwatch.store.history import Series


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks. `name` is null where nobody has to say; `can_leave`: whether POST /sign-out ends it; Unix seconds."""

    name: str | None
    may_act: bool
    can_leave: bool
    ends_at: float | None


class GpuRow(wire.GpuFacts, frozen=True, kw_only=True):
    """What a GPU is, and where. What is not known is left out."""

    node: str

    @classmethod
    def of(cls, node: str, facts: wire.GpuFacts) -> "GpuRow":
        return cls(node=node, **msgspec.structs.asdict(facts))


class AlertRow(msgspec.Struct, frozen=True, kw_only=True):
    """An alert in one language. Every field is always there; `ended_at` is null while it is open."""

    id: str
    alert: str
    severity: wire.Severity
    state: wire.AlertState
    labels: dict[str, str]
    started_at: float
    ended_at: float | None
    value: float | None
    summary: str
    description: str
    advice: tuple[str, ...]
    fired_at: float | None
    limit: float | None
    unit: str | None
    stale: bool
    simulated: bool
    facts: dict[str, wire.Fact]
    reason: wire.TransitionReason | None
    lowered_from: wire.Severity | None
    causes: tuple[wire.Cause, ...]
    remedies: tuple[wire.Remedy, ...]
    outcome: wire.Outcome | None
    acts: tuple[wire.Act, ...]
    muted: tuple[wire.Mute, ...]
    acknowledged: wire.Acknowledgement | None


class AlertStory(msgspec.Struct, frozen=True, kw_only=True):
    """An alert, its changes of state, and the messages that told of it, oldest first."""

    alert: AlertRow
    transitions: tuple[wire.Transition, ...]
    deliveries: tuple[wire.Delivery, ...]


class Acknowledged(msgspec.Struct, frozen=True, kw_only=True):
    """The ids of the alerts that somebody takes care of now."""

    alerts: tuple[str, ...]


SilenceState: TypeAlias = Literal["active", "upcoming", "ended"]


class SilenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """A silence; `match` are its matchers as people write them."""

    id: str
    state: SilenceState
    match: tuple[str, ...]
    matchers: tuple[wire.Matcher, ...]
    starts_at: float
    ends_at: float
    created_by: str
    created_at: float
    note: str | None


class Hidden(msgspec.Struct, frozen=True, kw_only=True):
    """Of the alerts that fired in some time, those that a silence would have hidden."""

    fired: int
    hidden: int
    hidden_critical: int


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a silence would hide. `warnings` are sentences for whoever is about to make it."""

    alerts: tuple[AlertRow, ...]  # that fire now
    last_24h: Hidden
    last_7d: Hidden
    warnings: tuple[str, ...]


class History(msgspec.Struct, frozen=True, kw_only=True):
    """One figure over time: columns of one length; `at` is where each point of `step_seconds` begins."""

    series: str
    unit: str
    labels: dict[str, str]
    step_seconds: float
    at: tuple[float, ...]
    min: tuple[float | None, ...]
    max: tuple[float | None, ...]
    mean: tuple[float | None, ...]


def history_of(found: Series) -> History:
    """A figure as the store reads it, as the API tells it."""
    return History(
        series=found.name,
        unit=found.unit,
        labels=found.labels,
        step_seconds=found.step_seconds,
        at=found.times,
        min=found.min,
        max=found.max,
        mean=found.mean,
    )


class PeakSource(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU that had a peak, and what it can hold."""

    node: str
    gpu: str
    usable_bytes: int


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """Of one phase, step by step: its peak on the GPU that was fullest by it, and the place of that GPU in `gpus`."""

    peak_bytes: tuple[int | None, ...]
    gpu: tuple[int | None, ...]


class PeaksOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """Columns of one length, oldest step first. null: not known, which is so of all peaks before `known_from_step`.

    `phases` holds "step" too, for steps whose phases could not be told apart.
    """

    run: str
    step: tuple[int, ...]
    at: tuple[float, ...]
    known_from_step: int | None
    gpus: tuple[PeakSource, ...]
    phases: dict[str, Peaks]
    reshard_cycles: tuple[int | None, ...]


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that was heard since the server started."""

    node: str
    connected: bool
    agent_version: str
    interval_seconds: float
    heard_at: float
    skew_seconds: float
    messages_total: int
    malformed_total: int
    unknown_total: int
    stored_seq: int
    simulated: bool
    sources: tuple[wire.SourceFacts, ...]


def alert_row(alert: wire.Alert, language: wire.Language) -> AlertRow:
    text = alert.texts.get(language) or wire.AlertText(summary=alert.alert, description="")
    return AlertRow(
        id=alert.id,
        alert=alert.alert,
        severity=alert.severity,
        state=alert.state,
        labels=alert.labels,
        started_at=alert.started_at,
        ended_at=alert.ended_at,
        value=alert.value,
        summary=text.summary,
        description=text.description,
        advice=text.advice,
        fired_at=alert.fired_at,
        limit=alert.limit,
        unit=alert.unit,
        stale=alert.stale,
        simulated=alert.simulated,
        facts=alert.facts,
        reason=alert.reason,
        lowered_from=alert.lowered_from,
        causes=alert.causes,
        remedies=alert.remedies,
        outcome=alert.outcome,
        acts=alert.acts,
        muted=alert.muted,
        acknowledged=alert.acknowledged,
    )


def silence_row(silence: wire.Silence, now: float) -> SilenceRow:
    state: SilenceState = "ended" if silence.ends_at <= now else "upcoming" if silence.starts_at > now else "active"
    return SilenceRow(
        id=silence.id,
        state=state,
        match=tuple([text_of(matcher) for matcher in silence.matchers]),
        matchers=silence.matchers,
        starts_at=silence.starts_at,
        ends_at=silence.ends_at,
        created_by=silence.created_by,
        created_at=silence.created_at,
        note=silence.note,
    )


def agents(service: Service) -> list[Agent]:
    """Every agent, in the order of first sight."""
    return [
        Agent(
            node=session.node,
            connected=session.peer is not None,
            agent_version=record.hello.agent_version,
            interval_seconds=record.hello.interval_seconds,
            heard_at=session.heard_at,
            skew_seconds=session.skew_seconds,
            messages_total=session.messages_total,
            malformed_total=session.malformed_total,
            unknown_total=session.unknown_total,
            stored_seq=session.stored_seq,
            simulated=record.hello.simulated,
            sources=record.hello.facts.sources,
        )
        for session in service.roster
        if (record := service.engine.fleet.nodes.get(session.node)) is not None
    ]
