"""An alert as Alertmanager's protocols write it, whichever way it goes. Pure.

Labels are the identity of an alert and never change while it lives; figures and words are annotations.
"""

from datetime import datetime, timezone

import msgspec

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.core.rule import severity_of
from oomwatch.notify import words
from oomwatch.notify.words import Frame
from oomwatch.story import transition_of


def labels(transition: wire.Transition) -> dict[str, str]:
    return {**transition.labels, "alertname": transition.alert, "severity": severity_of(transition)}


def annotations(transition: wire.Transition, frame: Frame) -> dict[str, str]:
    """The words, then the figures behind them by the names that alerts.yaml uses."""
    text = words.text_of(transition, frame.language)
    demo = transition.simulated
    remedies = words.remedies(transition, frame.language)
    values: dict[str, object] = {
        **transition.facts,
        "summary": say("notify.title_demo", frame.language, title=text.summary) if demo else text.summary,
        "description": text.description or None,
        "advice": "\n".join(text.advice) or None,
        "cause": words.cause(transition, frame.language),
        "remedies": "\n".join(what for what, _ in remedies) or None,
        "overrides": "\n".join(line for _, line in remedies if line) or None,
        "acts": "\n".join(words.acts_of(transition, frame.language)) or None,
        "value": transition.value,
        "limit": transition.limit,
        "unit": transition.unit,
        "reason": transition.reason,
        "outcome": transition.outcome and words.verdict(transition.outcome, frame.language),
        "acknowledged_by": transition.acknowledged and transition.acknowledged.by,
        "simulated": "true" if demo else None,
        "incident_url": frame.incident_link(transition.facts.get("incident")),
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def as_told(alert: wire.Alert) -> wire.Transition:
    """An alert as it stands, as if it had just been told."""
    at = alert.ended_at if alert.ended_at is not None else alert.fired_at
    return transition_of(alert, at=alert.started_at if at is None else at, change="state")


def rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Posted(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One alert of the body of POST /api/v2/alerts."""

    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    ends_at: str
    generator_url: str = msgspec.field(name="generatorURL", default="")
