"""A message as plain text or as Markdown, within a limit, for services that take a title and a body. Pure.

Limits are counted in bytes of UTF-8, since some services count so; in those that count characters, a Chinese message
then uses a third of its room. The last line, with the link, is kept whatever has to go.
"""

import re
from collections.abc import Iterator
from urllib.parse import quote

from oomwatch import wire
from oomwatch.catalogue import say
from oomwatch.notify.changes import moment
from oomwatch.notify.message import Message, Step

SUBJECTS_SHOWN = 20
# What Markdown would read as markup. Underscores stay: within words, as in most of our names, they are no markup.
_MARKUP = re.compile(r"([\\`*\[\]<>~|])|^([#+-]|\d+\.)(?=\s)", re.MULTILINE)
# @everyone, <!channel>: a character that is not seen keeps services from calling people for words of an alert.
_CALL = re.compile(r"@|<(?=[!@#])")
_UNSEEN = "\u200b"


def title(message: Message, limit: int) -> str:
    return cut(inert(" ".join(f"{message.sign} {message.title}".split())), limit)


def text(message: Message, language: wire.Language, limit: int) -> str:
    """The body, without the title."""
    lines = [inert(line) for line in _lines(message, language)]
    last = " ".join(part for part in (inert(_small(message, language)), _address(message.link or "")) if part)
    return _within(lines, last, limit)


def markdown(message: Message, language: wire.Language, limit: int) -> str:
    """The same with emphasis and a link. Nothing of what the alert says is markup."""
    lines = [*_marked(message, language)]
    link = f"[{say('notify.open', language)}]({_address(message.link)})" if message.link else ""
    last = " · ".join(part for part in (_escaped(_small(message, language)), link) if part)
    return _within(lines, last, limit)


def _lines(message: Message, language: wire.Language) -> Iterator[str]:
    yield from message.notes
    yield from (part for part in (message.summary, message.description) if part)
    yield from (f"• {one}" for one in _shown(message, language))
    if message.cause:
        yield say("notify.labelled", language, label=say("notify.cause", language), text=message.cause)
    if message.advice:
        yield say("notify.heading", language, label=say("notify.advice", language))
        yield from (_step(number, step) for number, step in enumerate(message.advice, start=1))


def _step(number: int, step: Step) -> str:
    return f"{number}. {step.what}" + (f"\n   {step.line}" if step.line else "")


def _marked(message: Message, language: wire.Language) -> Iterator[str]:
    yield from (f"**{_escaped(note)}**" for note in message.notes)
    yield from (_escaped(part) for part in (message.summary, message.description) if part)
    subjects = [f"- {_escaped(one)}" for one in _shown(message, language)]
    if subjects:
        yield "\n".join(subjects)
    if message.cause:
        label = f"**{say('notify.cause', language)}**"
        yield say("notify.labelled", language, label=label, text=_escaped(message.cause))
    if message.advice:
        yield f"**{say('notify.advice', language)}**"
        yield "\n".join(_marked_step(number, step) for number, step in enumerate(message.advice, start=1))


def _marked_step(number: int, step: Step) -> str:
    line = f" `{inert(step.line).replace('`', ' ')}`" if step.line else ""
    return f"{number}. {_escaped(step.what)}{line}"


def _shown(message: Message, language: wire.Language) -> list[str]:
    hidden = len(message.subjects) - SUBJECTS_SHOWN
    more = [say("notify.more", language, count=hidden)] if hidden > 0 else []
    return [*message.subjects[:SUBJECTS_SHOWN], *more]


def _small(message: Message, language: wire.Language) -> str:
    since = [] if message.since is None else [say("notify.since", language, time=moment(message.since))]
    return " · ".join([*message.context, *since])


def _within(lines: list[str], last: str, limit: int) -> str:
    """The lines with a blank one between each two paragraphs, cut so that the last one still fits."""
    room = limit - len(last.encode()) - 2
    if not last or room <= 0:
        return cut("\n\n".join([*lines, last]).strip(), limit)
    return f"{cut(chr(10).join(_spaced(lines)), room)}\n\n{last}".strip()


def _spaced(lines: list[str]) -> Iterator[str]:
    """Lists stay together; everything else is a paragraph."""
    for number, line in enumerate(lines):
        if number and not line.startswith(("• ", "1. ", "2. ", "3. ", "4. ", "5. ", "6. ", "7. ", "8. ", "9. ")):
            yield ""
        yield line


def inert(words: str) -> str:
    """Without control characters, and without calls to people."""
    kept = "".join(char for char in words if char.isprintable() or char == "\n")
    return _CALL.sub(lambda found: found[0] + _UNSEEN, kept)


def _escaped(words: str) -> str:
    return _MARKUP.sub(lambda found: f"\\{found[0]}", inert(words))


def _address(link: str) -> str:
    """As it stands, but for characters that have no place in an address."""
    return quote(link, safe="/:?#=&%~!$*+,;-._[]")


def cut(words: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, with an ellipsis where something is missing, never within a character."""
    encoded = words.encode()
    if len(encoded) <= limit:
        return words
    return encoded[: max(0, limit - len("…".encode()))].decode("utf-8", "ignore").rstrip() + "…"
