"""/ws/agent, over a real socket."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in, until
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from oomwatch import wire
from oomwatch.web.turns import MESSAGES_A_ROUND


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path)) as server:
        yield server


def now_hello(node: str = "gpu-07", session: str = "s1", *, check: bool = False) -> wire.Hello:
    return hello(node, session=session, sent_at=time.time(), check=check)


def test_an_agent_is_welcomed_and_what_it_says_is_acknowledged(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        assert agent.greet(now_hello()).resume_after_seq == 0
        agent.say(sample(1, 40, time.time()), sample(2, 41, time.time()))
        agent.hear_ack_of(2)
    assert server.parts.store.progress("gpu-07", "s1") == 2


def test_an_agent_that_comes_back_goes_on_after_what_is_stored(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(now_hello())
        agent.say(sample(1, 40, time.time()))
        agent.hear_ack_of(1)
    with AgentClient(server) as agent:
        assert agent.greet(now_hello()).resume_after_seq == 1


def test_the_last_words_of_an_agent_are_taken_that_goes_while_they_wait_for_their_turn(server: RunningServer) -> None:
    last = 8 * MESSAGES_A_ROUND
    with AgentClient(server) as agent:
        agent.greet(now_hello())
        line, frames = agent.connection.socket, agent.connection.protocol
        for seq in range(1, last + 1):
            frames.send_text(wire.encode(sample(seq, 40, time.time())))
        frames.send_close(1000)
        line.sendall(b"".join(frames.data_to_send()))  # at once
    sessions = server.parts.service.roster
    until("it to be gone", lambda: (session := sessions.find("gpu-07")) is not None and not session.is_connected)
    assert [session.processed_seq for session in sessions] == [last]


def test_goodbye_is_acknowledged_at_once_and_the_connection_closed(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, flush_interval=30)) as server, AgentClient(server) as agent:
        agent.greet(now_hello())
        agent.say(sample(1, 40, time.time()), wire.Bye(seq=2, at=time.time()))
        agent.hear_ack_of(2)
        assert agent.close_code() == 1000


def test_a_wrong_token_is_refused_and_a_right_one_is_not(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, token="open-sesame")) as server:
        for headers in ({}, {"Authorization": "Bearer guess"}):
            with AgentClient(server, additional_headers=headers) as agent:
                refused = agent.hear_refusal()
                assert (refused.reason, refused.retry) == (wire.RefusedReason.TOKEN, False)
                assert agent.close_code() == 1008
        with AgentClient(server, additional_headers={"Authorization": "Bearer open-sesame"}) as agent:
            agent.greet(now_hello())


def test_another_protocol_version_is_refused_with_both_versions_named(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.say(hello(protocol=9))
        refused = agent.hear_refusal()
        assert refused.reason is wire.RefusedReason.PROTOCOL
        assert "protocol 1" in refused.detail
        assert "speaks 9" in refused.detail


def test_a_second_agent_of_the_same_name_is_refused_and_the_first_goes_on(server: RunningServer) -> None:
    with AgentClient(server) as first, AgentClient(server) as second:
        first.greet(now_hello())
        second.say(now_hello(session="s2"))
        assert second.hear_refusal().reason is wire.RefusedReason.NODE_TAKEN
        first.say(sample(1, 40, time.time()))
        first.hear_ack_of(1)


def test_a_check_is_answered_and_leaves_no_trace(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        assert agent.greet(now_hello(check=True)).resume_after_seq == 0
        assert agent.close_code() == 1000
    assert list(server.parts.service.roster) == []
    assert server.get("/api/v1/nodes").json() == []
    with AgentClient(server) as agent:
        agent.greet(now_hello(session="s2"))
        agent.say(sample(1, 40, time.time()))
        agent.hear_ack_of(1)
    assert server.parts.store.progress("gpu-07", "s1") == 0


def test_a_check_is_refused_as_the_agent_itself_would_be(server: RunningServer) -> None:
    with AgentClient(server) as first, AgentClient(server) as second, AgentClient(server) as third:
        first.greet(now_hello())
        second.say(now_hello(session="s2", check=True))
        assert second.hear_refusal().reason is wire.RefusedReason.NODE_TAKEN
        third.say(hello(protocol=9, check=True))
        assert third.hear_refusal().reason is wire.RefusedReason.PROTOCOL
        first.say(sample(1, 40, time.time()))
        first.hear_ack_of(1)


def test_a_check_by_the_session_that_has_the_node_takes_nothing_from_it(server: RunningServer) -> None:
    with AgentClient(server) as agent, AgentClient(server) as asking:
        agent.greet(now_hello())
        asking.greet(now_hello(check=True))
        assert asking.close_code() == 1000
        agent.say(sample(1, 40, time.time()))
        agent.hear_ack_of(1)


@pytest.mark.parametrize("frame", ["no json", '{"type":"sample","seq":1,"at":1}', '{"type":"hologram"}', "[]"])
def test_a_connection_that_does_not_begin_with_hello_is_refused(server: RunningServer, frame: str) -> None:
    with AgentClient(server) as agent:
        agent.connection.send(frame)
        assert agent.hear_refusal().reason is wire.RefusedReason.MALFORMED


@pytest.mark.parametrize("origin", ["https://evil.example", "null", None])
def test_a_page_in_a_browser_is_no_agent_not_even_ours(server: RunningServer, origin: str | None) -> None:
    headers = {"Origin": origin or server.url}
    with pytest.raises(InvalidStatus) as refused, AgentClient(server, additional_headers=headers):
        pytest.fail("it was let in")
    assert refused.value.response.status_code == 403
    assert list(server.parts.service.roster) == []


def test_an_agent_that_asks_for_another_name_is_not_let_in(server: RunningServer) -> None:
    """A page from elsewhere can make its own name point here."""
    port = int(server.url.rsplit(":", 1)[1])
    with (
        pytest.raises(InvalidStatus) as refused,
        socket.create_connection(("127.0.0.1", port)) as ours,
        connect(f"ws://rebound.example:{port}/ws/agent", sock=ours, proxy=None),
    ):
        pytest.fail("it was let in")
    assert refused.value.response.status_code == 403


def test_a_malformed_frame_is_counted_and_the_next_one_is_taken(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(now_hello())
        agent.connection.send('{"type":"sample","seq":1,"at":-5}')
        agent.connection.send(b"\x00\xff\xfe")
        agent.say(sample(3, 40, time.time()))
        agent.hear_ack_of(3)
        assert server.parts.service.reception.malformed_total == 2


def test_a_hundred_malformed_frames_end_the_connection(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(now_hello())
        for _ in range(100):
            agent.connection.send("{}")
        assert agent.hear_refusal().reason is wire.RefusedReason.MALFORMED


def test_a_message_of_a_newer_type_is_acknowledged(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(now_hello())
        agent.connection.send('{"type":"hologram","seq":1,"at":5}')
        agent.connection.send('{"type":"event","seq":2,"at":5,"body":{"kind":"hologram","size":3}}')
        agent.hear_ack_of(2)
        assert server.parts.service.reception.unknown_total == 2


def test_a_frame_of_more_than_eight_megabytes_is_not_read(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(now_hello())
        with contextlib.suppress(ConnectionClosed):  # the server may hang up before it has all arrived
            agent.connection.send("x" * (8 * 2**20 + 1))
        # Hung up on in the middle of the frame, the client may not get to read why.
        assert agent.close_code() in {1009, 1006}


def test_new_facts_take_the_place_of_the_old_ones(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(now_hello())
        agent.say(hello(gpus=2, sent_at=time.time()))
        agent.say(sample(1, 40, time.time(), gpus=2))
        agent.hear_ack_of(1)
    assert len(server.get("/api/v1/nodes/gpu-07").json()["facts"]["gpus"]) == 2


def test_a_later_hello_of_another_node_ends_the_connection(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(now_hello())
        agent.say(now_hello("gpu-08"))
        assert agent.hear_refusal().reason is wire.RefusedReason.MALFORMED


def test_a_server_that_goes_down_stores_what_it_has_and_tells_its_agents(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, flush_interval=30)) as server, AgentClient(server) as agent:
        agent.greet(now_hello())
        agent.say(sample(1, 40, time.time()))
        until("the sample to arrive", lambda: server.get("/api/v1/agents").json()[0]["messages_total"])
        server.stop()
        agent.hear_ack_of(1)
        refused = agent.hear_refusal()
        assert (refused.reason, refused.retry) == (wire.RefusedReason.SHUTTING_DOWN, True)


def test_what_an_agent_said_outlives_the_server(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(now_hello())
        agent.say(sample(1, 79, time.time()))
        agent.hear_ack_of(1)
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        (alert,) = server.get("/api/v1/alerts?state=firing").json()
        assert alert["labels"] == {"node": "gpu-07", "gpu": "0"}
        assert server.get("/api/v1/nodes/gpu-07").json()["sample"]["gpus"][0]["used_bytes"] == 79 * 2**30
        assert agent.greet(now_hello()).resume_after_seq == 1
        agent.say(sample(2, 79, time.time()))
        agent.hear_ack_of(2)
        assert [one["id"] for one in server.get("/api/v1/alerts").json()] == [alert["id"]]
