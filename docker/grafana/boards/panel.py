"""The kinds of panel that the dashboards use: curves, single values, tables and states over time."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
NONE = "none"  # Grafana's word for a plain number
Steps = Sequence[tuple[float | None, str]]  # from which value on (None: the lowest) which colour
NEUTRAL: Steps = ((None, "text"),)
FULLNESS: Steps = ((None, "green"), (0.85, "orange"), (0.95, "red"))  # the bounds of the shipped rules
SOON: Steps = ((None, "red"), (600, "orange"), (3600, "text"))  # seconds until it runs out
GOOD_AT_ZERO: Steps = ((None, "green"), (1, "red"))
GOOD_AT_ONE: Steps = ((None, "red"), (1, "green"))


class Query(NamedTuple):
    """PromQL, and what the curve is called."""

    expression: str
    legend: str = ""


class Panel(NamedTuple):
    """A panel's size on the grid, and all else that Grafana wants to know of it."""

    width: int
    height: int
    body: dict[str, Any]


class Link(NamedTuple):
    """To another dashboard, with the values of some of its variables: labels of the series clicked on."""

    title: str
    uid: str
    labels: Sequence[str]


def curves(
    title: str,
    unit: str,
    *queries: Query,
    about: str,
    width: int = 8,
    bounds: tuple[float | None, float | None] = (0, None),
    dashed: str | None = None,
    link: Link | None = None,
) -> Panel:
    """Series over time. `dashed`: a pattern; series whose name fits it are bounds or parts of the others."""
    defaults = {
        "unit": unit,
        **_bounds(bounds),
        "custom": {"lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": False},
        "links": [_link(link, "__field.labels")] if link else [],
    }
    overrides = [_dashes(dashed)] if dashed else []
    options = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    targets = [_target(query, number) for number, query in enumerate(queries)]
    return _panel("timeseries", title, about, (width, 8), defaults, options, targets, overrides=overrides)


def value(
    title: str,
    unit: str,
    query: Query,
    *,
    about: str,
    steps: Steps = NEUTRAL,
    width: int = 4,
    bounds: tuple[float | None, float | None] = (None, None),
    nothing: str = "No data",
) -> Panel:
    """One number, as it is now, coloured by how good it is; with a legend, the series' name instead.

    `nothing`: what is shown where there is no series.
    """
    defaults = {"unit": unit, **_bounds(bounds), "thresholds": _thresholds(steps), "noValue": nothing}
    options = {
        "colorMode": "value" if steps is NEUTRAL else "background",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "name" if query.legend else "auto",
    }
    return _panel("stat", title, about, (width, 4), defaults, options, [_target(query, 0, now=True)])


def table(
    title: str,
    unit: str,
    query: Query,
    *,
    about: str,
    width: int = 12,
    steps: Steps = NEUTRAL,
    link: Link | None = None,
    hidden: Sequence[str] = (),
    titles: Mapping[str, str] = {},
    highest_first: bool = True,
) -> Panel:
    """One row a series, as it is now; its labels are the columns."""
    value_title = titles.get("Value", "Value")
    defaults = {
        "unit": unit,
        "custom": {"align": "auto", "cellOptions": {"type": "auto"}},
        "links": [_link(link, "__data.fields")] if link else [],
    }
    coloured = [
        {"id": "thresholds", "value": _thresholds(steps)},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
    ]
    overrides = [{"matcher": {"id": "byName", "options": value_title}, "properties": coloured}]
    names = {"excludeByName": dict.fromkeys(("Time", *hidden), True), "renameByName": dict(titles), "indexByName": {}}
    options = {"showHeader": True, "sortBy": [{"displayName": value_title, "desc": highest_first}]}
    target = {**_target(query, 0, now=True), "format": "table"}
    panel = _panel("table", title, about, (width, 8), defaults, options, [target], overrides=overrides)
    panel.body["transformations"] = [{"id": "organize", "options": names}]
    return panel


def spread(title: str, histogram: str, *, about: str, width: int = 8) -> Panel:
    """How long something takes: median and 99th percentile of a histogram in seconds."""
    buckets = f"sum by (le) (rate({histogram}_bucket[$__rate_interval]))"
    queries = [Query(f"histogram_quantile({q}, {buckets})", word) for q, word in ((0.5, "median"), (0.99, "p99"))]
    return curves(title, "s", *queries, about=about, width=width)


def states(title: str, query: Query, words: Mapping[int, tuple[str, str]], *, about: str, width: int = 12) -> Panel:
    """What each series was over time. `words`: a value's word and colour."""
    told = {str(one): {"text": word, "color": colour, "index": one} for one, (word, colour) in words.items()}
    defaults = {
        "unit": NONE,
        "mappings": [{"type": "value", "options": told}],
        "custom": {"lineWidth": 0, "fillOpacity": 70, "spanNulls": False},
    }
    options = {"showValue": "never", "mergeValues": True, "rowHeight": 0.9, "legend": {"showLegend": False}}
    return _panel("state-timeline", title, about, (width, 8), defaults, options, [_target(query, 0)])


def _panel(
    kind: str,
    title: str,
    about: str,
    size: tuple[int, int],
    defaults: dict[str, Any],
    options: dict[str, Any],
    targets: list[dict[str, Any]],
    *,
    overrides: Sequence[dict[str, Any]] = (),
) -> Panel:
    body = {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
        "options": options,
        "targets": targets,
    }
    return Panel(*size, body)


def _target(query: Query, number: int, *, now: bool = False) -> dict[str, Any]:
    return {
        "refId": chr(ord("A") + number),
        "datasource": DATASOURCE,
        "expr": query.expression,
        "legendFormat": query.legend,
        "instant": now,
        "range": not now,
    }


def _link(link: Link, fields: str) -> dict[str, Any]:
    chosen = "".join(f"&var-{label}=${{{fields}.{label}}}" for label in link.labels)
    return {"title": link.title, "url": f"/d/{link.uid}?${{__url_time_range}}&${{datasource:queryparam}}{chosen}"}


def _dashes(pattern: str) -> dict[str, Any]:
    style = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [6, 6]}}
    return {"matcher": {"id": "byRegexp", "options": pattern}, "properties": [style]}


def _thresholds(steps: Steps) -> dict[str, Any]:
    return {"mode": "absolute", "steps": [{"color": colour, "value": value} for value, colour in steps]}


def _bounds(bounds: tuple[float | None, float | None]) -> dict[str, float]:
    return {name: bound for name, bound in zip(("min", "max"), bounds, strict=True) if bound is not None}
