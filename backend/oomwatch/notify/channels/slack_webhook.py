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
from oomwatch.notify.channel import AddressedSection, Surroundings
from oomwatch.notify.notice import Notice
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


class SlackChannel(AddressedSection, frozen=True, kw_only=True, tag="slack"):
    """A Slack incoming webhook. Whoever knows its address can post, so the address is a secret."""

    def open(self, around: Surroundings) -> "SlackWebhook":
        """Raises SettingError where its address cannot be found or used."""
        return SlackWebhook(self, self.address(around.environ), around.frame, around.client)


class SlackWebhook:
    """Posts to one incoming webhook, which can neither update nor thread what it posted."""

    pause_seconds = 1.0  # Slack takes one message a second in a channel
    edits = False

    def __init__(self, config: SlackChannel, url: Secret, frame: Frame, client: httpx.AsyncClient) -> None:
        self.config = config
        self._url = url
        self._frame = frame
        self._client = client

    async def send(self, notice: Notice) -> Outcome:
        return await http.post(self._client, self._url, msgspec.json.encode(message(notice, self._frame)), {})


def message(notice: Notice, frame: Frame) -> dict[str, object]:
    """The body of a post: blocks for people, and `text` for notifications and screen readers."""
    title = f"{_sign(notice)} {words.title(notice, frame.language)}"
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": fit(title, HEADER_LIMIT), "emoji": True}},
        *(_section(part(notice, frame)) for part in (_story, _subjects, _cause, _advice) if part(notice, frame)),
        {"type": "context", "elements": [_markdown(_context(notice, frame))]},
    ]
    return {"text": fit(title, FALLBACK_LIMIT), "blocks": blocks}


def _sign(notice: Notice) -> str:
    return "✅" if notice.state == "resolved" else _SIGNS[notice.severity]


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": _markdown(text)}


def _markdown(text: str) -> dict[str, object]:
    # verbatim: Slack would otherwise turn words of the text into mentions of people and channels
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _story(notice: Notice, frame: Frame) -> str:
    one = words.worst(notice)
    text = words.text_of(one, frame.language)
    summary = text.summary
    if len(notice.news) > 1:
        summary = say("notify.worst", frame.language, summary=summary)
    parts = [f"*{say('notify.demo', frame.language)}*"] if notice.simulated else []
    parts.append(fit(summary, SUMMARY_LIMIT))
    if text.description and notice.state == "firing":
        parts.append(fit(text.description, DESCRIPTION_LIMIT))
    return "\n".join(parts)


def _subjects(notice: Notice, frame: Frame) -> str:
    """One line for each GPU (or node) where there are several, as many as fit."""
    if len(notice.news) == 1:
        return ""
    lines: list[str] = []
    length = 0
    for transition in notice.news:
        line = "• " + fit(_subject(transition, frame), SUBJECT_LIMIT)
        length += len(line) + 1
        if length > SUBJECTS_LIMIT:
            lines.append(say("notify.more", frame.language, count=len(notice.news) - len(lines)))
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


def _cause(notice: Notice, frame: Frame) -> str:
    cause = words.cause(words.worst(notice), frame.language)
    return f"*{say('notify.cause', frame.language)}*\n{fit(cause, CAUSE_LIMIT)}" if cause else ""


def _remedies(notice: Notice, frame: Frame) -> str:
    """What was worked out for this run, each with its line in a code span."""
    found = words.remedies(words.worst(notice), frame.language)[:REMEDIES_SHOWN]
    lines = [
        f"{number}. {fit(what, REMEDY_LIMIT)}" + (f"\n`{fit(line, OVERRIDE_LIMIT)}`" if line else "")
        for number, (what, line) in enumerate(found, start=1)
    ]
    return f"*{say('notify.advice', frame.language)}*\n" + "\n".join(lines) if lines else ""


def _advice(notice: Notice, frame: Frame) -> str:
    """What to change: worked out for this run, or else what the rule says to everybody."""
    if worked_out := _remedies(notice, frame):
        return worked_out
    advice = words.text_of(words.worst(notice), frame.language).advice
    if not advice or notice.state == "resolved":
        return ""
    share = ADVICE_LIMIT // min(len(advice), 5)
    steps = [f"{number}. {fit(step, share)}" for number, step in enumerate(advice[:5], start=1)]
    return f"*{say('notify.advice', frame.language)}*\n" + "\n".join(steps)


def _context(notice: Notice, frame: Frame) -> str:
    one = words.worst(notice)
    parts = [say(f"notify.severity_{notice.severity}", frame.language)]
    if notice.state == "resolved":
        lasted = duration(words.lasted_seconds(notice), frame.language)
        parts.append(say("notify.resolved_after", frame.language, duration=lasted))
    why = words.reason(one, frame.language)
    if why:
        parts.append(say("notify.reason", frame.language, reason=fit(why, CONTEXT_LIMIT)))
    parts.append(say("notify.since", frame.language, time=_date(min(t.started_at for t in notice.news))))
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
