"""Times that stand in a log's lines, by the number of the line."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timezone

# What loggers and collectors write: 2026-07-23 18:43:23,844 or with a T; vLLM's has no year: INFO 01-22 09:42:00.
_FULL = re.compile(rb"(20\d\d)[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
_NO_YEAR = re.compile(rb"(?:INFO|WARNING|DEBUG|ERROR) ((\d\d)-(\d\d) (\d\d):(\d\d):(\d\d))")
_WITHIN_BYTES = 300  # of a line's beginning: what comes later is text
_SOME_YEAR = 2000  # a leap year, for stamps without one


class Stamps:
    """The times of one log. Those of the commonest form count: others may be of another zone, or lack the year."""

    def __init__(self) -> None:
        self._by_form: dict[str, tuple[list[int], list[float]]] = {"full": ([], []), "no year": ([], [])}
        self._counts: Counter[str] = Counter()

    def feed(self, lines: Iterable[bytes], number: int) -> None:
        """Lines of the log, from line `number` on."""
        for line_number, line in enumerate(lines, start=number):
            found = _stamp(line[:_WITHIN_BYTES])
            if found is None:
                continue
            form, at = found
            self._counts[form] += 1
            numbers, times = self._by_form[form]
            if not times or at > times[-1]:  # never back: a line that came late tells an earlier time
                numbers.append(line_number)
                times.append(at)

    def at(self, line: int | None) -> float | None:
        """The latest time told up to a line; None where there is none before it."""
        if not self._counts or line is None:
            return None
        numbers, times = self._by_form[self._counts.most_common(1)[0][0]]
        place = bisect_right(numbers, line)
        return times[place - 1] if place else None


def _stamp(line: bytes) -> tuple[str, float] | None:
    """The form of a line's time and Unix seconds, as if it were UTC: only differences count."""
    if match := _FULL.search(line):
        year, month, day, hour, minute, second = (int(match[index]) for index in range(1, 7))
        fraction = float(b"0." + match[7]) if match[7] else 0.0
        form = "full"
    elif match := _NO_YEAR.search(line):
        month, day, hour, minute, second = (int(match[index]) for index in range(2, 7))
        year, fraction, form = _SOME_YEAR, 0.0, "no year"
    else:
        return None
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:  # digits that only look like a time
        return None
    return form, moment.timestamp() + fraction
