"""64 GPUs fill up at once: the team hears of it once and again, the boss when nobody takes care, both of its end."""

import contextlib
import functools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.acceptance.programs import Server, ending
from tests.server.house import hello, sample
from tests.server.receiver import Receiver
from tests.server.running_server import AgentClient, RunningServer, until

from oomwatch import wire

NODES, GPUS = 8, 8
RULES = """
rules:
  - alert: full
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    keep_firing_for: 1s
    summary: "GPU {gpu} of {node} is {value} full"
notify:
  group_wait: 2s
  group_interval: 0s
  repeat_interval: 1s
  channels:
    - {kind: webhook, name: team, url: "RECEIVER/team"}
    - {kind: webhook, name: boss, url: "RECEIVER/boss"}
  route:
    channels: [team]
    escalate: {after: 6s, channels: [boss]}
"""


class ServerElsewhere(RunningServer):
    """In a process of its own: it can be asked, and no more."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.fixture
def server(tmp_path: Path, receiver: Receiver) -> Iterator[RunningServer]:
    """`oomwatch serve` as a process."""
    rules = tmp_path / "alerts.yaml"
    rules.write_text(RULES.replace("RECEIVER", receiver.url), encoding="utf-8")
    process = Server(tmp_path, rules)
    with ending(process):
        yield ServerElsewhere(process.url)


@contextlib.contextmanager
def training(server: RunningServer, run: str, nodes: int) -> Iterator[list[AgentClient]]:
    """The agents of a run, connected. A reading of theirs counts for a minute."""
    with contextlib.ExitStack() as stack:
        agents = [stack.enter_context(AgentClient(server)) for _ in range(nodes)]
        for number, agent in enumerate(agents):
            greeting = hello(f"{run}-{number}", sent_at=time.time(), gpus=GPUS, run=run)
            agent.greet(msgspec.structs.replace(greeting, interval_seconds=20.0))
        yield agents


def all_use(agents: list[AgentClient], seq: int, used_gib: float) -> None:
    for agent in agents:
        agent.say(sample(seq, used_gib, time.time(), gpus=GPUS))


def told(receiver: Receiver, channel: str, run: str) -> list[dict[str, Any]]:
    return [
        body
        for body in (one.json() for one in receiver.received if one.path == f"/{channel}")
        if body["groupLabels"]["run"] == run
    ]


def end_of(receiver: Receiver, channel: str, run: str) -> dict[str, Any] | None:
    last = told(receiver, channel, run)[-1]
    return last if last["status"] == "resolved" else None


def standing(server: RunningServer) -> list[tuple[str, str, int]]:
    """How each channel fares, and how many messages wait: now and then one of the other run's reminders."""
    channels = msgspec.json.decode(server.get("/api/v1/channels").content, type=list[wire.ChannelState])
    return [(one.name, one.health, one.waiting) for one in channels]


@pytest.mark.acceptance
def test_the_right_people_hear_once_again_and_of_the_end(server: RunningServer, receiver: Receiver) -> None:
    with training(server, "large", NODES) as large, training(server, "small", 1) as small:
        all_use(large, 1, 79)
        until("a message and a reminder", lambda: len(told(receiver, "team", "large")) >= 2)
        assert [len(one["alerts"]) for one in told(receiver, "team", "large")][:2] == [NODES * GPUS] * 2
        until("the boss to hear", lambda: told(receiver, "boss", "large"))
        assert [len(one["alerts"]) for one in told(receiver, "boss", "large")][:1] == [NODES * GPUS]

        care = {"match": ['run="large"'], "by": "lin", "note": "on it"}
        assert len(server.ask("POST", "/api/v1/alerts/acknowledge", json=care).json()["alerts"]) == NODES * GPUS
        all_use(small, 1, 79)
        until("the other run to be told", lambda: told(receiver, "team", "small"))
        reminders = len(told(receiver, "team", "large"))
        until("it to be told again", lambda: len(told(receiver, "team", "small")) >= 3)
        assert len(told(receiver, "team", "large")) == reminders  # two reminders of the other, none of this one

        all_use(large, 2, 10)
        for channel in ("team", "boss"):
            last = until("its end", functools.partial(end_of, receiver, channel, "large"))
            assert len(last["alerts"]) == NODES * GPUS
        until("all to be sent", lambda: standing(server) == [("team", "ok", 0), ("boss", "ok", 0)])
        assert server.get("/api/v1/state").json()["channels"][0]["name"] == "team"
        alert = server.get("/api/v1/alerts?state=resolved&run=large").json()[0]["id"]
        deliveries = server.get(f"/api/v1/alerts/{alert}").json()["deliveries"]
        assert {one["state"] for one in deliveries} == {"delivered"}
        kinds = {
            channel: [one["kind"] for one in deliveries if one["channel"] == channel] for channel in ("team", "boss")
        }
        assert [kinds["team"][0], kinds["team"][1], kinds["team"][-1]] == ["firing", "repeat", "resolved"]
        assert [kinds["boss"][0], kinds["boss"][-1]] == ["escalation", "resolved"]
