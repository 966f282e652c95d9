"""The server's clock is set, or the machine sleeps: no false alert, no lost hold time, nothing said twice."""

import os
import signal
import time
from itertools import count
from pathlib import Path

import msgspec
import pytest
from tests.faults.programs import Program
from tests.faults.strangers import Clock
from tests.server.house import FULL_AFTER_A_WHILE, House, hello, sample
from tests.server.receiver import Receiver, receiving
from tests.server.running_server import DEADLINE_SECONDS, AgentClient, serving, settings_in, until
from websockets.sync.client import connect

from oomwatch import wire

HOUR, DAY = 3600.0, 86_400.0
JUMPS = [DAY, -HOUR, HOUR, -DAY, 5.0]
RULES = """
rules:
  - alert: full
    severity: warning
    when: {{kind: threshold, metric: gpu_used_ratio, above: 85%}}
    keep_firing_for: 1s
    summary: "GPU {{gpu}} of {{node}} is {{value}} full"
  - alert: silent
    severity: critical
    when: {{kind: threshold, metric: agent_silent_seconds, above: 8s}}
    keep_firing_for: 1s
    summary: "{{node}} is silent"
notify:
  group_wait: 10ms
  group_interval: 10ms
  channels:
    - {{kind: webhook, name: ops, url: "{url}", severity: info}}
"""


@pytest.mark.parametrize("jump", JUMPS)
def test_a_hold_time_goes_on_over_a_clock_that_is_set(jump: float) -> None:
    house = House(FULL_AFTER_A_WHILE)
    session, _ = house.connect()
    seq = 0

    def full() -> None:
        nonlocal seq
        seq += 1
        house.service.reception.take(session, sample(seq, 79, house.now))

    house.wait(20, full)
    house.set_by += jump
    house.wait(9, full)
    assert [one.state for one in house.channels.offered] == []
    house.wait(3, full)
    assert [one.state for one in house.channels.offered] == ["firing"]
    house.set_by -= jump
    house.wait(60, full)
    assert [one.state for one in house.channels.offered] == ["firing"]


@pytest.mark.parametrize("jump", [DAY, -HOUR])
def test_people_are_told_once_whatever_the_clock_does(tmp_path: Path, jump: float) -> None:
    off = Clock()
    with receiving() as receiver:
        (tmp_path / "alerts.yaml").write_text(RULES.format(url=receiver.url), encoding="utf-8")
        with (
            serving(settings_in(tmp_path), clock=lambda: time.time() + off.now) as server,
            AgentClient(server) as agent,
        ):
            agent.greet(msgspec.structs.replace(hello(sent_at=time.time()), interval_seconds=600.0))
            agent.say(sample(1, 79, time.time()))
            receiver.wait_for(1)
            off.now = jump
            seqs = count(2)
            begun = time.monotonic()

            def works_on(gib: float) -> float:
                """One more reading; gives for how long the node has done so."""
                seq = next(seqs)
                agent.say(sample(seq, gib, time.time()))
                agent.hear_ack_of(seq)
                return time.monotonic() - begun

            until("some seconds to be judged", lambda: works_on(79) > 3)
            assert _told(receiver) == [("full", "firing")]
            until("its end to be told", lambda: works_on(10) > 0 and len(receiver.received) > 1)
        assert _told(receiver) == [("full", "firing"), ("full", "resolved")]


def _told(receiver: Receiver) -> list[tuple[str, str]]:
    bodies = [one.json() for one in receiver.received]
    return [(one["labels"]["alertname"], one["status"]) for body in bodies for one in body["alerts"]]


@pytest.mark.acceptance
def test_a_server_that_was_stopped_and_goes_on_calls_nobody_silent_and_loses_nothing(tmp_path: Path) -> None:
    with receiving() as receiver:
        (tmp_path / "alerts.yaml").write_text(RULES.format(url=receiver.url), encoding="utf-8")
        with Program(tmp_path) as server, connect(server.agents, compression=None, proxy=None) as agent:
            agent.send(wire.encode(hello(sent_at=time.time())).decode())
            agent.recv(timeout=DEADLINE_SECONDS)
            agent.send(wire.encode(sample(1, 40, time.time())).decode())
            until("the first to be known", lambda: server.get("/api/v1/nodes").json()[0].get("sample"))
            os.kill(server.pid, signal.SIGSTOP)
            begun = time.monotonic()
            for seq in range(2, 14):  # the node works on, a reading a second
                until("the next second", lambda seq=seq: time.monotonic() - begun > seq - 1)  # type: ignore[misc]
                agent.send(wire.encode(sample(seq, 40, time.time())).decode())
            os.kill(server.pid, signal.SIGCONT)
            acknowledged = 0
            while acknowledged < 13:
                said = wire.decode_server(agent.recv(timeout=DEADLINE_SECONDS))
                acknowledged = said.seq if isinstance(said, wire.Ack) else 0
            assert "stood still" in server.log()
        assert receiver.received == []
