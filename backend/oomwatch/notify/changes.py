"""What has become of alerts that were told of, a line for each thing: acknowledged, muted, lowered, over. Pure."""

from collections.abc import Callable, Mapping
from datetime import datetime, timezone

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.notify import words
from oomwatch.notify.notice import Notice


def changes(notice: Notice, language: wire.Language) -> tuple[str, ...]:
    """What the news bring to alerts that stay as they are, each once however many alerts it is said of."""
    return tuple(dict.fromkeys(line for one in notice.news for line in _SAID[one.change](one, language)))


def acknowledged(said: wire.Acknowledgement, language: wire.Language) -> str:
    return _noted(say("notify.acknowledged", language, by=said.by), said.note, language)


def muted(mute: wire.Mute, language: wire.Language) -> str:
    """Why nobody is sent word of an alert: "Muted by a silence, until 2026-11-29 22:00 UTC: the reindex"."""
    said = say(f"notify.muted_{mute.kind}", language, by=mute.by)
    if mute.until is not None:
        said = say("notify.muted_until", language, said=said, time=moment(mute.until))
    return _noted(said, mute.note, language)


def moment(at: float) -> str:
    """A time for readers of any zone."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _noted(said: str, note: str | None, language: wire.Language) -> str:
    return say("notify.with_note", language, said=said, note=note) if note else said


def _of_state(one: wire.Transition, language: wire.Language) -> list[str]:
    return [words.subject(one, language)]


def _of_severity(one: wire.Transition, language: wire.Language) -> list[str]:
    severity = say(f"notify.severity_{one.severity}", language)
    return [say("notify.raised" if one.lowered_from is None else "notify.lowered", language, severity=severity)]


def _of_outcome(one: wire.Transition, language: wire.Language) -> list[str]:
    if one.outcome is None:
        return []
    return [say("notify.outcome", language, verdict=words.verdict(one.outcome, language))]


def _of_mutes(one: wire.Transition, language: wire.Language) -> list[str]:
    return [muted(mute, language) for mute in one.muted] or [say("notify.unmuted", language)]


def _of_care(one: wire.Transition, language: wire.Language) -> list[str]:
    care = one.acknowledged
    return [say("notify.care_over", language) if care is None else acknowledged(care, language)]


_SAID: Mapping[wire.TransitionChange, Callable[[wire.Transition, wire.Language], list[str]]] = {
    "state": _of_state,
    "severity": _of_severity,
    "outcome": _of_outcome,
    "acts": words.acts_of,
    "muted": _of_mutes,
    "acknowledged": _of_care,
}
