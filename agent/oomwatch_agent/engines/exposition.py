"""Reading Prometheus' text format (exposition format 0.0.4), as far as a few named metrics need it. PURE.

The agent is installed into trainers' images, where prometheus_client may be pinned by the engine: this reads a page of
some thousand lines without it, and looks only at the lines that were asked for.
"""

import math
import re
from collections.abc import Collection, Iterator

import msgspec

_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_LABEL = re.compile(r'[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*"((?:\\.|[^"\\])*)"[ \t]*(?:,[ \t]*|(?=\}))')
_REST = re.compile(
    r"[ \t]+(?P<value>[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|Inf|NaN))(?:[ \t]+-?\d+)?[ \t]*\r?"  # timestamp
)
_ESCAPED = re.compile(r"\\(.)")


class MalformedMetricsError(ValueError):
    """A line of a wanted metric is not of the text format. The text shows the line."""


class Metric(msgspec.Struct, frozen=True):
    """One line: a name, its labels, a finite number."""

    name: str
    labels: dict[str, str]
    value: float


def parse(page: str, names: Collection[str]) -> Iterator[Metric]:
    """The lines of these metrics; NaN and infinite values are left out. Raises MalformedMetricsError."""
    for line in page.split("\n"):  # not splitlines: a label's value may hold the other line breaks of Unicode
        name = _NAME.match(line)
        if name is not None and name[0] in names:
            metric = _metric(name[0], line, name.end())
            if math.isfinite(metric.value):
                yield metric


def _metric(name: str, line: str, place: int) -> Metric:
    labels: dict[str, str] = {}
    if line[place : place + 1] == "{":
        place += 1
        while (label := _LABEL.match(line, place)) is not None:
            labels[label[1]] = _ESCAPED.sub(_unescaped, label[2])
            place = label.end()
        if line[place : place + 1] != "}":
            raise MalformedMetricsError(f'a label is not name="value" in {line[:200]!r}')
        place += 1
    rest = _REST.fullmatch(line, place)
    if rest is None:
        raise MalformedMetricsError(f"no number in {line[:200]!r}")
    return Metric(name, labels, float(rest["value"]))


def _unescaped(escaped: "re.Match[str]") -> str:
    return "\n" if escaped[1] == "n" else escaped[1]
