"""Alerts, silences and matchers in few words."""

from oomwatch import wire
from oomwatch.core.mute.matcher import parse_matcher
from oomwatch.core.mute.muter import Firing


def matchers(*texts: str) -> tuple[wire.Matcher, ...]:
    return tuple(parse_matcher(text) for text in texts)


def firing(alert_id: str = "1", **labels: str) -> Firing:
    return Firing(alert_id, {"alert": "high", "severity": "warning"} | labels)


def silence(
    *texts: str, silence_id: str = "s1", start: float = 0.0, end: float = 100.0, note: str | None = None
) -> wire.Silence:
    return wire.Silence(
        id=silence_id,
        matchers=matchers(*texts),
        starts_at=start,
        ends_at=end,
        created_by="lin",
        created_at=start,
        note=note,
    )
