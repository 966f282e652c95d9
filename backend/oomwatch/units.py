"""Quantities as people write them: 30s, 85%, 70GiB. Pure; used by settings, rules and texts alike."""

import re

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNIT_BYTES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LONGEST_CHARS = 64  # of a quantity. What is longer is none, and to look for one in it takes the square of its length
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


class Duration(float):
    """Seconds, written 30s, 5m, 1h30m or 500ms; a bare number is seconds."""

    __slots__ = ()


class Quantity(float):
    """A bound to compare a signal with, in the signal's unit: 0.85 or 85%, 30s, 70GiB, or a bare number."""

    __slots__ = ()


def parse_duration(text: str | float) -> Duration:
    """Seconds of "30s", "1h30m" or a bare number. Raises ValueError that shows the accepted forms."""
    seconds = _number(text) if isinstance(text, int | float) and not isinstance(text, bool) else _seconds(str(text))
    if seconds is None or not 0 <= seconds < float("inf"):
        raise ValueError(f'"{_shortened(text)}" is no duration; write for example 30s, 5m or 1h30m')
    return Duration(seconds)


def _number(number: float) -> float | None:
    try:
        return float(number)
    except OverflowError:  # of a whole number of hundreds of digits
        return None


def _seconds(text: str) -> float | None:
    compact = text.replace(" ", "")
    if len(compact) > _LONGEST_CHARS:
        return None
    parts = _DURATION_PART.findall(compact)
    if parts and "".join(number + unit for number, unit in parts) == compact:
        return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    return float(compact) if re.fullmatch(r"\d+(\.\d+)?", compact) else None


def parse_quantity(text: str | float) -> Quantity:
    """A bound as a number of its base unit. Raises ValueError that shows the accepted forms."""
    value = _number(text) if isinstance(text, int | float) and not isinstance(text, bool) else _quantity(str(text))
    if value is None or not abs(value) < float("inf"):
        raise ValueError(f'"{_shortened(text)}" is no quantity; write for example 0.85, 85%, 30s or 70GiB')
    return Quantity(value)


def _quantity(text: str) -> float | None:
    compact = text.replace(" ", "")
    if len(compact) > _LONGEST_CHARS:
        return None
    if _NUMBER.fullmatch(compact):
        return float(compact)
    if compact.endswith("%") and _NUMBER.fullmatch(compact[:-1]):
        return float(compact[:-1]) / 100
    for unit, size in _UNIT_BYTES.items():
        number = compact.removesuffix(unit)
        if number != compact and _NUMBER.fullmatch(number):
            return float(number) * size
    return _seconds(compact)


def _shortened(text: str | float) -> str:
    """As a sentence can show it."""
    whole = str(text)
    return whole if len(whole) <= _LONGEST_CHARS else f"{whole[:_LONGEST_CHARS]}..."


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """What is counted, with its number: "1 rule", "3 rules", "12,345 readings"; `nouns` where it takes no mere "s"."""
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def format_duration(seconds: float) -> str:
    """The shortest exact spelling that parse_duration reads back: 90 -> "1m30s"."""
    if seconds != int(seconds):
        return f"{seconds:g}s"
    parts: list[str] = []
    rest = int(seconds)
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, int(_UNIT_SECONDS[unit]))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
