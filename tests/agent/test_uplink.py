"""The uplink against a real WebSocket server on loopback: resume, acknowledgement, refusals, breaks and goodbyes."""

import asyncio
import contextlib
import functools
import http
import logging
import random
import types
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

import pytest
from tests.agent.fake_server import WELCOME, FakeServer, asking, refusing, say, welcoming
from tests.wire.golden_messages import ACT
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import ServerConnection
from websockets.protocol import State

from oomwatch import wire
from oomwatch_agent.credentials import Credentials
from oomwatch_agent.link import Link
from oomwatch_agent.outbox import Outbox
from oomwatch_agent.uplink import Uplink, end

DEADLINE_SECONDS = 60.0


class Bench:
    """An uplink with its outbox and a server, and what the uplink slept between its tries."""

    def __init__(self, server: FakeServer, *, token: str | None = None, url: str | None = None) -> None:
        self.server = server
        self.outbox = Outbox()
        self.facts = wire.NodeFacts()
        self.pauses: list[float] = []
        self.wall, self.monotonic = 1_790_000_000.0, 500.0
        self.uplink = Uplink(
            url or server.url,
            self.outbox,
            self.hello,
            credentials=Credentials(token),
            jitter=random.Random(1),
            sleep=self._sleep,
            clock=lambda: self.monotonic,
        )

    def add_samples(self, count: int) -> None:
        for _ in range(count):
            self.outbox.add(wire.Sample(seq=0, at=float(self.outbox.last_seq)), now=0.0)
        self.uplink.wake()

    def change_facts(self, *gpus: str) -> None:
        named = (wire.GpuFacts(gpu=gpu, uuid=f"GPU-{gpu}", name="H100", total_bytes=1) for gpu in gpus)
        self.facts = wire.NodeFacts(gpus=tuple(named))
        self.uplink.wake()

    def pass_time(self, seconds: float, *, wall_seconds: float | None = None) -> None:
        """Both clocks go on, the wall clock by as much where nothing else is said; then there is a sample to send."""
        self.monotonic += seconds
        self.wall += seconds if wall_seconds is None else wall_seconds
        self.add_samples(1)

    def hello(self) -> wire.Hello:
        return wire.Hello(
            protocol=1,
            agent_version="1",
            node="gpu-017",
            session="s1",
            sent_at=self.wall,
            interval_seconds=1.0,
            facts=self.facts,
        )

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0.01)  # the test does not wait for the real pause, but the loop must turn


@contextlib.asynccontextmanager
async def _running(server: FakeServer, *, token: str | None = None) -> AsyncIterator[Bench]:
    """The server is up and the uplink runs; both are taken down at the end."""
    await server.start()
    bench = Bench(server, token=token)
    task = asyncio.create_task(bench.uplink.run())
    try:
        yield bench
    finally:
        await end(task)
        await server.stop()


async def _until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)

    await asyncio.wait_for(poll(), DEADLINE_SECONDS)


Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def _story(story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await story()

    asyncio.run(run())


def test_it_is_ended_though_a_cancellation_is_swallowed() -> None:
    """As `wait_for` does before Python 3.12: what it waits for has come in the same moment."""

    async def story() -> None:
        async def talk() -> None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(DEADLINE_SECONDS)
            await asyncio.sleep(DEADLINE_SECONDS)

        task = asyncio.create_task(talk())
        await asyncio.sleep(0)
        await asyncio.wait_for(end(task), DEADLINE_SECONDS / 2)
        assert task.cancelled()

    _story(story)


# ---------------------------------------------------------------- all is well


def test_hello_comes_first_and_then_every_message_in_order() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.add_samples(3)
            await _until(lambda: bench.server.seqs() == [1, 2, 3])
            first = bench.server.heard[0]
            assert isinstance(first, wire.Hello)
            assert (first.node, first.session) == ("gpu-017", "s1")
            assert len(bench.server.heard_of(wire.Hello)) == 1

    _story(story)


def test_what_is_acknowledged_leaves_the_outbox() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.add_samples(3)
            await _until(lambda: len(bench.outbox) == 0)
            assert bench.outbox.acknowledged_seq == 3

    _story(story)


def test_what_is_not_acknowledged_stays_and_is_not_sent_twice_on_one_connection() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming(ack=False))) as bench:
            bench.add_samples(2)
            await _until(lambda: bench.server.seqs() == [1, 2])
            bench.add_samples(1)
            await _until(lambda: bench.server.seqs() == [1, 2, 3])
            assert len(bench.outbox) == 3

    _story(story)


def test_a_long_backlog_is_sent_whole() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.add_samples(1700)
            await _until(lambda: bench.outbox.acknowledged_seq == 1700)
            assert bench.server.seqs() == list(range(1, 1701))

    _story(story)


def test_the_token_is_sent_as_a_bearer() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming()), token="abc") as bench:
            await _until(lambda: bool(bench.server.heard))
            assert bench.server.authorizations == ["Bearer abc"]

    _story(story)


def test_without_a_token_there_is_no_such_header() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            await _until(lambda: bool(bench.server.heard))
            assert bench.server.authorizations == [None]

    _story(story)


def test_changed_facts_are_told_on_the_open_connection_before_later_messages() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.add_samples(1)
            await _until(lambda: bench.server.seqs() == [1])
            bench.outbox.add(wire.Sample(seq=0, at=2.0), now=0.0)
            bench.change_facts("0")
            await _until(lambda: bench.server.seqs() == [1, 2])
            hello = bench.server.heard[-2]
            assert isinstance(hello, wire.Hello)
            assert [gpu.gpu for gpu in hello.facts.gpus] == ["0"]
            assert len(bench.server.connections) == 1

    _story(story)


@pytest.mark.parametrize("step_seconds", [-3600.0, -1.5, 1.5, 3600.0])
def test_a_clock_that_was_set_is_told_by_one_more_hello_before_later_messages(step_seconds: float) -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.pass_time(1.0)
            await _until(lambda: bench.server.seqs() == [1])
            bench.pass_time(1.0, wall_seconds=1.0 + step_seconds)
            await _until(lambda: bench.server.seqs() == [1, 2])
            bench.pass_time(1.0)
            await _until(lambda: bench.server.seqs() == [1, 2, 3])
            kinds = [type(message).__name__ for message in bench.server.heard]
            assert kinds == ["Hello", "Sample", "Hello", "Sample", "Sample"]
            hello = bench.server.heard[2]
            assert isinstance(hello, wire.Hello)
            assert hello.sent_at == 1_790_000_002.0 + step_seconds
            assert len(bench.server.connections) == 1

    _story(story)


def test_small_steps_of_the_clock_are_told_once_they_add_up() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.add_samples(1)
            await _until(lambda: bench.server.seqs() == [1])
            for count in (2, 3, 4, 5):
                bench.pass_time(1.0, wall_seconds=1.3)
                await _until(functools.partial(lambda count: bench.server.seqs()[-1:] == [count], count))
            assert len(bench.server.heard_of(wire.Hello)) == 2
            assert isinstance(bench.server.heard[-2], wire.Hello), "the fourth step makes it more than a second"

    _story(story)


def test_what_comes_while_all_is_sent_goes_out_in_the_same_step() -> None:
    async def story() -> None:
        server = FakeServer(welcoming())
        await server.start()
        bench = Bench(server)
        task = asyncio.create_task(bench.uplink.run())
        bench.add_samples(1)
        await _until(lambda: bench.outbox.acknowledged_seq == 1)
        bench.add_samples(2)
        task.cancel()  # it has no turn in which to send
        await end(task)
        await server.all_closed()
        assert server.seqs() == [1, 2, 3]
        await server.stop()

    _story(story)


def test_a_set_clock_is_told_to_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.pass_time(1.0)
            await _until(lambda: bench.outbox.acknowledged_seq == 1)
            bench.pass_time(1.0, wall_seconds=60.0)
            await _until(lambda: bench.outbox.acknowledged_seq == 2)

    _story(story)
    assert caplog.text.count("clock was set") == 1


def test_nothing_is_posted_where_the_kernel_takes_no_more_or_the_connection_is_closed() -> None:
    async def story() -> None:
        server = FakeServer(welcoming())
        await server.start()
        link = await Link.open(server.url, Credentials())
        await link.greet(Bench(server).hello())
        posted = 0
        while link.post(b'"' + b"x" * 2**20 + b'"'):  # the server has no turn in which to read
            posted += 1
            assert posted < 1000
        assert posted
        await link.close()
        assert not link.post(b"{}")
        await server.stop()

    _story(story)


def test_nothing_is_posted_where_the_transport_is_half_gone() -> None:
    """In Python 3.10, with TLS, it then asks None how much is yet to be sent."""
    half_gone = types.SimpleNamespace(protocol=types.SimpleNamespace(state=State.OPEN), transport=None)
    link = Link("wss://gpu-head:8642/ws/agent", cast("ClientConnection", half_gone))
    assert not link.post(b"{}")


def test_time_that_passes_on_both_clocks_is_told_by_no_hello() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            for count, seconds in enumerate((1.0, 60.0, 3600.0), start=1):
                bench.pass_time(seconds)
                await _until(functools.partial(lambda count: bench.server.seqs()[-1:] == [count], count))
            assert len(bench.server.heard_of(wire.Hello)) == 1

    _story(story)


def test_unknown_and_unreadable_messages_are_counted_and_skipped() -> None:
    async def story() -> None:
        strange = ('{"type": "weather", "rain": true}', "no JSON", '{"type": "ack", "seq": -1}')

        async def script(server: FakeServer, connection: ServerConnection) -> None:
            async for message in server.listen(connection):
                if isinstance(message, wire.Hello):
                    await say(connection, WELCOME)
                    for frame in strange:
                        await connection.send(frame)
                elif isinstance(message, wire.Sample):
                    await say(connection, wire.Ack(seq=message.seq))

        async with _running(FakeServer(script)) as bench:
            bench.add_samples(1)
            await _until(lambda: bench.outbox.acknowledged_seq == 1)
            assert bench.uplink.unknown_total == 3
            assert len(bench.server.connections) == 1

    _story(story)


@pytest.mark.parametrize("can_act", [True, False])
def test_an_act_that_is_asked_for_goes_to_who_does_it_and_else_is_skipped(can_act: bool) -> None:
    async def story() -> None:
        async with _running(FakeServer(asking(ACT))) as bench:
            taken: list[wire.ActRequest] = []
            bench.uplink._on_act = taken.append if can_act else None
            bench.add_samples(1)
            await _until(lambda: bench.outbox.acknowledged_seq == 1)
            assert taken == ([ACT] if can_act else [])
            assert bench.uplink.unknown_total == (0 if can_act else 1)

    _story(story)


# ---------------------------------------------------------------- when the connection breaks


def test_after_a_break_it_goes_on_after_what_the_server_has_stored() -> None:
    async def story() -> None:
        server = FakeServer(welcoming(ack=False, close_after=4), welcoming(resume_after=2))
        async with _running(server) as bench:
            bench.add_samples(4)
            await _until(lambda: bench.outbox.acknowledged_seq == 4)
            assert bench.server.seqs() == [1, 2, 3, 4, 3, 4], "1 and 2 were stored though never acknowledged"

    _story(story)


def test_a_server_that_is_away_for_a_while_misses_nothing() -> None:
    async def story() -> None:
        server = FakeServer(welcoming())
        async with _running(server) as bench:
            bench.add_samples(2)
            await _until(lambda: bench.outbox.acknowledged_seq == 2)
            await server.stop()
            bench.add_samples(3)
            await _until(lambda: len(bench.pauses) >= 2)
            await server.start()
            await _until(lambda: bench.outbox.acknowledged_seq == 5)
            assert server.seqs() == [1, 2, 3, 4, 5]

    _story(story)


def test_pauses_between_tries_grow_while_the_server_is_away() -> None:
    async def story() -> None:
        server = FakeServer(welcoming())
        await server.start()
        await server.stop()
        bench = Bench(server)
        task = asyncio.create_task(bench.uplink.run())
        await _until(lambda: len(bench.pauses) >= 10)
        await end(task)
        assert bench.pauses[0] <= 1.0
        assert bench.pauses[9] >= 15.0

    _story(story)


def test_a_server_that_falls_over_after_each_welcome_is_not_hammered() -> None:
    async def script(server: FakeServer, connection: ServerConnection) -> None:
        async for _ in server.listen(connection):
            await say(connection, WELCOME)
            return

    async def story() -> None:
        async with _running(FakeServer(script)) as bench:
            await _until(lambda: len(bench.pauses) >= 8)
            assert bench.pauses[7] >= 15.0

    _story(story)


def test_a_connection_that_worked_is_had_again_soon() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming(close_after=1), welcoming(close_after=2), welcoming())) as bench:
            for seq in (1, 2, 3):
                bench.add_samples(1)
                await _until(functools.partial(lambda seq: bench.outbox.acknowledged_seq == seq, seq))
            assert all(pause <= 1.0 for pause in bench.pauses)

    _story(story)


def test_each_situation_is_logged_once_and_names_server_reason_and_remedy(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="oomwatch_agent")

    async def story() -> None:
        server = FakeServer(welcoming())
        async with _running(server) as bench:
            bench.add_samples(1)
            await _until(lambda: bench.outbox.acknowledged_seq == 1)
            await server.stop()
            await _until(lambda: len(bench.pauses) >= 5)

    _story(story)
    connected, lost, unreachable = (record.message for record in caplog.records if record.name.endswith("uplink"))
    assert "connected to ws://127.0.0.1:" in connected
    assert "lost the connection to ws://127.0.0.1:" in lost
    assert "Connection refused; does the server run there, and listen on that port?" in unreachable
    assert "the last 10 minutes are kept" in unreachable


def test_what_was_dropped_while_the_server_was_away_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        server = FakeServer(welcoming())
        await server.start()
        bench = Bench(server)
        bench.outbox.add(wire.Sample(seq=0, at=0.0), now=0.0)
        bench.outbox.add(wire.Sample(seq=0, at=0.0), now=3600.0)
        task = asyncio.create_task(bench.uplink.run())
        await _until(lambda: server.seqs() == [2])
        await end(task)
        await server.stop()

    _story(story)
    assert "the oldest 1 messages were dropped" in caplog.text


# ---------------------------------------------------------------- refusals


def test_a_refusal_that_is_final_is_tried_again_every_minute_and_tells_the_remedy(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        turned_away = refusing(wire.RefusedReason.TOKEN, "the token is wrong", retry=False)
        async with _running(FakeServer(turned_away)) as bench:
            await _until(lambda: len(bench.pauses) >= 3)
            assert set(bench.pauses) == {60.0}

    _story(story)
    (line,) = (record.message for record in caplog.records if record.name.endswith("uplink"))
    assert "refuses this agent (token): the token is wrong; set --token" in line


def test_a_refusal_that_may_pass_is_tried_again_soon() -> None:
    async def story() -> None:
        turned_away = refusing(wire.RefusedReason.OVERLOADED, "too many agents", retry=True)
        async with _running(FakeServer(turned_away, welcoming())) as bench:
            bench.add_samples(1)
            await _until(lambda: bench.outbox.acknowledged_seq == 1)
            assert len(bench.pauses) == 1
            assert bench.pauses[0] <= 1.0

    _story(story)


@pytest.mark.parametrize(
    ("status", "words", "retry"),
    [
        (http.HTTPStatus.UNAUTHORIZED, "token", False),
        (http.HTTPStatus.NOT_FOUND, "is it an oomwatch server?", False),
        (http.HTTPStatus.BAD_GATEWAY, "502", True),
    ],
)
def test_a_server_that_answers_with_a_web_page_is_named_with_what_to_look_at(
    status: http.HTTPStatus, words: str, retry: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming(), status=status)) as bench:
            await _until(lambda: len(bench.pauses) >= 1)
            assert (bench.pauses[0] < 60.0) is retry

    _story(story)
    assert words in caplog.text


def test_something_else_than_an_oomwatch_server_is_said_to_be_that(caplog: pytest.LogCaptureFixture) -> None:
    async def script(server: FakeServer, connection: ServerConnection) -> None:
        async for _ in server.listen(connection):
            await connection.send("Request served by echo")

    async def story() -> None:
        async with _running(FakeServer(script)) as bench:
            await _until(lambda: len(bench.pauses) >= 1)

    _story(story)
    assert "is it an oomwatch server?" in caplog.text


def test_a_host_that_does_not_exist_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        bench = Bench(FakeServer(welcoming()), url="ws://no-such-host.invalid:8642/ws/agent")
        task = asyncio.create_task(bench.uplink.run())
        await _until(lambda: len(bench.pauses) >= 1)
        await end(task)

    _story(story)
    assert "cannot reach ws://no-such-host.invalid:8642" in caplog.text


def _what_is_said_where(answer: Answering, scheme: str, caplog: pytest.LogCaptureFixture) -> str:
    async def story() -> None:
        other = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = other.sockets[0].getsockname()[1]
        bench = Bench(FakeServer(welcoming()), url=f"{scheme}://127.0.0.1:{port}/ws/agent")
        task = asyncio.create_task(bench.uplink.run())
        await _until(lambda: len(bench.pauses) >= 1)
        await end(task)
        other.close()
        await other.wait_closed()

    _story(story)
    return caplog.text


def test_a_server_without_tls_is_not_taken_for_one_that_is_down(caplog: pytest.LogCaptureFixture) -> None:
    async def answer_in_plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    said = _what_is_said_where(answer_in_plain, "wss", caplog)
    assert "it speaks no TLS there; write ws:// in place of wss:// in --server, or give the server --tls-cert" in said


def test_a_port_that_takes_connections_and_closes_them_is_said_to_have_nobody_behind_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As a container's port is, whose program does not listen."""

    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    said = _what_is_said_where(close, "ws", caplog)
    assert "it closed the connection without an answer; is the server up behind it, and does it want wss://?" in said


# ---------------------------------------------------------------- goodbye


def _bye(bench: Bench) -> int:
    return bench.outbox.add(wire.Bye(seq=0, at=9.0), now=0.0)


def test_goodbye_sends_what_is_left_and_waits_until_it_is_stored() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.add_samples(2)
            await _until(lambda: bool(bench.server.heard))
            await _until(lambda: bench.outbox.acknowledged_seq == 2)
            assert await bench.uplink.finish(_bye(bench), DEADLINE_SECONDS)
            assert isinstance(bench.server.heard[-1], wire.Bye)

    _story(story)


def test_goodbye_to_a_server_that_does_not_acknowledge_ends_in_time() -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming(ack=False))) as bench:
            bench.add_samples(1)
            await _until(lambda: bench.server.seqs() == [1])
            assert not await bench.uplink.finish(_bye(bench), 0.05)

    _story(story)


def test_goodbye_without_a_connection_waits_for_nobody() -> None:
    async def story() -> None:
        bench = Bench(FakeServer(welcoming()), url="ws://127.0.0.1:1/ws/agent")
        assert not await bench.uplink.finish(_bye(bench), 3600.0)

    _story(story)


def test_the_servers_closing_after_goodbye_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with _running(FakeServer(welcoming())) as bench:
            bench.add_samples(1)
            await _until(lambda: bench.outbox.acknowledged_seq == 1)
            assert await bench.uplink.finish(_bye(bench), DEADLINE_SECONDS)
            await asyncio.wait_for(bench.server.all_closed(), DEADLINE_SECONDS)
            assert bench.pauses == []

    _story(story)
    assert "lost" not in caplog.text
