"""A silence that somebody asks for: held to what makes sense, with a sentence where it does not."""

from collections.abc import Iterable

import msgspec

from oomwatch import wire
from oomwatch.core.mute.matcher import parse_matcher
from oomwatch.units import format_duration, parse_duration

SILENCES_MAX = 1000  # in force or yet to come
PATTERNS_MAX = 1000  # regular expressions in them, each counted once
MATCHERS_MAX = 20
SECONDS_MAX = 366 * 86_400.0
LATE_SECONDS = 60.0  # a beginning that is so long ago was now, when it was written
BY_CHARS_MAX = 100
NOTE_CHARS_MAX = 1000


class Wish(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The end is said by either `duration` (seconds, or "2h") or `ends_at`."""

    match: tuple[str, ...]
    created_by: str
    note: str | None = None
    duration: str | float | None = None
    starts_at: wire.UnixSeconds | None = None
    ends_at: wire.UnixSeconds | None = None


def silence_of(wish: Wish, now: float, silence_id: str) -> wire.Silence:
    """Raises ValueError with a sentence."""
    starts_at = _start(wish, now)
    return wire.Silence(
        id=silence_id,
        matchers=matchers_of(wish.match),
        starts_at=starts_at,
        ends_at=_end(wish, starts_at, now),
        created_by=name_of(wish.created_by, "created_by"),
        created_at=now,
        note=note_of(wish.note),
    )


def check_room(silences: Iterable[wire.Silence]) -> None:
    """There is an end to what is looked at for every alert. Raises ValueError with a sentence."""
    known = list(silences)
    if len(known) > SILENCES_MAX:
        raise ValueError(f"there are {SILENCES_MAX} silences already; end some")
    patterns = {matcher.value for one in known for matcher in one.matchers if matcher.op in ("=~", "!~")}
    if len(patterns) > PATTERNS_MAX:
        raise ValueError(f"there are {PATTERNS_MAX} regular expressions in silences already; end some")


def matchers_of(texts: tuple[str, ...]) -> tuple[wire.Matcher, ...]:
    """Raises ValueError with a sentence."""
    if not texts:
        raise ValueError('match: say which alerts are meant, for example node="gpu-07"; severity=~".*" are all')
    if len(texts) > MATCHERS_MAX:
        raise ValueError(f"match: more than {MATCHERS_MAX} matchers; use =~ and | for several values of a label")
    try:
        return tuple([parse_matcher(text) for text in texts])
    except ValueError as error:
        raise ValueError(f"match: {error}") from error


def name_of(text: str, field: str) -> str:
    """Who says so. Raises ValueError with a sentence."""
    name = text.strip()
    if not name or len(name) > BY_CHARS_MAX or not name.isprintable():
        raise ValueError(f"{field}: say who you are, in 1 to {BY_CHARS_MAX} characters of one line")
    return name


def note_of(text: str | None) -> str | None:
    """Why. Raises ValueError with a sentence."""
    note = (text or "").strip()
    if len(note) > NOTE_CHARS_MAX:
        raise ValueError(f"note: this is longer than {NOTE_CHARS_MAX} characters")
    if not all(char.isprintable() or char in "\n\t" for char in note):
        raise ValueError("note: it holds control characters")
    return note or None


def _start(wish: Wish, now: float) -> float:
    starts_at = now if wish.starts_at is None else wish.starts_at
    if starts_at < now - LATE_SECONDS:
        raise ValueError("starts_at: this is in the past; leave it out for a silence that begins now")
    if starts_at > now + SECONDS_MAX:
        raise ValueError("starts_at: this is more than a year ahead; is it in seconds since 1970?")
    return max(starts_at, now)


def _end(wish: Wish, starts_at: float, now: float) -> float:
    if (wish.duration is None) == (wish.ends_at is None):
        raise ValueError("say when it ends by exactly one of duration and ends_at")
    if wish.ends_at is not None:
        if wish.ends_at <= now:
            raise ValueError("ends_at: this is in the past")
        return _checked(wish.ends_at, starts_at, "ends_at")
    try:
        seconds = parse_duration(wish.duration if wish.duration is not None else "")
    except ValueError as error:
        raise ValueError(f"duration: {error}") from error
    return _checked(starts_at + seconds, starts_at, "duration")


def _checked(ends_at: float, starts_at: float, field: str) -> float:
    if ends_at <= starts_at:
        raise ValueError(f"{field}: a silence has to last for some time")
    if ends_at - starts_at > SECONDS_MAX:
        raise ValueError(f"{field}: a silence lasts for {format_duration(SECONDS_MAX)} at most")
    return ends_at
