"""A message in its parts, as every channel that writes to people says it; how they look is each channel's own. Pure."""

from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.figures import duration
from oomwatch.notify import changes, words
from oomwatch.notify.notice import Notice
from oomwatch.notify.words import Frame

_SIGNS = {"info": "🔵", "warning": "🟠", "critical": "🔴"}


class Step(NamedTuple):
    """Something to do, and the line to copy for it where there is one."""

    what: str
    line: str | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """Plain text throughout, of any length and with any characters: channels escape and cut it."""

    sign: str  # an emoji for its gravity
    title: str
    notes: tuple[str, ...] = ()  # what is to be read before all: that it is a demo, that nobody has acknowledged
    summary: str = ""
    description: str = ""
    subjects: tuple[str, ...] = ()  # a line each, where there are several
    cause: str | None = None
    advice: tuple[Step, ...] = ()
    context: tuple[str, ...] = ()  # in small print
    since: float | None = None
    link: str | None = None


def compose(notice: Notice, frame: Frame) -> Message:
    """What a notice says, in the frame's language."""
    if notice.kind == "channel":
        return _of_channel(notice, frame)
    one, text = words.worst(notice), words.text_of(words.worst(notice), frame.language)
    return Message(
        sign=_sign(notice),
        title=words.title(notice, frame.language),
        notes=_notes(notice, frame.language),
        summary=_summary(notice, text, frame.language),
        description=text.description if notice.state == "firing" else "",
        subjects=_subjects(notice, frame.language),
        cause=words.cause(one, frame.language),
        advice=_advice(one, text, frame.language),
        context=_context(notice, one, frame.language),
        since=min(each.started_at for each in words.shown(notice)),
        link=frame.link(one.id),
    )


def _sign(notice: Notice) -> str:
    return "✅" if notice.state == "resolved" else _SIGNS[notice.severity]


def _notes(notice: Notice, language: wire.Language) -> tuple[str, ...]:
    found = [say("notify.demo", language)] if notice.simulated else []
    if notice.kind in ("repeat", "escalation"):
        key = "notify.firing_for" if notice.kind == "repeat" else "notify.unacknowledged"
        seconds = notice.made_at - min(one.started_at for one in words.shown(notice))
        found.append(say(key, language, duration=duration(seconds, language)))
    return (*found, *_cares(notice, language))


def _cares(notice: Notice, language: wire.Language) -> tuple[str, ...]:
    """Who takes care of what fires; nothing once it is over."""
    if notice.state == "resolved":
        return ()
    taken = (one.acknowledged for one in words.shown(notice) if one.acknowledged is not None)
    return tuple(dict.fromkeys(changes.acknowledged(care, language) for care in taken))


def _summary(notice: Notice, text: wire.AlertText, language: wire.Language) -> str:
    return say("notify.worst", language, summary=text.summary) if len(notice.news) > 1 else text.summary


def _subjects(notice: Notice, language: wire.Language) -> tuple[str, ...]:
    if len(notice.news) == 1:
        return ()
    return tuple(words.subject(one, language, named=words.is_mixed(notice)) for one in notice.news)


def _advice(one: wire.Transition, text: wire.AlertText, language: wire.Language) -> tuple[Step, ...]:
    """What to change: worked out for this run, or else what the rule says to everybody."""
    if one.state == "resolved":
        return ()
    worked_out = tuple(Step(what, line) for what, line in words.remedies(one, language))
    return worked_out or tuple(Step(what) for what in text.advice)


def _context(notice: Notice, one: wire.Transition, language: wire.Language) -> tuple[str, ...]:
    parts = [say(f"notify.severity_{notice.severity}", language)]
    if notice.state == "resolved":
        lasted = duration(words.lasted_seconds(notice), language)
        parts.append(say("notify.resolved_after", language, duration=lasted))
        verdicts = (words.verdict(each.outcome, language) for each in words.shown(notice) if each.outcome is not None)
        parts += [say("notify.outcome", language, verdict=said) for said in dict.fromkeys(verdicts)]
    why = words.reason(one, language)
    if why:
        parts.append(say("notify.reason", language, reason=why))
    return tuple(parts)


# ---------------------------------------------------------------- of a channel that fails


def _of_channel(notice: Notice, frame: Frame) -> Message:
    """Which channel, why, since when, and what to do."""
    language, state = frame.language, notice.channel
    title = words.title(notice, language)
    if state is None or notice.state == "resolved":
        return Message(sign=_sign(notice), title=title, summary=title)
    return Message(
        sign=_sign(notice),
        title=title,
        summary=say("notify.channel_error", language, reason=state.last_error or "-"),
        description="\n".join(_counts(state, notice.made_at, language)),
        advice=(
            Step(say("notify.channel_mend", language)),
            Step(say("notify.channel_try", language, channel=state.name)),
        ),
        context=(say(f"notify.severity_{notice.severity}", language),),
        since=state.last_success_at,
    )


def _counts(state: wire.ChannelState, now: float, language: wire.Language) -> list[str]:
    if state.last_success_at is None:
        lines = [say("notify.channel_never", language)]
    else:
        since = duration(now - state.last_success_at, language)
        lines = [say("notify.channel_since", language, duration=since)]
    if state.waiting:
        lines.append(say("notify.channel_waiting", language, count=state.waiting))
    if state.failed_total:
        lines.append(say("notify.channel_lost", language, count=state.failed_total))
    return lines
