"""Slack incoming webhooks: one message as Block Kit, within Slack's limits whatever the alert says.

Limits as of 2026: header 150 characters, section 3,000, 50 blocks; we keep the whole under 12,000. Texts are counted as
they are sent, escaped, and the sum of the parts below leaves room for JSON to double every character.
"""

from datetime import datetime, timezone

import httpx
import msgspec

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.figures import duration, figure
from oomwatch.notify import http, words
from oomwatch.notify.config import SlackChannel
from oomwatch.notify.grouping import Group
from oomwatch.notify.outcome import Outcome
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame

HEADER_LIMIT = 150
FALLBACK_LIMIT = 300
SUMMARY_LIMIT = 500
DESCRIPTION_LIMIT = 1200
SUBJECTS_LIMIT = 800
SUBJECT_LIMIT = 100
ADVICE_LIMIT = 1200
CAUSE_LIMIT = 450
REMEDIES_SHOWN = 3
REMEDY_LIMIT = 280
OVERRIDE_LIMIT = 110
CONTEXT_LIMIT = 300
LINK_LIMIT = 500
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SIGNS = {"info": "🔵", "warning": "🟠", "critical": "🔴"}


class SlackWebhook:
    """Posts to one incoming webhook, which can neither update nor thread what it posted."""

    pause_seconds = 1.0  # Slack takes one message a second in a channel

    def __init__(self, config: SlackChannel, url: Secret, frame: Frame, client: httpx.AsyncClient) -> None:
        self.config = config
        self._url = url
        self._frame = frame
        self._client = client

    async def send(self, group: Group) -> Outcome:
        return await http.post(self._client, self._url, msgspec.json.encode(message(group, self._frame)), {})


def message(group: Group, frame: Frame) -> dict[str, object]:
    """The body of a post: blocks for people, and `text` for notifications and screen readers."""
    title = f"{_sign(group)} {words.title(group, frame.language)}"
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": fit(title, HEADER_LIMIT), "emoji": True}},
        *(_section(part(group, frame)) for part in (_story, _subjects, _cause, _advice) if part(group, frame)),
        {"type": "context", "elements": [_markdown(_context(group, frame))]},
    ]
    return {"text": fit(title, FALLBACK_LIMIT), "blocks": blocks}


def _sign(group: Group) -> str:
    return "✅" if group.state == "resolved" else _SIGNS[group.topic.severity]


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": _markdown(text)}


def _markdown(text: str) -> dict[str, object]:
    # verbatim: Slack would otherwise turn words of the text into mentions of people and channels
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _story(group: Group, frame: Frame) -> str:
    one = words.worst(group)
    text = words.text_of(one, frame.language)
    summary = text.summary
    if len(group.transitions) > 1:
        summary = say("notify.worst", frame.language, summary=summary)
    parts = [f"*{say('notify.demo', frame.language)}*"] if group.topic.simulated else []
    parts.append(fit(summary, SUMMARY_LIMIT))
    if text.description and group.state == "firing":
        parts.append(fit(text.description, DESCRIPTION_LIMIT))
    return "\n".join(parts)


def _subjects(group: Group, frame: Frame) -> str:
    """One line for each GPU (or node) where there are several, as many as fit."""
    if len(group.transitions) == 1:
        return ""
    lines: list[str] = []
    length = 0
    for transition in group.transitions:
        line = "• " + fit(_subject(transition, frame), SUBJECT_LIMIT)
        length += len(line) + 1
        if length > SUBJECTS_LIMIT:
            lines.append(say("notify.more", frame.language, count=len(group.transitions) - len(lines)))
            break
        lines.append(line)
    return "\n".join(lines)


def _subject(transition: wire.Transition, frame: Frame) -> str:
    labels = transition.labels
    gpu = say("notify.gpu", frame.language, gpu=labels["gpu"]) if "gpu" in labels else None
    place = " ".join(part for part in (labels.get("node"), gpu) if part)
    if transition.state == "resolved":
        lasted = duration(transition.at - transition.started_at, frame.language)
        said: str | None = say("notify.resolved_after", frame.language, duration=lasted)
    else:
        said = None if transition.value is None else figure(transition.value, transition.unit, frame.language)
    return ": ".join(part for part in (place, said) if part)


def _cause(group: Group, frame: Frame) -> str:
    cause = words.cause(words.worst(group), frame.language)
    return f"*{say('notify.cause', frame.language)}*\n{fit(cause, CAUSE_LIMIT)}" if cause else ""


def _remedies(group: Group, frame: Frame) -> str:
    """What was worked out for this run, each with its line in a code span."""
    found = words.remedies(words.worst(group), frame.language)[:REMEDIES_SHOWN]
    lines = [
        f"{number}. {fit(what, REMEDY_LIMIT)}" + (f"\n`{fit(line, OVERRIDE_LIMIT)}`" if line else "")
        for number, (what, line) in enumerate(found, start=1)
    ]
    return f"*{say('notify.advice', frame.language)}*\n" + "\n".join(lines) if lines else ""


def _advice(group: Group, frame: Frame) -> str:
    """What to change: worked out for this run, or else what the rule says to everybody."""
    if worked_out := _remedies(group, frame):
        return worked_out
    advice = words.text_of(words.worst(group), frame.language).advice
    if not advice or group.state == "resolved":
        return ""
    share = ADVICE_LIMIT // min(len(advice), 5)
    steps = [f"{number}. {fit(step, share)}" for number, step in enumerate(advice[:5], start=1)]
    return f"*{say('notify.advice', frame.language)}*\n" + "\n".join(steps)


def _context(group: Group, frame: Frame) -> str:
    one = words.worst(group)
    parts = [say(f"notify.severity_{group.topic.severity}", frame.language)]
    if group.state == "resolved":
        lasted = duration(words.lasted_seconds(group), frame.language)
        parts.append(say("notify.resolved_after", frame.language, duration=lasted))
    why = words.reason(one, frame.language)
    if why:
        parts.append(say("notify.reason", frame.language, reason=fit(why, CONTEXT_LIMIT)))
    parts.append(say("notify.since", frame.language, time=_date(min(t.started_at for t in group.transitions))))
    link = frame.link(one.id)
    if link is not None and len(escape(link)) <= LINK_LIMIT:
        parts.append(f"<{escape(link)}|{say('notify.open', frame.language)}>")
    return " · ".join(parts)


def _date(at: float) -> str:
    """Slack's own markup: every reader sees it in their time zone."""
    fallback = datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"<!date^{int(at)}^{{date_short_pretty}} {{time_secs}}|{fallback}>"


def escape(text: str) -> str:
    """What Slack would take for markup (mentions, links) as plain characters, and no control characters."""
    return "".join(_ENTITIES.get(char, char) for char in text if char.isprintable() or char == "\n")


def fit(text: str, limit: int) -> str:
    """Escaped and at most `limit` long, with an ellipsis where something was cut, never within an entity."""
    escaped = escape(text)
    if len(escaped) <= limit:
        return escaped
    kept: list[str] = []
    length = 1  # the ellipsis
    for char in text:
        piece = escape(char)
        length += len(piece)
        if length > limit:
            break
        kept.append(piece)
    return "".join(kept) + "…"
