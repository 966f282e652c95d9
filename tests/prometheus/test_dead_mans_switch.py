"""A real Prometheus and a real Alertmanager notice a server that fails, and one that is gone."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.core.story import SHIPPED
from tests.prometheus.servers import Alertmanager, Prometheus, alertmanager, need, prometheus, scraping, until
from tests.server.running_server import RunningServer, serving, settings_in

from oomwatch.promrules.rulefile import prometheus_rules

ROUTING = "{route: {receiver: nobody, group_wait: 0s, group_interval: 1s}, receivers: [{name: nobody}]}"
SOON = ("for: 1m", "for: 2m")  # of the exported rules: not what is tried here


@contextlib.contextmanager
def watching(server: RunningServer) -> Iterator[tuple[Prometheus, Alertmanager]]:
    rules = prometheus_rules(SHIPPED)
    for wait in SOON:
        rules = rules.replace(wait, "for: 0s")
    with alertmanager(ROUTING) as manager:
        config = scraping(server.url, alertmanagers=[manager.url], rule_files=["rules.yml"])
        with prometheus(config, files={"rules.yml": rules}) as real:
            until("the watchdog to fire", lambda: "OomwatchWatchdog" in firing(manager))
            yield real, manager


def firing(manager: Alertmanager) -> set[str]:
    return {alert["labels"]["alertname"] for alert in manager.alerts()}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    need("prometheus")
    need("prometheus-alertmanager")
    with serving(settings_in(tmp_path)) as running:
        yield running


def test_a_server_that_is_gone_is_told_of_and_its_watchdog_ends(server: RunningServer) -> None:
    with watching(server) as (real, manager):
        server.stop()
        until("the end to be told", lambda: "OomwatchDown" in firing(manager), seconds=60)
        until("the watchdog to end", lambda: "OomwatchWatchdog" not in firing(manager), seconds=60)
        assert [series.value for series in real.query('up{job="oomwatch"}')] == [0]


def test_a_server_that_answers_and_no_longer_judges_is_told_of_and_its_watchdog_ends(server: RunningServer) -> None:
    with watching(server) as (real, manager):
        server.end_task("beat")
        until("the failure to be told", lambda: "OomwatchFails" in firing(manager), seconds=60)
        until("the watchdog to end", lambda: "OomwatchWatchdog" not in firing(manager), seconds=60)
        assert [series.value for series in real.query('up{job="oomwatch"}')] == [1]
