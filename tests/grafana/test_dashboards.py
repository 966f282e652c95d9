"""What can be said of the dashboards without a server: they are as boards/ has them, and Grafana can show them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.grafana.dashboards import DASHBOARDS, FOLDER, ROOT, Asked, panels, queries, variables

EACH = pytest.mark.parametrize("uid", DASHBOARDS)
EACH_QUERY = pytest.mark.parametrize("asked", queries(), ids=str)
MAKE = ROOT / "docker/grafana/make.py"
# Grafana's names for units. Whether a panel's is one of them cannot be seen before it shows nothing of the kind.
UNITS = {"none", "bytes", "percentunit", "s", "cpm", "mps", "celsius", "watt"}


def _make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-B", str(MAKE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _links(panel: dict[str, Any]) -> list[str]:
    return [link["url"] for link in panel["fieldConfig"]["defaults"].get("links", ())]


def test_the_dashboards_are_what_the_script_makes_of_the_boards() -> None:
    told = _make("--check")
    assert (told.returncode, told.stderr) == (0, "")


def test_the_script_names_a_dashboard_that_was_changed_by_hand(tmp_path: Path) -> None:
    """In a copy: the script finds its folder beside itself."""
    for path in [MAKE, *MAKE.parent.glob("boards/*.py"), *FOLDER.glob("*.json")]:
        copy = tmp_path / path.relative_to(MAKE.parent)
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    changed = tmp_path / "dashboards/oomwatch-gpu.json"
    changed.write_text(changed.read_text().replace("Headroom", "Room"))
    (tmp_path / "dashboards/old.json").write_text("{}")
    changed.write_text(changed.read_text() + " ")
    command = [sys.executable, "-B", str(tmp_path / "make.py")]
    told = subprocess.run([*command, "--check"], capture_output=True, text=True, check=False)
    assert told.returncode == 1
    assert "oomwatch-gpu.json" in told.stderr
    assert "old.json" in told.stderr
    subprocess.run(command, check=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "dashboards").iterdir()} == {
        path.name: path.read_bytes() for path in FOLDER.iterdir()
    }


def test_there_is_a_dashboard_for_the_fleet_a_run_a_gpu_and_the_alerting() -> None:
    assert set(DASHBOARDS) == {"oomwatch-fleet", "oomwatch-run", "oomwatch-gpu", "oomwatch-alerting"}


@EACH
def test_a_dashboard_keeps_its_address_and_takes_any_prometheus(uid: str) -> None:
    dashboard = DASHBOARDS[uid]
    assert dashboard["uid"] == uid
    assert dashboard["templating"]["list"][0]["type"] == "datasource"
    sources = [one["datasource"]["uid"] for panel in panels(uid) for one in (panel, *panel["targets"])]
    sources += [one["datasource"]["uid"] for one in dashboard["templating"]["list"][1:]]
    assert set(sources) == {"${datasource}"}


@EACH
def test_every_panel_says_what_it_shows_and_in_which_unit(uid: str) -> None:
    for panel in panels(uid):
        assert panel["title"], panel
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]


@EACH
def test_no_panel_is_of_a_kind_that_grafana_has_removed(uid: str) -> None:
    assert {panel["type"] for panel in panels(uid)} <= {"stat", "state-timeline", "table", "timeseries"}


@EACH
def test_no_two_panels_overlap_or_bear_one_number(uid: str) -> None:
    taken: set[tuple[int, int]] = set()
    every = DASHBOARDS[uid]["panels"]
    for panel in every:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in every}) == len(every)


@EACH
def test_a_click_leads_to_a_dashboard_that_knows_the_variables(uid: str) -> None:
    for panel in panels(uid):
        asked = {label for target in panel["targets"] for label in _labels_of(target["expr"])}
        for url in _links(panel):
            found = re.match(r"/d/([\w-]+)\?", url)
            assert found is not None, url
            given = dict(re.findall(r"&var-(\w+)=\$\{__(?:field\.labels|data\.fields)\.(\w+)\}", url))
            assert set(given) == {variable.name for variable in variables(found[1])}, url
            assert set(given.values()) <= asked, url


@EACH
def test_each_dashboard_links_to_the_others(uid: str) -> None:
    (link,) = DASHBOARDS[uid]["links"]
    assert (link["type"], link["keepTime"], link["includeVars"]) == ("dashboards", True, True)
    assert set(link["tags"]) <= set(DASHBOARDS[uid]["tags"])


@EACH_QUERY
def test_a_query_follows_the_scrape_interval_and_the_time_shown(asked: Asked) -> None:
    assert set(re.findall(r"\[(.*?)\]", asked.expression)) <= {"$__rate_interval", "$__range"}


def test_grafana_is_provisioned_with_the_dashboards_and_the_prometheus_beside_it() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    scraping = yaml.safe_load((ROOT / "docker/prometheus.yml").read_text(encoding="utf-8"))
    provisioning = ROOT / "docker/grafana/provisioning"
    source = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text(encoding="utf-8"))["datasources"][0]
    provider = yaml.safe_load((provisioning / "dashboards/oomwatch.yml").read_text(encoding="utf-8"))["providers"][0]
    mounts = dict(volume.split(":")[:2] for volume in compose["grafana"]["volumes"])
    host, _, port = source["url"].removeprefix("http://").partition(":")
    assert compose[host]["ports"][0].endswith(f":{port}")
    assert source["jsonData"]["timeInterval"] == scraping["global"]["scrape_interval"]
    assert mounts["./docker/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert mounts["./docker/grafana/dashboards"] == provider["options"]["path"]
    assert provider["folder"] == "oomwatch"
    home = compose["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == provider["options"]["path"] + "/oomwatch-fleet.json"


def _labels_of(expression: str) -> set[str]:
    grouped = re.findall(r"(?:by|on) \((.*?)\)", expression)
    return {label.strip() for labels in grouped for label in labels.split(",")}
