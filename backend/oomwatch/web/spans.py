"""When alerts were: as much of each as a timeline draws and says, and no more, for a thousand of them at once."""

import msgspec

from oomwatch import wire


class AlertSpan(msgspec.Struct, frozen=True, kw_only=True):
    """From `started_at` it waited, from `fired_at` it fired, until `ended_at`; null: not yet."""

    id: str
    alert: str
    severity: wire.Severity
    state: wire.AlertState
    labels: dict[str, str]
    started_at: float
    fired_at: float | None
    ended_at: float | None
    value: float | None
    limit: float | None
    unit: str | None
    summary: str
    muted: bool  # nobody was sent word of it when it was last told of
    acknowledged_by: str | None
    outcome: str | None  # the verdict
    simulated: bool


class AlertSpans(msgspec.Struct, frozen=True, kw_only=True):
    """The one that started last first. `complete` false: there were more, which started before all of these."""

    start_at: float
    end_at: float
    alerts: tuple[AlertSpan, ...]
    complete: bool


def span_of(alert: wire.Alert, language: wire.Language) -> AlertSpan:
    text = alert.texts.get(language)
    return AlertSpan(
        id=alert.id,
        alert=alert.alert,
        severity=alert.severity,
        state=alert.state,
        labels=alert.labels,
        started_at=alert.started_at,
        fired_at=alert.fired_at,
        ended_at=alert.ended_at,
        value=alert.value,
        limit=alert.limit,
        unit=alert.unit,
        summary=alert.alert if text is None else text.summary,
        muted=bool(alert.muted),
        acknowledged_by=None if alert.acknowledged is None else alert.acknowledged.by,
        outcome=None if alert.outcome is None else alert.outcome.verdict,
        simulated=alert.simulated,
    )
