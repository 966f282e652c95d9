"""From a reading to a webhook: what is muted is sent to nobody, and whoever should hear of it does when that ends."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.house import hello, sample
from tests.server.receiver import Receiver, receiving
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in, until

from oomwatch.__main__ import main

RULES = """
rules:
  - alert: high
    severity: warning
    when: {{kind: threshold, metric: gpu_used_ratio, above: 50%}}
    keep_firing_for: 1s
    summary: "GPU {{gpu}} of {{node}} is {{value}} full"
  - alert: full
    severity: critical
    when: {{kind: threshold, metric: gpu_used_ratio, above: 85%}}
    keep_firing_for: 1s
    summary: "GPU {{gpu}} of {{node}} is {{value}} full"
notify:
  group_wait: 10ms
  group_interval: 100ms
  channels:
    - {{kind: webhook, name: ops, url: "{url}", severity: warning}}
"""


class Scene:
    """A server with a webhook, and a node."""

    def __init__(self, server: RunningServer, agent: AgentClient, receiver: Receiver) -> None:
        self.server = server
        self.receiver = receiver
        self._agent = agent
        self._seq = 0

    def use(self, gib: float) -> None:
        self._seq += 1
        self._agent.say(sample(self._seq, gib, time.time()))

    def row(self, alert: str, state: str = "firing") -> dict[str, Any]:
        """The alert, as soon as it is so."""
        path = f"/api/v1/alerts?state={state}&alert={alert}"
        (row,) = until(f"{alert} to be {state}", lambda: self.server.get(path).json())
        assert isinstance(row, dict)
        return row

    def sent(self) -> list[tuple[str, str]]:
        """Rule and state of each alert in each message so far."""
        bodies = [one.json() for one in self.receiver.received]
        return [(one["labels"]["alertname"], one["status"]) for body in bodies for one in body["alerts"]]

    def silence(self, match: str) -> str:
        told = {"match": [match], "duration": "1h", "created_by": "lin"}
        return str(self.server.ask("POST", "/api/v1/silences", json=told).json()["id"])


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with receiving() as receiver:
        (tmp_path / "alerts.yaml").write_text(RULES.format(url=receiver.url), encoding="utf-8")
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            agent.greet(hello("gpu-07", sent_at=time.time()))
            yield Scene(server, agent, receiver)


def test_what_fires_in_silence_is_told_when_the_silence_ends_while_it_fires(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    silence = scene.silence("alert=high")
    scene.use(50)
    row = scene.row("high")
    assert [mute["kind"] for mute in row["muted"]] == ["silence"]
    scene.use(10)
    scene.row("high", "resolved")
    scene.use(50)  # fires anew
    again = scene.row("high")["id"]
    assert scene.sent() == []
    scene.server.ask("DELETE", f"/api/v1/silences/{silence}")
    until("word of it", scene.sent)
    assert scene.sent() == [("high", "firing")], "the one that began and ended in silence was told to nobody"
    until("the delivery", lambda: _delivered(scene, again))
    assert main(["alerts", "show", again, "--server", scene.server.url]) == 0
    assert "to ops: delivered" in capsys.readouterr().out


def _delivered(scene: Scene, alert: str) -> bool:
    told = scene.server.get(f"/api/v1/alerts/{alert}").json()["deliveries"]
    return [one["state"] for one in told] == ["delivered"]


def test_of_a_full_card_only_the_graver_alert_is_told(scene: Scene) -> None:
    scene.use(79)
    assert [mute["kind"] for mute in scene.row("high")["muted"]] == ["inhibited"]
    until("word of it", scene.sent)
    scene.use(10)
    scene.row("high", "resolved")
    until("word of its end", lambda: ("full", "resolved") in scene.sent())
    assert {alert for alert, _ in scene.sent()} == {"full"}
