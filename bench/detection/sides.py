"""The sides that are compared, each started whole and ready: every node's cards to one webhook."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
from tests.acceptance.programs import Server, agent, ending
from tests.nvml.standin import ScriptedGpus
from tests.ports import free_port
from tests.prometheus.servers import alertmanager, prometheus, scraping, until

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 90.0
THRESHOLD = 0.85  # of gpu_memory_high
Nodes = Mapping[str, ScriptedGpus]

NOTIFY = """
notify:
  group_interval: 0s  # each card is a group of its own
  channels:
    - {{kind: webhook, name: bench, url: "{url}"}}
rules:
"""


class Pace(NamedTuple):
    """How an exporter with Prometheus and Alertmanager is set up."""

    collect_every_seconds: float | None  # None: at each scrape
    every: str  # scrape and evaluation
    hold: str  # the rule's `for`
    group_wait: str


AGGRESSIVE = Pace(None, "1s", "0s", "0s")
USUAL = Pace(30.0, "15s", "30s", "30s")


@contextlib.contextmanager
def ours(folder: Path, nodes: Nodes, hook: str) -> Iterator[None]:
    """A server and an agent a node, both as shipped; the rule without its hold time."""
    rules = folder / "alerts.yaml"
    shipped = (ROOT / "alerts.yaml").read_text(encoding="utf-8")
    body = shipped.split("\nrules:\n", 1)[1].split("\nnotify:", 1)[0]
    rules.write_text(NOTIFY.format(url=hook) + body.replace("for: 30s", "for: 0s", 1), encoding="utf-8")
    server = Server(folder, rules, "--log-level", "warning")
    agents = [agent(folder, server, node=name, **gpus.environment) for name, gpus in nodes.items()]
    with ending(server, *agents):
        until("all agents", lambda: len(server.get("/api/v1/nodes")) == len(nodes), seconds=READY_SECONDS)
        yield


@contextlib.contextmanager
def alternative(nodes: Nodes, hook: str, pace: Pace) -> Iterator[None]:
    """An exporter a node, Prometheus, Alertmanager."""
    with contextlib.ExitStack() as stack:
        targets = {name: stack.enter_context(_exporter(gpus, pace)) for name, gpus in nodes.items()}
        manager = stack.enter_context(alertmanager(routing(hook, pace)))
        config = scraping(
            alertmanagers=[manager.url],
            rule_files=["rules.yml"],
            scrape_interval=pace.every,
            evaluation_interval=pace.every,
        )
        files = {"rules.yml": _rules(pace)}
        real = stack.enter_context(prometheus(_with_nodes(config, targets), files=files, resend_delay="1m"))
        until("all exporters", lambda: len(real.query("up == 1")) == len(nodes), seconds=READY_SECONDS)
        managers = "/api/v1/alertmanagers"
        until("Alertmanager", lambda: real.get(managers)["data"]["activeAlertmanagers"], seconds=READY_SECONDS)
        yield


@contextlib.contextmanager
def _exporter(gpus: ScriptedGpus, pace: Pace) -> Iterator[str]:
    """Its address, without waiting for it: Prometheus tells whether it is there."""
    port = free_port()
    command = [sys.executable, "-m", "bench.detection.exporter", "--port", str(port)]
    if pace.collect_every_seconds is not None:
        command += ["--collect-every", str(pace.collect_every_seconds)]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **gpus.environment}) as process:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


def _with_nodes(config: str, targets: Mapping[str, str]) -> str:
    """The configuration with these targets, each labelled by its node."""
    told = msgspec.json.decode(config)
    nodes = [{"targets": [target], "labels": {"node": node}} for node, target in targets.items()]
    told["scrape_configs"][0]["static_configs"] = nodes
    return msgspec.json.encode(told).decode()


def _rules(pace: Pace) -> str:
    expression = f"gpu_memory_used_bytes / gpu_memory_total_bytes > {THRESHOLD}"
    rule = {"alert": "GpuMemoryHigh", "expr": expression, "for": pace.hold, "labels": {"severity": "warning"}}
    return msgspec.json.encode({"groups": [{"name": "gpu", "rules": [rule]}]}).decode()


def routing(hook: str, pace: Pace) -> str:
    """Each card is a group of its own: `...` groups by all labels."""
    route = {"receiver": "bench", "group_by": ["..."], "group_wait": pace.group_wait}
    receivers = [{"name": "bench", "webhook_configs": [{"url": hook}]}]
    return msgspec.json.encode({"route": route, "receivers": receivers}).decode()
