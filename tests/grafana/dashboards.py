"""The committed dashboards, read as Grafana reads them: panels, variables, and queries with the variables filled in."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docker/grafana/dashboards"
DASHBOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))
}
# What Grafana puts in for its own variables, with a scrape each second: four scrapes; the time that is shown.
BUILT_IN = {"__rate_interval": "4s", "__range": "30m"}


class Asked(NamedTuple):
    """A query and where it stands."""

    dashboard: str
    panel: str
    expression: str

    def __str__(self) -> str:
        return f"{self.dashboard}: {self.panel}"


class Variable(NamedTuple):
    """A variable whose values are those of a label of a metric: `label_values(metric{matchers}, label)`."""

    name: str
    series: str
    label: str
    several: bool

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> "Variable":
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", told["query"]["query"])
        assert found is not None, told["query"]
        return cls(told["name"], found[1], found[2], told["multi"])


def panels(uid: str) -> list[dict[str, Any]]:
    """Those that show something: rows are none."""
    return [panel for panel in DASHBOARDS[uid]["panels"] if panel["type"] != "row"]


def queries() -> list[Asked]:
    return [
        Asked(uid, panel["title"], target["expr"])
        for uid in DASHBOARDS
        for panel in panels(uid)
        for target in panel["targets"]
    ]


def variables(uid: str) -> Iterator[Variable]:
    """Those that a person chooses from, in the order in which they depend on each other."""
    for told in DASHBOARDS[uid]["templating"]["list"]:
        if told["type"] == "query":
            yield Variable.read(told)


def filled_in(expression: str, values: Mapping[str, str]) -> str:
    """The query that Grafana sends. Raises KeyError for a variable that the dashboard lacks."""
    return re.sub(r"\$(\w+)", lambda found: {**BUILT_IN, **values}[found[1]], expression)


def metrics_of(expression: str) -> set[str]:
    """Names of metrics of ours and of our process."""
    return set(re.findall(r"\b(?:oomwatch|process)_\w+", expression))
