"""How channels fare, over the interface and the wire, and the way to tell one again what it refused."""

from pathlib import Path

import msgspec
import pytest
from tests.server.house import hello, sample
from tests.server.receiver import Answer, receiving
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire

NOTIFY = """
notify:
  group_wait: 0s
  channels:
    - {kind: webhook, name: team, url: "URL/team"}
    - {kind: webhook, name: ops, url: "URL/ops"}
"""


def channels(server: RunningServer) -> dict[str, wire.ChannelState]:
    found = msgspec.json.decode(server.get("/api/v1/channels").content, type=list[wire.ChannelState])
    return {one.name: one for one in found}


@pytest.mark.acceptance
def test_a_channel_that_refuses_is_shown_announced_and_told_again_once_it_is_mended(tmp_path: Path) -> None:
    with receiving() as receiver:
        (tmp_path / "alerts.yaml").write_text(RULES + NOTIFY.replace("URL", receiver.url), encoding="utf-8")
        receiver.always(Answer(404))
        with serving(settings_in(tmp_path)) as server, server.websocket("/ws/live") as browser:
            assert list(channels(server)) == ["team", "ops"]
            with AgentClient(server) as agent:
                agent.greet(hello())
                agent.say(sample(1, 79))
                until("both to have failed", lambda: [o.health for o in channels(server).values()] == ["failed"] * 2)
            heard = msgspec.json.decode(browser.recv(timeout=10))
            while heard.get("channels", [{}])[0].get("health") != "failed":
                heard = msgspec.json.decode(browser.recv(timeout=10))
            assert heard["type"] in ("channels", "snapshot")

            receiver.always(Answer(200))
            assert server.ask("POST", "/api/v1/channels/team/retry").status_code == 204
            until("it to work again", lambda: channels(server)["team"].health == "ok")
            until("the other to hear of it", lambda: channels(server)["ops"].health == "ok")
            assert server.ask("POST", "/api/v1/channels/nobody/retry").status_code == 404
    told = [one.json() for one in receiver.received if one.path == "/team"]
    assert [one["groupLabels"].get("alertname") for one in told].count("full") == 2
