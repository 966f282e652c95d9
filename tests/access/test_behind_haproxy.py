"""What docker/haproxy.cfg tells the servers of whom it comes for, with a real haproxy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import websockets.sync.client
from tests.haproxy import haproxy_running
from tests.ports import free_port
from tests.server.running_server import DEADLINE_SECONDS, RunningServer, serving, settings_in, until

CONFIG = Path(__file__).resolve().parents[2] / "docker/haproxy.cfg"
ELSEWHERE = "127.0.0.2"  # the visitor's address; haproxy's is 127.0.0.1


@contextmanager
def _haproxy(folder: Path, server: RunningServer) -> Iterator[int]:
    """The load balancer as it is shipped, before this one server; gives its port."""
    port = free_port()
    text = CONFIG.read_text(encoding="utf-8").replace("bind :8642", f"bind 127.0.0.1:{port}")
    text = re.sub(r"(?ms)^resolvers docker.*?\n\n", "", text).replace(" init-addr none resolvers docker", "")
    text = re.sub(r"(?m)^  server .*\n", "", text) + f"  server a {server.url.removeprefix('http://')}\n"
    text = text.replace("maxconn 20000", "maxconn 100")
    with haproxy_running(folder, text):
        until("haproxy", lambda: _is_there(port))
        yield port


def _is_there(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _client() -> httpx.Client:
    transport = httpx.HTTPTransport(local_address=ELSEWHERE)
    return httpx.Client(transport=transport, trust_env=False, timeout=DEADLINE_SECONDS)


def test_servers_are_told_who_asks_and_pages_stay_connected(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, trusted_proxies=("127.0.0.1",), operator_token="act", listen="127.0.0.1:0")
    with serving(settings) as server, _haproxy(tmp_path, server) as port, _client() as visitor:
        act = {"Authorization": "Bearer act", "X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
        body = {"match": ['node="gpu-07"'], "duration": "1h", "created_by": "lin"}
        made = visitor.post(f"http://127.0.0.1:{port}/api/v1/silences", json=body, headers=act)
        assert made.status_code == 201
        (deed,) = visitor.get(f"http://127.0.0.1:{port}/api/v1/audit", headers=act).json()
        assert deed["address"] == ELSEWHERE
        form = visitor.get(f"http://127.0.0.1:{port}/sign-in", headers=act).headers["set-cookie"]
        assert form.startswith("oomwatch_form=")  # by http, whatever the browser claims
        with websockets.sync.client.connect(f"ws://127.0.0.1:{port}/ws/live", proxy=None) as page:
            for _ in range(3):
                page.recv(timeout=DEADLINE_SECONDS)
