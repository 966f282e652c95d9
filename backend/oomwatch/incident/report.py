"""A report as it is kept: everything that was known of the last fifteen minutes. The page is made of nothing else."""

import re
from datetime import datetime, timezone
from hashlib import blake2s

from msgspec import Struct

from oomwatch import wire

BEFORE_SECONDS = 900.0
AFTER_SECONDS = 15.0  # late samples, and the words of the other ranks
ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")


class Draft(Struct, frozen=True, kw_only=True):
    """An incident that is known of and not yet written. Without a run it is of one node alone."""

    id: str
    at: float
    node: str | None
    run: str | None
    gpus: tuple[tuple[str, str], ...] = ()  # node and label of those that are known to have failed
    alerts: tuple[str, ...] = ()  # ids of those that told of it


class Curve(Struct, frozen=True, kw_only=True):
    """One series: the greatest value of each point, by the names of /api/v1/history. None: nothing was read."""

    series: str
    unit: str
    labels: dict[str, str]
    step_seconds: float
    at: tuple[float, ...]
    values: tuple[float | None, ...]


class Message(Struct, frozen=True, kw_only=True):
    """What a log, a counter or the kernel said."""

    at: float
    node: str
    body: wire.EventBody
    origin: wire.Origin | None = None


class Card(Struct, frozen=True, kw_only=True):
    """A GPU whose series are in the report."""

    node: str
    gpu: str
    name: str
    usable_bytes: int


class Incident(Struct, frozen=True, kw_only=True):
    """The whole report. `alerts` were open when it happened or had ended lately; those that told of it come first."""

    id: str
    at: float
    written_at: float
    version: str
    node: str | None
    run: str | None
    simulated: bool
    summary: dict[str, str]  # by language
    nodes: tuple[str, ...]
    cards: tuple[Card, ...]
    cards_left_out: int
    alerts: tuple[wire.Alert, ...]
    messages: tuple[Message, ...]
    causes: tuple[wire.Cause, ...]
    remedies: tuple[wire.Remedy, ...]
    advice: dict[str, tuple[str, ...]]  # of the alert's rule, by language
    phases: tuple[wire.PhaseSpan, ...]
    steps: tuple[wire.StepPoint, ...]
    config: dict[str, wire.ConfigValue]
    curves: tuple[Curve, ...]


class Entry(Struct, frozen=True, kw_only=True):
    """One line of the list of incidents: the head of a report, which has more."""

    id: str
    at: float
    node: str | None
    run: str | None
    simulated: bool
    summary: dict[str, str]
    alerts: tuple[str, ...]


def incident_id(at: float, place: str) -> str:
    """The same for the same run and moment: the time, and a digest of where it was."""
    moment = datetime.fromtimestamp(at, timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    return f"{moment}-{blake2s(place.encode(), digest_size=4).hexdigest()}"


def entry_of(incident: Incident) -> Entry:
    return Entry(
        id=incident.id,
        at=incident.at,
        node=incident.node,
        run=incident.run,
        simulated=incident.simulated,
        summary=incident.summary,
        alerts=tuple(alert.id for alert in incident.alerts if alert.facts.get("incident") == incident.id),
    )
