"""promtool's notation for values over time, and for the name of a series with its labels. Pure."""

import re

from oomwatch.units import parse_quantity

VALUES_MAX = 100_000
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?:%|[A-Za-z]+?)?"
_PART = re.compile(rf"(?P<start>_|{_NUMBER})(?:(?P<sign>[+-])(?P<step>{_NUMBER}))?(?:x(?P<count>\d{{1,6}}))?")
_SERIES = re.compile(r"(?P<name>[a-z][a-z0-9_]*)(?:\{(?P<labels>[^{}]*)\})?")
_LABEL = re.compile(r'\s*(?P<name>[a-z_]+)\s*=\s*"(?P<value>[^"]*)"\s*')


class Values:
    """Values at equal distances; None is missing. `a+bxn` is a, a+b, ... a+n*b; `axn` is a, n more times; `_` missing.

    A number may have a unit: 70GiB+1GiBx30, 85%, 30s.
    """

    def __init__(self, text: str) -> None:
        """Raises ValueError that shows the accepted forms."""
        self.values: list[float | None] = []
        for part in text.split():
            self.values += _expanded(part)
            if len(self.values) > VALUES_MAX:
                raise ValueError(f"more than {VALUES_MAX} values")


def _expanded(part: str) -> list[float | None]:
    match = _PART.fullmatch(part)
    if match is None or (match["start"] == "_" and match["sign"]) or (match["sign"] and not match["count"]):
        raise ValueError(f'"{part}" is no series of values; write for example 70GiB+1GiBx30, 5x10, _x3 or 12')
    count = int(match["count"] or 0)
    if count > VALUES_MAX:
        raise ValueError(f"more than {VALUES_MAX} values")
    if match["start"] == "_":
        return [None] * max(1, count)
    start = float(parse_quantity(match["start"]))
    step = float(parse_quantity(match["step"])) * (-1 if match["sign"] == "-" else 1) if match["sign"] else 0.0
    return [start + step * index for index in range(count + 1)]


class SeriesName:
    """`gpu_used_bytes{node="n",gpu="0"}`: a name and its labels."""

    def __init__(self, text: str) -> None:
        """Raises ValueError that shows the form."""
        match = _SERIES.fullmatch(text.strip())
        if match is None:
            raise ValueError(f'"{text}" is no series; write for example gpu_used_bytes{{node="n",gpu="0"}}')
        self.name = match["name"]
        self.labels: dict[str, str] = {}
        for part in (match["labels"] or "").split(","):
            if not part.strip():
                continue
            label = _LABEL.fullmatch(part)
            if label is None:
                raise ValueError(f'"{part.strip()}" is no label; write for example gpu="0"')
            self.labels[label["name"]] = label["value"]
