"""A message as Slack's Block Kit, within Slack's limits whatever the alert says. Pure.

Limits as of 2026: header 150 characters, section 3,000, 50 blocks; we keep the whole under 12,000. Texts are counted as
they are sent, escaped, and the sum of the parts below leaves room for JSON to double every character.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.notify.message import Message, Step

HEADER_LIMIT = 150
FALLBACK_LIMIT = 300
NOTES_LIMIT = 400
SUMMARY_LIMIT = 500
DESCRIPTION_LIMIT = 1000
SUBJECTS_LIMIT = 800
SUBJECT_LIMIT = 120
ADVICE_LIMIT = 1100
STEPS_SHOWN = 5
CAUSE_LIMIT = 450
REMEDIES_SHOWN = 3
OVERRIDE_LIMIT = 110
CONTEXT_LIMIT = 400
LINK_LIMIT = 500
SHORT_LIMIT = 1500
LINE_LIMIT = 400
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def blocks(message: Message, language: wire.Language) -> list[dict[str, object]]:
    return [
        {"type": "header", "text": {"type": "plain_text", "text": headline(message, HEADER_LIMIT), "emoji": True}},
        *(_section(text) for text in _texts(message, language) if text),
        {"type": "context", "elements": [_markdown(_context(message, language))]},
    ]


def body(message: Message, language: wire.Language) -> dict[str, object]:
    """Blocks for people, and `text` for notifications and screen readers."""
    return {"text": headline(message, FALLBACK_LIMIT), "blocks": blocks(message, language)}


def short(lines: Sequence[str], language: wire.Language) -> dict[str, object]:
    """A few lines without ornament: what follows a message, in its thread. The first is the fallback."""
    kept = _listed(lines, language, SHORT_LIMIT, LINE_LIMIT)
    return {"text": fit(lines[0], FALLBACK_LIMIT), "blocks": [_section("\n".join(kept))]}


def headline(message: Message, limit: int) -> str:
    return fit(f"{message.sign} {message.title}", limit)


def _texts(message: Message, language: wire.Language) -> Iterator[str]:
    yield _story(message)
    yield _subjects(message, language)
    if message.cause:
        yield f"*{say('notify.cause', language)}*\n{fit(message.cause, CAUSE_LIMIT)}"
    if message.advice:
        yield f"*{say('notify.advice', language)}*\n" + "\n".join(_steps(message.advice))


def _section(text: str) -> dict[str, object]:
    return {"type": "section", "text": _markdown(text)}


def _markdown(text: str) -> dict[str, object]:
    # verbatim: Slack would otherwise turn words of the text into mentions of people and channels
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _story(message: Message) -> str:
    parts = [f"*{fit(note, NOTES_LIMIT // len(message.notes))}*" for note in message.notes[:STEPS_SHOWN]]
    parts.append(fit(message.summary, SUMMARY_LIMIT))
    parts.append(fit(message.description, DESCRIPTION_LIMIT))
    return "\n".join(part for part in parts if part)


def _subjects(message: Message, language: wire.Language) -> str:
    marked = [f"• {one}" for one in message.subjects]
    return "\n".join(_listed(marked, language, SUBJECTS_LIMIT, SUBJECT_LIMIT))


def _listed(lines: Sequence[str], language: wire.Language, limit: int, line_limit: int) -> list[str]:
    """As many as fit, and how many more there are."""
    kept: list[str] = []
    length = 0
    for one in lines:
        line = fit(one, line_limit)
        length += len(line) + 1
        if length > limit:
            kept.append(say("notify.more", language, count=len(lines) - len(kept)))
            break
        kept.append(line)
    return kept


def _steps(steps: tuple[Step, ...]) -> Iterator[str]:
    """Numbered, each with its line in a code span."""
    kept = steps[: REMEDIES_SHOWN if any(step.line for step in steps) else STEPS_SHOWN]
    share = ADVICE_LIMIT // len(kept) - (OVERRIDE_LIMIT if any(step.line for step in kept) else 0)
    for number, step in enumerate(kept, start=1):
        yield f"{number}. {fit(step.what, share)}"
        if step.line:
            yield f"`{fit(step.line.replace('`', ' '), OVERRIDE_LIMIT)}`"


def _context(message: Message, language: wire.Language) -> str:
    parts = [fit(part, CONTEXT_LIMIT // len(message.context)) for part in message.context]
    if message.since is not None:
        parts.append(say("notify.since", language, time=_date(message.since)))
    link = escape(message.link or "").replace("|", "%7C")  # a bar would end the address
    if link and len(link) <= LINK_LIMIT:
        parts.append(f"<{link}|{say('notify.open', language)}>")
    return " · ".join(parts) or "oomwatch"


def _date(at: float) -> str:
    """Slack's own markup: every reader sees it in their time zone."""
    fallback = datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"<!date^{int(at)}^{{date_short_pretty}} {{time_secs}}|{fallback}>"


def plain(text: str, limit: int) -> str:
    """For fields that Slack takes as they are: nothing to escape."""
    return "".join(char for char in text if char.isprintable())[:limit]


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
