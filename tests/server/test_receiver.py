"""The receiver that tests stand up keeps what was sent to it, and not what was meant for who had its port before."""

import socket

import httpx
import pytest
from tests.server.receiver import receiving


@pytest.mark.parametrize(
    "head",
    [
        "GET /ws/agent HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        "POST /hook HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["an agent", "no length"],
)
def test_a_request_of_a_stranger_is_refused_and_not_kept(head: str) -> None:
    with receiving() as receiver:
        place = httpx.URL(receiver.url)
        with socket.create_connection((place.host, place.port or 0), timeout=20) as stranger:
            stranger.sendall(head.encode())
            assert stranger.recv(100).startswith(b"HTTP/1.1 421 ")
        httpx.post(receiver.url + "/hook", trust_env=False)
        httpx.get(receiver.url + "/ping", trust_env=False)
        assert [(one.method, one.path) for one in receiver.received] == [("POST", "/hook"), ("GET", "/ping")]
