"""Three servers on loopback with all that they share, and a balancer before them, as a site has them."""

import contextlib
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.acceptance.programs import Program
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


class ServerProgram:
    """`oomwatch serve`, alone or as one of several; may be killed and started again."""

    def __init__(self, name: str, folder: Path, rules: Path, *more: str) -> None:
        self.name = name
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._arguments = [
            "-m",
            "oomwatch",
            "serve",
            "--listen",
            f"127.0.0.1:{self.port}",
            "--rules",
            str(rules),
            *more,
        ]
        self.program: Program

    def start(self) -> None:
        self.program = Program(f"server-{self.name}", self._arguments, self._folder)

    def end(self) -> None:
        if self.program.running:
            self.program.kill()

    def ready(self) -> tuple[int, list[str]]:
        """The status of /readyz (0: nobody answers), and what it says is amiss."""
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=10) as answer:  # noqa: S310 - loopback
                return answer.status, msgspec.json.decode(answer.read())["problems"]
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, msgspec.json.decode(refusal.read())["problems"]
        except OSError:
            assert self.program.running, self.program.output
            return 0, ["nobody answers"]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:  # noqa: S310 - loopback
            return msgspec.json.decode(answer.read())

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

    replicas: Sequence[ServerProgram]
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
        replicas = [ServerProgram(name, folder, rules, *shared, "--cluster-replica", name) for name in "abc"]
        for replica in replicas:
            replica.start()
            stack.callback(replica.end)
        within(START_SECONDS, "all are ready", lambda: all(one.ready()[0] == 200 for one in replicas))
        yield Several(replicas, postgres, nats, db)


@contextlib.contextmanager
def balancing(folder: Path, replicas: Sequence[ServerProgram]) -> Iterator[int]:
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
