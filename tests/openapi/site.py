"""A server with something of everything in it, closed to whoever shows no token: the description is held against it."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in
from tests.server.test_incidents import Accident

from oomwatch import wire
from oomwatch.incident.folder import Folder
from oomwatch.settings import database_address, incidents_path
from oomwatch.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
NODE, RUN, RULE, TEMPLATE = "gpu-07", "qwen7b", "full", "T1"
ODD = "gpu/08\n?a=b"  # what a node and a run may be called
TOKENS = {"reader": "look-0123456789", "operator": "act-0123456789", "agent": "send-0123456789"}
RULES = """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: "GPU {gpu} of {node} is {value} full"
  - alert: out_of_memory
    severity: critical
    when: {kind: event, of: [device_oom], within: 10m}
    summary: "Out of memory on {node}"
notify:
  channels:
    - {kind: webhook, name: ops, url: "http://127.0.0.1:9/"}
"""


def bearer(role: str) -> Mapping[str, str]:
    """The header of somebody with this role's token."""
    return {"Authorization": f"Bearer {TOKENS[role]}"}


@contextlib.contextmanager
def site(folder: Path) -> Iterator[RunningServer]:
    """Two nodes, a run with steps and a configuration, an alert that fires, and the report of an incident."""
    rules = folder / "alerts.yaml"
    rules.write_text(RULES, encoding="utf-8")
    settings = settings_in(
        folder,
        reader_token=TOKENS["reader"],
        operator_token=TOKENS["operator"],
        token=TOKENS["agent"],
        rules_editable=True,
    )
    with contextlib.closing(Store.open(database_address(settings))) as store:
        Accident(store, Folder(incidents_path(settings, Path(database_address(settings))), 5)).wait_and_write()
    with serving(settings) as server, contextlib.ExitStack() as stack:
        agents = [AgentClient(server, additional_headers=bearer("agent")) for _ in range(2)]
        for agent, node, run in zip(agents, (NODE, ODD), (RUN, ODD), strict=True):
            stack.enter_context(agent).greet(hello(node, session="now", sent_at=time.time(), run=run))
        agents[0].say(*_told())
        agents[1].say(sample(1, 20, time.time()), wire.Event(seq=2, at=time.time(), body=wire.Step(step=1)))
        agents[0].hear_ack_of(len(_told()))
        agents[1].hear_ack_of(2)
        yield server


def _told() -> list[wire.AgentMessage]:
    """A run's configuration, some steps, and its end."""
    now = time.time()
    told: list[wire.AgentMessage] = [sample(1, 79, now)]
    for path in sorted((ROOT / "tests/wire/v1").glob("event-*.json")):
        event = wire.decode_agent(path.read_bytes())
        assert isinstance(event, wire.Event)
        if isinstance(event.body, wire.RunNamed):
            continue  # the run is to keep its name
        told.append(msgspec.structs.replace(event, seq=len(told) + 1, at=now, run=RUN))
    return told
