"""Three servers on loopback with all that they share, and a balancer before them, as a site has them."""

import contextlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.acceptance.programs import ServerProgram
from tests.haproxy import haproxy_running
from tests.nats.server import NatsServer, nats_running
from tests.ports import free_port
from tests.postgres.server import PostgresServer, postgres_running

START_SECONDS = 60.0  # of programs on a busy machine
RULES = """
rules:
  - alert: full
    severity: critical
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    for: 1s
    keep_firing_for: 2s
    summary: "GPU {gpu} of {node} is {value} full"
  - alert: out_of_memory
    when: {kind: event, of: [device_oom], within: 10m}
    summary: "Out of memory on {node}"
notify:
  group_wait: 50ms
  group_interval: 0s
  repeat_interval: 1h
  channels:
    - {kind: webhook, name: ops, url: "RECEIVER"}
"""
HAPROXY = """
global
  maxconn 500
defaults
  mode tcp
  timeout connect 2s
  timeout client 10m
  timeout server 10m
listen oomwatch
  bind 127.0.0.1:PORT
  balance leastconn
  option httpchk GET /readyz
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
SERVERS
"""


class Replica(ServerProgram):
    """One of several servers, or what stands in for all of them."""

    def knows(self, nodes: Iterable[str]) -> bool:
        """Whether it has fresh readings of these nodes, whoever's agents they are."""
        return {one["node"] for one in self.get("/api/v1/nodes") if one["state"] == "live"} == set(nodes)

    def metric(self, name: str, **labels: str) -> float:
        with urllib.request.urlopen(self.url + "/metrics", timeout=10) as answer:  # noqa: S310 - loopback
            lines = answer.read().decode().splitlines()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        found = [line for line in lines if line.split("{")[0].split(" ")[0] == name]
        return sum(float(line.split()[-1]) for line in found if all(one in line for one in wanted))


class Several(NamedTuple):
    """Servers that are ready, and what they share."""

    replicas: Sequence[Replica]
    postgres: PostgresServer
    nats: NatsServer
    db: str


def rules_told_to(receiver_url: str, folder: Path) -> Path:
    """A file of the rules above, whose alerts are told there."""
    path = folder / "alerts.yaml"
    path.write_text(RULES.replace("RECEIVER", receiver_url), encoding="utf-8")
    return path


@contextlib.contextmanager
def three_servers(folder: Path, receiver_url: str) -> Iterator[Several]:
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(postgres_running())
        nats = stack.enter_context(nats_running(folder))
        db, rules = postgres.create("site"), rules_told_to(receiver_url, folder)
        shared = ("--db", db, "--cluster-nats", nats.url, "--flush-interval", "1s")
        replicas = [Replica(folder, rules, *shared, "--cluster-replica", name, name=f"server-{name}") for name in "abc"]
        for replica in replicas:
            replica.start()
            stack.callback(replica.end)
        within(START_SECONDS, "all are ready", lambda: all(one.ready()[0] == 200 for one in replicas))
        yield Several(replicas, postgres, nats, db)


@contextlib.contextmanager
def balancing(folder: Path, replicas: Sequence[Replica]) -> Iterator[int]:
    """A haproxy before them, as a site would set it up; gives its port."""
    port = free_port()
    servers = "\n".join(f"  server {one.name} 127.0.0.1:{one.port} check" for one in replicas)
    with haproxy_running(folder, HAPROXY.replace("PORT", str(port)).replace("SERVERS", servers)):
        yield port


def within(seconds: float, what: str, look: Callable[[], Any], explain: Callable[[], object] = lambda: "") -> float:
    """How long it took. Fails with what was seen where it takes longer."""
    began = time.monotonic()
    while not look():
        if time.monotonic() - began > seconds:
            raise AssertionError(f"not within {seconds:g} s: {what}; {explain()}")
        time.sleep(0.05)  # between two looks, never instead of one
    return time.monotonic() - began
