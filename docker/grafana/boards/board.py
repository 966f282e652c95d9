"""A dashboard: its variables, its panels from top to bottom, and the JSON that Grafana reads."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from boards.panel import DATASOURCE, Panel

COLUMNS = 24  # of Grafana's grid
SCHEMA_VERSION = 41  # of the dashboards of Grafana 12; a newer Grafana brings it up to date itself
TAG = "oomwatch"


class Variable(NamedTuple):
    """Values of a label, to choose from. `several`: any number of them at once, all at first."""

    name: str
    label: str
    metric: str  # a metric, with matchers where it depends on another variable
    several: bool = False


class Board(NamedTuple):
    """`parts`: a text is the head of a row, the panels that follow it are laid out from left to right."""

    uid: str
    title: str
    about: str
    variables: Sequence[Variable]
    parts: Sequence[str | Panel]


def as_json(board: Board) -> dict[str, Any]:
    """What Grafana reads from a file."""
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.about,
        "tags": [TAG],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,  # the cursor is shown in all panels at once
        "refresh": "5s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [_LINK_TO_THE_OTHERS],
        "templating": {"list": [_CHOICE_OF_DATASOURCE, *(_variable(one) for one in board.variables)]},
        "panels": list(_laid_out(board.parts)),
    }


def _laid_out(parts: Sequence[str | Panel]) -> Iterator[dict[str, Any]]:
    """Each part with its number and place: as many panels side by side as fit."""
    x = y = line_height = 0
    for number, part in enumerate(parts, start=1):
        width, height = (COLUMNS, 1) if isinstance(part, str) else (part.width, part.height)
        if x + width > COLUMNS:
            x, y, line_height = 0, y + line_height, 0
        place = {"x": x, "y": y, "w": width, "h": height}
        yield {"id": number, "gridPos": place, **(_row(part) if isinstance(part, str) else part.body)}
        x, line_height = x + width, max(line_height, height)


def _row(title: str) -> dict[str, Any]:
    return {"type": "row", "title": title, "collapsed": False, "panels": []}


def _variable(variable: Variable) -> dict[str, Any]:
    query = f"label_values({variable.metric}, {variable.name})"
    several = {"allValue": ".*", "current": {"text": ["All"], "value": ["$__all"]}} if variable.several else {}
    return {
        "name": variable.name,
        "label": variable.label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": variable.name},
        "definition": query,
        "refresh": 2,  # whenever the time range changes
        "sort": 3,  # by number where there is one: GPU 10 after GPU 9
        "multi": variable.several,
        "includeAll": variable.several,
        "hide": 0,
        "regex": "",
        **several,
    }


_CHOICE_OF_DATASOURCE: dict[str, Any] = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
    "current": {},
    "refresh": 1,
    "regex": "",
    "hide": 0,
    "multi": False,
    "includeAll": False,
}
_LINK_TO_THE_OTHERS: dict[str, Any] = {
    "title": "oomwatch",
    "type": "dashboards",
    "tags": [TAG],
    "asDropdown": False,
    "includeVars": True,
    "keepTime": True,
    "targetBlank": False,
    "icon": "external link",
    "tooltip": "",
    "url": "",
}
