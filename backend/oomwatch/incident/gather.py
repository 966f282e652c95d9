"""From the database and the service's picture to a report."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

import msgspec

from oomwatch import __version__, wire
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.incident.report import BEFORE_SECONDS, Card, Curve, Draft, Incident, Message
from oomwatch.service import runviews
from oomwatch.service.service import Service
from oomwatch.store.history import SERIES, Series
from oomwatch.story import STATES

AFTER_SECONDS_SHOWN = 30.0
CARDS_MAX = 64  # of a large run those that failed, and the first of the others
MESSAGES_MAX = 200
STEPS_SHOWN = 30
# What belongs to the story of a failure.
KINDS = frozenset({"device_oom", "host_oom", "disk_full", "shm_small", "gpu_lost", "nccl_error"})
# Shares of what is there as bytes, and counters that stand still, would only repeat.
LEFT_OUT = frozenset({"gpu_used_ratio", "gpu_ecc_uncorrected_total"})


class Archive(Protocol):
    """What is asked of the store. The methods block."""

    def series(self, name: str, labels: Mapping[str, str], start: float, end: float, step: float) -> Series: ...

    def recent_events(
        self, since: float, until: float, *, kinds: frozenset[str] | None = None
    ) -> Iterable[tuple[str, wire.Event]]: ...

    def steps(self, run: str, limit: int) -> list[wire.StepPoint]: ...

    def transitions_of(self, alert_id: str) -> list[wire.Transition]: ...


class Scene(NamedTuple):
    """What the service knows and the database does not, as of one moment."""

    nodes: tuple[str, ...]
    cards: tuple[Card, ...]
    cards_left_out: int
    alerts: tuple[wire.Alert, ...]
    phases: tuple[wire.PhaseSpan, ...]
    config: dict[str, wire.ConfigValue]
    simulated: bool


def scene(service: Service, draft: Draft) -> Scene:
    """To be called from the event loop, as all that touches the service."""
    fleet = service.engine.fleet
    run = fleet.runs.get(draft.run or "")
    nodes = tuple(run.nodes) if run is not None else (draft.node,) if draft.node else ()
    known = [record for name in nodes if (record := fleet.nodes.get(name))]
    cards = list(fleet.gpus_of_run(run)) if run is not None else [gpu for one in known for gpu in one.gpus.values()]
    failed = set(draft.gpus)
    cards.sort(key=lambda gpu: (gpu.subject.name, gpu.subject.gpu) not in failed)  # stable: else as they are listed
    return Scene(
        nodes=nodes,
        cards=tuple(_card(gpu) for gpu in cards[:CARDS_MAX]),
        cards_left_out=max(0, len(cards) - CARDS_MAX),
        alerts=tuple(_alerts(service, draft, nodes)),
        phases=tuple(runviews.phases(run, draft.at - BEFORE_SECONDS, draft.at)) if run is not None else (),
        config=run.config if run is not None else {},
        simulated=any(record.hello.simulated for record in known),
    )


def _card(gpu: GpuRecord) -> Card:
    return Card(node=gpu.subject.name, gpu=gpu.subject.gpu, name=gpu.facts.name, usable_bytes=gpu.usable_bytes)


def _alerts(service: Service, draft: Draft, nodes: tuple[str, ...]) -> Iterator[wire.Alert]:
    """Those that told of it, then the others of the run or the node that were open, or had ended lately."""
    known = {alert.id: alert for alert in service.board.all()}
    yield from (known[one] for one in draft.alerts if one in known)
    for alert in known.values():
        here = alert.labels.get("run") == draft.run if draft.run is not None else alert.labels.get("node") in nodes
        fired_before = alert.fired_at is not None and alert.fired_at <= draft.at
        lasted = alert.ended_at is None or alert.ended_at >= draft.at - BEFORE_SECONDS
        if alert.id not in draft.alerts and here and fired_before and lasted:
            yield alert


def gather(archive: Archive, draft: Draft, told: Scene, now: float) -> Incident:
    """The report. It blocks; to be called in a thread that reads. Raises StoreError."""
    start, end = draft.at - BEFORE_SECONDS, draft.at + AFTER_SECONDS_SHOWN
    first = told.alerts[0] if told.alerts else None
    by_cause = next((alert for alert in told.alerts if alert.causes), first)
    return Incident(
        id=draft.id,
        at=draft.at,
        written_at=now,
        version=__version__,
        node=draft.node,
        run=draft.run,
        simulated=told.simulated,
        summary={language: text.summary for language, text in first.texts.items()} if first else {},
        nodes=told.nodes,
        cards=told.cards,
        cards_left_out=told.cards_left_out,
        alerts=tuple(msgspec.structs.replace(_as_told(archive, draft, one), stale=False) for one in told.alerts),
        messages=tuple(_messages(archive, draft, told, start, end)),
        causes=by_cause.causes if by_cause else (),
        remedies=next((alert.remedies for alert in told.alerts if alert.remedies), ()),
        advice={language: text.advice for language, text in first.texts.items()} if first else {},
        phases=told.phases,
        steps=tuple(one for one in _steps(archive, draft) if one.at <= end),
        config=told.config,
        curves=tuple(_curves(archive, draft, told, start, end)),
    )


def _as_told(archive: Archive, draft: Draft, alert: wire.Alert) -> wire.Alert:
    """What a warning said when people were last told of it before the failure: its figures have gone on since."""
    if alert.id in draft.alerts:
        return alert
    story = archive.transitions_of(alert.id)
    told = [one for one in story if one.change in STATES and one.state == "firing" and one.at <= draft.at]
    if not told:
        return alert
    last = told[-1]
    return msgspec.structs.replace(
        alert, severity=last.severity, value=last.value, limit=last.limit, facts=last.facts, texts=last.texts
    )


def _steps(archive: Archive, draft: Draft) -> list[wire.StepPoint]:
    return archive.steps(draft.run, STEPS_SHOWN) if draft.run is not None else []


def _messages(archive: Archive, draft: Draft, told: Scene, start: float, end: float) -> Iterator[Message]:
    found = archive.recent_events(start, end, kinds=KINDS)
    here = [
        Message(at=event.at, node=node, body=event.body, origin=event.origin)
        for node, event in found
        if not event.backlog and (event.run == draft.run if draft.run and event.run else node in told.nodes)
    ]
    return iter(here[:MESSAGES_MAX])


def _curves(archive: Archive, draft: Draft, told: Scene, start: float, end: float) -> Iterator[Curve]:
    places: list[dict[str, str]] = [{"node": card.node, "gpu": card.gpu} for card in told.cards]
    places += [{"node": node} for node in told.nodes]
    places += [{"run": draft.run}] if draft.run is not None else []
    for labels in places:
        for name, kind in SERIES.items():
            # A node's figures of steps are those of its run.
            is_of_its_run = not kind.sampled and set(labels) == {"node"} and draft.run is not None
            if name in LEFT_OUT or kind.check(labels) is not None or is_of_its_run:
                continue
            found = archive.series(name, labels, start, end, 1.0)
            if any(value is not None for value in found.max):
                yield Curve(
                    series=name,
                    unit=found.unit,
                    labels=labels,
                    step_seconds=found.step_seconds,
                    at=found.times,
                    values=found.max,
                )
