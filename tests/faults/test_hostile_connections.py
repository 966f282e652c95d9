"""Whoever connects and does nothing sensible: cut off, told where that is possible, and a cost to nobody else."""

import contextlib
import resource
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.strangers import (
    UPGRADE,
    Clock,
    ends,
    frame,
    silent_browser,
    stranger,
    until_there_are,
)
from tests.server.house import hello, sample
from tests.server.running_server import DEADLINE_SECONDS, AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire
from oomwatch.access.proxied import networks_of
from oomwatch.hub import QUEUE_MAX
from oomwatch.web import connections as rooms
from oomwatch.web.connections import (
    FILES_KEPT,
    FRAGMENTS_MAX,
    READING_SECONDS,
    REQUEST_SECONDS,
    SAID_MOST,
    Connections,
    connections_at_most,
)
from oomwatch.web.static import PLOTLY

HEAD = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


class Place:
    """A server, its connections and their clock."""

    def __init__(self, server: RunningServer, connections: Connections, clock: Clock) -> None:
        self.server = server
        self.connections = connections
        self.clock = clock

    def sweep(self) -> None:
        self.server.call(self.connections.sweep)

    def open(self) -> int:
        return self.server.call(lambda: len(self.connections))


@contextlib.contextmanager
def place(folder: Path, at_most: int = 1000) -> Iterator[Place]:
    clock = Clock()
    connections = Connections(at_most, clock=clock)
    with serving(settings_in(folder), connections) as server:
        yield Place(server, connections, clock)


def _shake_hands(here: Place) -> str:
    """What a client of TLS makes of a server that speaks none."""
    context = ssl.create_default_context()
    with stranger(here.server) as plain, pytest.raises(ssl.SSLError) as refused:
        context.wrap_socket(plain, server_hostname="127.0.0.1")
    return str(refused.value)


def test_who_speaks_tls_to_a_server_without_is_named_with_the_remedy_once_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with place(tmp_path) as here:
        assert "WRONG_VERSION_NUMBER" in _shake_hands(here)
        _shake_hands(here)
        (told,) = [record for record in caplog.records if "TLS" in record.getMessage()]
        assert told.levelname == "WARNING"
        assert told.getMessage().startswith("127.0.0.1 speaks TLS to this port, which speaks none: have it write ws://")
        assert "--tls-cert" in told.getMessage()
        assert "Invalid HTTP request" not in caplog.text
        here.clock.now += 60
        _shake_hands(here)
        assert caplog.text.count("speaks TLS to this port") == 2
        assert here.server.get("/healthz").status_code == 200


# ---------------------------------------------------------------- requests that never end


@pytest.mark.parametrize(
    ("first", "then"),
    [("", ""), ("", "G"), ("", HEAD), (f"{HEAD}\r\n", HEAD)],
    ids=["nothing", "a letter", "half a head", "one and a half"],
)
def test_a_request_that_never_ends_is_cut_off(tmp_path: Path, first: str, then: str) -> None:
    with place(tmp_path) as here, stranger(here.server, first) as slow:
        if first:
            _answer(slow)
        slow.sendall(then.encode())
        until_there_are(1, here.connections, here.server)
        here.sweep()
        here.clock.now += REQUEST_SECONDS
        here.sweep()
        assert here.open() == 1
        here.clock.now += 1
        here.sweep()
        ends(slow)
        until_there_are(0, here.connections, here.server)


def _answer(connection: socket.socket) -> None:
    answer = b""
    while not answer.endswith(b"ok\n"):
        part = connection.recv(4096)
        assert part
        answer += part


def test_a_letter_now_and_then_makes_no_request(tmp_path: Path) -> None:
    with place(tmp_path) as here, stranger(here.server, "GET / HTTP/1.1\r\nX-Long: ") as slow:
        until_there_are(1, here.connections, here.server)
        with contextlib.suppress(ConnectionError):
            while here.clock.now < 4 * REQUEST_SECONDS:
                slow.sendall(b"a")
                here.clock.now += 1
                here.sweep()
        assert ends(slow) == b""
        assert here.connections.cut_off_total == 1


def test_who_asks_again_and_again_stays(tmp_path: Path) -> None:
    with place(tmp_path) as here, stranger(here.server) as steady:
        for _ in range(3):
            steady.sendall(f"{HEAD}\r\n".encode())
            _answer(steady)
            here.clock.now += REQUEST_SECONDS - 1
            here.sweep()
        assert here.open() == 1


def test_agents_and_browsers_may_be_silent(tmp_path: Path) -> None:
    with place(tmp_path) as here, AgentClient(here.server) as agent, here.server.websocket("/ws/live") as browser:
        agent.greet(hello(sent_at=time.time()))
        browser.recv()
        here.clock.now += 1e6
        here.sweep()
        agent.say(sample(1, 40, time.time()))
        agent.hear_ack_of(1)
        assert here.connections.cut_off_total == 0


def test_a_head_without_end_is_refused(tmp_path: Path) -> None:
    with place(tmp_path) as here, stranger(here.server) as endless:
        with contextlib.suppress(ConnectionError):
            endless.sendall(b"GET /" + b"a" * 2**20 + b" HTTP/1.1\r\n\r\n")
        assert ends(endless)[:12] in {b"HTTP/1.1 400", b""}  # b"": it was still writing when the answer came
        assert here.server.get("/healthz").status_code == 200


# ---------------------------------------------------------------- who never reads


def test_who_reads_no_answer_is_cut_off(tmp_path: Path) -> None:
    ask = "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with place(tmp_path) as here, stranger(here.server, ask.format(f"/static/{PLOTLY}") * 20):
        until("more than the kernel takes", lambda: _unread(here) > 0)
        here.sweep()
        here.clock.now += READING_SECONDS + 1
        here.sweep()
        until_there_are(0, here.connections, here.server)
        assert here.connections.cut_off_total == 1


def _unread(here: Place) -> int:
    """What the server keeps for the one that reads least."""
    return here.server.call(lambda: max((one.get_write_buffer_size() for one in here.connections._open), default=0))


def _large(number: int) -> wire.LiveMessage:
    facts = wire.NodeFacts(sources=(wire.SourceFacts(name="x", state="ok", detail="a" * 2000),) * 100)
    return wire.NodeChanged(
        node=wire.Node(
            node=f"n{number}", state="live", last_seen_at=0, agent_version="1", interval_seconds=1, facts=facts
        )
    )


def test_a_browser_that_never_reads_costs_a_bounded_memory_and_is_cut_off(tmp_path: Path) -> None:
    with (
        place(tmp_path) as here,
        here.server.websocket("/ws/live", max_queue=None) as good,
        silent_browser(here.server),
    ):
        until("both to watch", lambda: here.server.call(lambda: len(here.server.parts.hub)) == 2)
        for number in range(4 * QUEUE_MAX):
            here.server.call(lambda number=number: here.server.parts.hub.publish([_large(number)]))  # type: ignore[misc]
            _read_up_to(good, f'"node":"n{number}"')
        assert 0 < _unread(here) < 2**20
        here.sweep()
        here.clock.now += READING_SECONDS + 1
        here.sweep()
        until("one to watch", lambda: here.server.call(lambda: len(here.server.parts.hub)) == 1)
        until_there_are(1, here.connections, here.server)


def _read_up_to(browser: Any, wanted: str) -> None:
    while wanted not in browser.recv(timeout=DEADLINE_SECONDS)[:100]:
        pass


def test_pings_of_one_who_reads_no_answers_are_not_kept(tmp_path: Path) -> None:
    with place(tmp_path) as here, silent_browser(here.server, "/ws/agent") as pinging:
        many = frame(9, b"p" * 125) * 1000
        sent = threading.Event()

        def flood() -> None:
            with contextlib.suppress(ConnectionError, TimeoutError):
                for _ in range(60):
                    pinging.sendall(many)
            sent.set()

        threading.Thread(target=flood, daemon=True).start()
        most = 0
        while not sent.is_set():
            most = max(most, _unread(here))
            sent.wait(0.01)  # between two looks
        assert most < 2**20


# ---------------------------------------------------------------- frames


def test_a_message_of_endless_empty_parts_is_no_message(tmp_path: Path) -> None:
    with place(tmp_path) as here, silent_browser(here.server, "/ws/agent") as endless:
        endless.sendall(frame(1, last=False) + frame(0, last=False) * (FRAGMENTS_MAX + 1))
        said = ends(endless)
        assert said[:1] == b"\x88"
        assert int.from_bytes(said[2:4], "big") == 1009


def test_a_message_in_parts_counts_as_a_whole(tmp_path: Path) -> None:
    part = b"a" * 60_000
    with place(tmp_path) as here, silent_browser(here.server, "/ws/agent") as large:
        with contextlib.suppress(ConnectionError):
            large.sendall(frame(1, part, last=False) + frame(0, part, last=False) * 150)
        said = ends(large)
        assert not said or int.from_bytes(said[2:4], "big") == 1009
        until_there_are(0, here.connections, here.server)


@pytest.mark.parametrize("path", ["/ws/agent", "/ws/live"])
def test_nothing_is_unpacked(tmp_path: Path, path: str) -> None:
    """A bomb needs an unpacker: the server offers none, and takes a packed frame for a broken one."""
    with place(tmp_path) as here:
        with here.server.websocket(path, compression="deflate") as offering:
            assert "Sec-WebSocket-Extensions" not in offering.response.headers
        with silent_browser(here.server, path) as packing:
            packing.sendall(frame(1, b"\xca\x48\x04\x00", packed=True))
            said = ends(packing)
        assert b"\x03\xea" in said  # 1002: a protocol error


# ---------------------------------------------------------------- how many


def test_there_are_so_many_connections_and_the_next_one_is_told(tmp_path: Path) -> None:
    with place(tmp_path, at_most=20) as here, contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(stranger(here.server)) for _ in range(20)]
        until_there_are(20, here.connections, here.server)
        with stranger(here.server, f"{HEAD}\r\n") as late:
            said = ends(late)
        assert said.startswith(b"HTTP/1.1 503 ")
        assert said.endswith(b"there are too many connections now")
        crowd[0].close()
        until_there_are(19, here.connections, here.server)
        assert here.server.get("/healthz").status_code == 200
        assert here.connections.turned_away_total == 1


class Line:
    """As much of a transport as is looked at."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get_extra_info(self, _name: str) -> tuple[str, int]:
        return self.address, 1


def test_one_address_may_not_have_them_all_but_a_proxy_on_this_machine_may() -> None:
    connections = Connections(10, clock=Clock())
    lines: list[Any] = [Line("10.1.2.3") for _ in range(6)]
    assert [connections.take(line, None) for line in lines] == [True] * 5 + [False]  # type: ignore[arg-type]
    others: list[Any] = [Line("127.0.0.1") for _ in range(5)]
    assert all(connections.take(line, None) for line in others)  # type: ignore[arg-type]
    for line in lines:
        connections.lose(line)
    assert connections.take(lines[5], None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("addresses", "taken"),
    [
        (["::ffff:10.1.2.3", "10.1.2.3"], [True, False]),  # a socket of both families tells IPv4's like this
        (["::ffff:10.1.2.3", "::ffff:10.1.2.4"], [True, True]),
        (["2001:db8::1", "2001:db8::2"], [True, False]),  # whoever has the one has the other
        (["2001:db8::1", "2001:db8:0:1::1"], [True, True]),
        (["::ffff:127.0.0.2", "::ffff:127.0.0.2"], [True, True]),
    ],
)
def test_who_has_one_address_has_its_other_spellings_and_its_ipv6_network(
    addresses: list[str], taken: list[bool]
) -> None:
    connections = Connections(3, clock=Clock())
    assert connections.of_one_address == 1
    lines: list[Any] = [Line(address) for address in addresses]
    assert [connections.take(line, None) for line in lines] == taken  # type: ignore[arg-type]


def test_a_trusted_proxy_may_have_all_connections() -> None:
    connections = Connections(4, proxies=networks_of(["10.0.0.1"], "trusted_proxies"), clock=Clock())
    lines: list[Any] = [Line("10.0.0.1") for _ in range(4)]
    assert all(connections.take(line, None) for line in lines)  # type: ignore[arg-type]


def test_of_very_many_who_speak_tls_a_few_are_named_each_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    connections = Connections(10, clock=clock)
    for number in range(1000):
        line: Any = Line(f"10.0.{number // 250}.{number % 250}")
        connections.hear_tls(line)
    assert caplog.text.count("speaks TLS to this port") == SAID_MOST
    clock.now += 60
    another: Any = Line("10.0.9.9")
    connections.hear_tls(another)
    assert "10.0.9.9 speaks TLS" in caplog.text


def test_a_part_of_the_files_is_kept_for_the_server_itself() -> None:
    assert connections_at_most(1024) == 1024 - FILES_KEPT
    assert connections_at_most(200) == 100
    assert connections_at_most(10**9) == rooms.CONNECTIONS_MAX


def test_the_limit_of_files_is_raised_as_far_as_it_may_be() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        assert rooms.files_at_most() >= min(soft, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_upgrade_counts_once(tmp_path: Path) -> None:
    with place(tmp_path) as here:
        with stranger(here.server, UPGRADE.format(path="/ws/live")) as browser:
            browser.recv(1)
            until_there_are(1, here.connections, here.server)
            browser.shutdown(socket.SHUT_RDWR)
        until_there_are(0, here.connections, here.server)
