"""The two sides, each started whole, with one webhook to tell: the server alone, or Prometheus with Alertmanager."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil
import yaml
from bench.compare.programs import READY_SECONDS, ROOT, Helper, helping
from bench.compare.readings import node_name
from bench.detection.sides import AGGRESSIVE, routing
from tests.acceptance.programs import Server
from tests.ports import free_port
from tests.prometheus.servers import Prometheus, alertmanager, prometheus, scraping, until

from oomwatch.promrules.rulefile import prometheus_rules
from oomwatch.rulefile import parse_rules
from oomwatch.store.store import Store

SILENT: dict[str, Any] = {"alert": "agent_silent", "expr": "up == 0", "for": "30s", "labels": {"severity": "critical"}}
AT_ONCE = "bench_full"  # a rule more, without a hold time, on both sides: how quick each is
FULL = 0.9
OURS = f"""
  - alert: {AT_ONCE}
    when: {{{{kind: threshold, metric: gpu_used_ratio, above: {FULL:.0%}}}}}
    summary: full
notify:
  group_interval: 0s
  channels:
    - {{{{kind: webhook, name: bench, url: "{{url}}"}}}}
"""
# As people write the same by hand: quicker to judge, and begins anew at every trough of a step.
PLAIN: list[dict[str, Any]] = [
    {"alert": "gpu_memory_high", "expr": "oomwatch_gpu_used_ratio > 0.85", "for": "30s", "keep_firing_for": "2m"},
    {"alert": "host_memory_high", "expr": "oomwatch_host_memory_ratio > 0.88", "for": "30s", "keep_firing_for": "2m"},
    {"alert": "host_memory_high", "expr": "oomwatch_host_memory_ratio > 0.93", "for": "10s", "keep_firing_for": "2m"},
    SILENT,
]


class Side(NamedTuple):
    """What is measured, and the program that gives it its load."""

    processes: Sequence[psutil.Process]
    load: Helper
    port: int  # at which people ask
    server: Server | None = None
    prometheus: Prometheus | None = None


@contextlib.contextmanager
def ours(folder: Path, nodes: int, hook: str, *, python: str | None = None) -> Iterator[Side]:
    """The server by all shipped rules, run by that interpreter or ours, and its agents."""
    rules = folder / "alerts.yaml"
    shipped = (ROOT / "alerts.yaml").read_text(encoding="utf-8").split("\nnotify:", 1)[0]
    rules.write_text(shipped + OURS.format(url=hook), encoding="utf-8")
    # As from its second start on: the first one makes the tables, for which it loads Alembic, 11 MiB.
    Store.open(f"sqlite:///{folder / 'oomwatch.db'}").close()
    server = Server(folder, rules, "--log-level", "warning", python=python)
    with ended(server), helping("agents", "--port", str(server.port), "--nodes", str(nodes)) as load:
        yield Side([psutil.Process(server.program.pid)], load, server.port, server=server)


@contextlib.contextmanager
def ended(server: Server) -> Iterator[None]:
    try:
        yield
    finally:
        with contextlib.suppress(psutil.NoSuchProcess, subprocess.TimeoutExpired):
            server.program.kill()


@contextlib.contextmanager
def theirs(nodes: int, hook: str, *, plain: bool) -> Iterator[Side]:
    """Prometheus and Alertmanager, scraping and judging once a second, and their exporters."""
    with contextlib.ExitStack() as stack:
        port = free_port()
        load = stack.enter_context(helping("exporters", "--port", str(port), "--nodes", str(nodes)))
        manager = stack.enter_context(alertmanager(routing(hook, AGGRESSIVE)))
        files = {"rules.yml": yaml.safe_dump({"groups": [{"name": "all", "rules": _rules(plain=plain)}]})}
        config = _scraping_all(manager.url, nodes, port)
        real = stack.enter_context(prometheus(config, files=files, resend_delay="1m"))
        managers = "/api/v1/alertmanagers"
        until("Alertmanager", lambda: real.get(managers)["data"]["activeAlertmanagers"], seconds=READY_SECONDS)
        until("all exporters", lambda: len(real.query("up == 1")) == nodes, seconds=READY_SECONDS)
        processes = [psutil.Process(real.pid), psutil.Process(manager.pid)]
        yield Side(processes, load, int(real.url.rsplit(":", 1)[1]), prometheus=real)


def _rules(*, plain: bool) -> list[dict[str, Any]]:
    """Those that Prometheus can judge itself, as `oomwatch rules export` writes them; or as by hand."""
    at_once = {"alert": AT_ONCE, "expr": f"oomwatch_gpu_used_ratio > {FULL}", "labels": {"severity": "warning"}}
    if plain:
        return [*PLAIN, at_once]
    rules = parse_rules((ROOT / "alerts.yaml").read_text(encoding="utf-8")).rules
    groups = yaml.safe_load(prometheus_rules(rules, keep_firing_for=True))["groups"]
    told = [one for one in groups[0]["rules"] if not _asks_the_server(one)]
    return [*(SILENT if one["alert"] == "agent_silent" else one for one in told), at_once]


def _asks_the_server(rule: dict[str, Any]) -> bool:
    """Whether oomwatch has judged it, and Prometheus only repeats it."""
    return str(rule["expr"]).startswith("sum without (alert)")


def _scraping_all(manager: str, nodes: int, port: int) -> str:
    """Each node is a target of its own, as it would be, though all are at one address."""
    config = msgspec.json.decode(
        scraping(alertmanagers=[manager], rule_files=["rules.yml"], scrape_interval="1s", evaluation_interval="1s")
    )
    names = [node_name(number) for number in range(nodes)]
    config["scrape_configs"][0]["static_configs"] = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"node": name, "__metrics_path__": f"/{name}/metrics"}}
        for name in names
    ]
    return msgspec.json.encode(config).decode()
