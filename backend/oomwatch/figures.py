"""Numbers as a person reads them, with their unit, in either language. Pure.

The page's js/format.js writes the same; tests/rules/figures.json holds both to it.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Protocol

from oomwatch import wire
from oomwatch.catalogue import say

SECONDS_READ_BELOW_MINUTES = 10
_EXACT_BELOW = 2.0**53  # larger numbers have no decimals left to round
DUE_SECONDS = 10  # nearer than this a forecast has come due: nobody can do anything in so few seconds
_DAY_SECONDS = 86400
_DURATIONS = (("figure.days", _DAY_SECONDS), ("figure.hours", 3600), ("figure.minutes", 60), ("figure.seconds", 1))
_COUNTED = ("step", "steps")  # other whole numbers may be names: a pid, a port
# A fact's unit is the last word of its name.
_UNIT_OF_SUFFIX = {"ratio": "ratio", "bytes": "bytes", "seconds": "seconds", "tokens": "count", "celsius": "celsius"}


def figure(value: float, unit: str | None, language: wire.Language) -> str:
    """A value with its unit: "93 %", "74.5 GiB", "12 min"."""
    if unit == "ratio":
        return f"{_percent(value)} %"
    if unit == "bytes":
        return f"{_rounded(value / 2**30, 1)} GiB"
    if unit == "seconds":
        return duration(value, language)
    if unit == "celsius":
        return f"{_rounded(value, 0)} °C"
    if unit == "per_minute":
        return say("figure.per_minute", language, value=plain(value))
    return f"{plain(value)} W" if unit == "watts" else plain(value)


def plain(value: float) -> str:
    """A number without a unit: "12,345", "51.3", "7.33"; below a hundred three digits count."""
    if value == round(value) or abs(value) >= 100:  # noqa: PLR2004
        return _rounded(value, 0)
    return _rounded(value, 2 - math.floor(math.log10(abs(value)))).rstrip("0").rstrip(".")


def _rounded(value: float, digits: int) -> str:
    """With so many decimals and its thousands parted, ties away from 0 as the page's Intl does; Python's go to even."""
    if abs(value) >= _EXACT_BELOW:
        return f"{value:,.{digits}f}"
    return f"{Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,f}"


_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_SIZE_BELOW = 999.95  # of a unit; what would be rounded to 1,000 is told in the next one


def size(value: float) -> str:
    """Bytes in the unit that suits them, as of files: "512 B", "3.4 MiB", "-1.2 GiB". Memory is always told in GiB."""
    step = 0
    while abs(value) >= _SIZE_BELOW and step < len(_SIZES) - 1:
        value, step = value / 1024, step + 1
    return f"{_rounded(value, 1 if step else 0)} {_SIZES[step]}"


class Judged(Protocol):
    """What a rule judged, as a transition and a row of the API tell it."""

    @property
    def value(self) -> float | None: ...
    @property
    def limit(self) -> float | None: ...
    @property
    def unit(self) -> str | None: ...
    @property
    def facts(self) -> Mapping[str, wire.Fact]: ...


def judged_figure(judged: Judged, language: wire.Language) -> str | None:
    """The value that a rule judged; None where it says nothing: something happened, and was held against no limit."""
    if judged.value is None or (judged.unit == "count" and judged.limit is None):
        return None
    if judged.unit == "seconds" and (left := _left(judged.facts, language)):
        return say("figure.now", language) if is_due(judged.facts) else left[0]
    return figure(judged.value, judged.unit, language)


def _left(facts: Mapping[str, wire.Fact], language: wire.Language) -> list[str]:
    """What is left in time and in steps, as far as they are foretold. That it is no whole step is not told."""
    seconds, steps = (facts.get(name) for name in ("eta_seconds", "eta_steps"))
    left = [duration(seconds, language)] if isinstance(seconds, int | float) else []
    if isinstance(steps, int | float) and (left == [] or round(steps) >= 1):
        left.append(say("figure.steps.one" if round(steps) == 1 else "figure.steps.other", language, n=round(steps)))
    return left


def named_figure(name: str, value: wire.Fact, language: wire.Language) -> str:
    """A fact in words: its name carries its unit (used_bytes, risen_ratio), a pid or a step is only counted."""
    if isinstance(value, str):
        return value
    kind = name.rsplit("_", 1)[-1]
    if unit := _UNIT_OF_SUFFIX.get(kind):
        return figure(value, unit, language)
    return plain(value) if isinstance(value, float) or kind in _COUNTED else str(value)


def how_soon(facts: Mapping[str, wire.Fact], language: wire.Language) -> str | None:
    """When a forecast comes true: "in about 14 min (6 steps)", "at any moment now"; None where nothing is foretold."""
    left = _left(facts, language)
    if not left:
        return None
    if is_due(facts):
        return say("figure.any_moment", language)
    time = left[0] if len(left) == 1 else say("figure.time_and_steps", language, time=left[0], steps=left[1])
    return say("figure.in_about", language, time=time)


def is_due(facts: Mapping[str, wire.Fact]) -> bool:
    """Whether what is foretold is to be expected at once: by the time that is left, else by the steps."""
    seconds, steps = (facts.get(name) for name in ("eta_seconds", "eta_steps"))
    if isinstance(seconds, int | float):
        return seconds < DUE_SECONDS
    return isinstance(steps, int | float) and round(steps) < 1


def _percent(ratio: float) -> str:
    """Whole percents; the last one before full with a decimal, so that 100 means full."""
    percent = ratio * 100
    return _rounded(math.floor(percent * 10) / 10, 1) if 99 <= percent < 100 else _rounded(percent, 0)  # noqa: PLR2004


def duration(seconds: float, language: wire.Language) -> str:
    """Two units at most: "45 s", "1 min 40 s", "12 min", "2 h 5 min", "3 d 4 h"; tenths below ten seconds."""
    if 0 < seconds < 9.95:  # noqa: PLR2004 - what would be rounded to 10
        return say("figure.seconds", language, count=_rounded(seconds, 1).removesuffix(".0"))
    return _in_units(max(0, math.floor(seconds + 0.5)), _DURATIONS, language)


def _in_units(whole: int, durations: Sequence[tuple[str, int]], language: wire.Language) -> str:
    start = next((index for index, (_, size) in enumerate(durations) if whole >= size), len(durations) - 1)
    parts: list[str] = []
    for key, size in durations[start : start + 2]:
        count, whole = divmod(whole, size)
        if count or not parts:
            parts.append(say(key, language, count=count))
        if key == "figure.minutes" and count >= SECONDS_READ_BELOW_MINUTES:
            break  # nobody reads the seconds of many minutes
    return " ".join(parts)


def stretch(seconds: float, language: wire.Language) -> str:
    """How long a stretch up to now is, as it is said after "the last": a single day in hours."""
    whole = math.floor(seconds + 0.5)
    if whole // _DAY_SECONDS != 1:
        return duration(seconds, language)
    return _in_units(whole, _DURATIONS[1:], language)


def printable(text: str) -> str:
    """A line for a terminal, which nothing in it commands: what cannot be seen is a replacement character."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)
