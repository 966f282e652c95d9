"""Whatever a node, run or channel is called, its paths lead to it."""

import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from tests.server.house import hello
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire

NAMES = ["rack 7/gpu-01", "a/b/", "what?", "no#1", "100%", "50%2Foff", "节点一", "a&b=c;d+e", "runs/steps"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Of each name a node and a run, whose agents are gone."""
    with serving(settings_in(tmp_path_factory.mktemp("names"))) as server:
        for name in NAMES:
            with AgentClient(server) as agent:
                step = wire.Step(step=7, step_seconds=60.0, rollout_seconds=20.0)
                agent.greet(hello(name, sent_at=time.time(), run=name))
                agent.say(wire.Event(seq=1, at=time.time(), body=step))
                agent.hear_ack_of(1)
        yield server


@pytest.mark.parametrize("name", NAMES)
def test_a_node_can_be_asked_for_and_forgotten(server: RunningServer, name: str) -> None:
    path = f"/api/v1/nodes/{quote(name, safe='')}"
    assert server.get(path).json()["node"] == name
    until("the agent to be gone", lambda: server.ask("DELETE", path).status_code == 204)
    assert server.get(path).json() == {"error": f'there is no node "{name}"'}


@pytest.mark.parametrize("name", NAMES)
def test_everything_of_a_run_can_be_asked_for(server: RunningServer, name: str) -> None:
    path = f"/api/v1/runs/{quote(name, safe='')}"
    assert [point["step"]["step"] for point in server.get(f"{path}/steps").json()] == [7]
    assert server.get(f"{path}/peaks").json()["run"] == name


@pytest.mark.parametrize("name", NAMES)
def test_a_channel_is_asked_for_by_its_whole_name(server: RunningServer, name: str) -> None:
    answer = server.ask("POST", f"/api/v1/channels/{quote(name, safe='')}/retry")
    assert (answer.status_code, answer.json()["error"]) == (404, f'there is no channel "{name}"')
