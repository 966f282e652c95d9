"""SIGTERM in every state: the agent ends by itself, soon, with status 0, and says what the server has not stored."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.agent.fake_server import WELCOME, FakeServer, say, welcoming
from tests.faults.agents import EXIT_SECONDS, Shim, running, samples, statuses, told_of, until, with_server
from tests.nvml.standin import ScriptedGpus
from websockets.asyncio.server import ServerConnection

from oomwatch import wire

SIMULATED = ("--simulate", "healthy", "--simulate-gpus", "2")
ALL_STORED = "stopped; everything is stored"
NOT_STORED = "stopped; the server had not stored the last"


@contextlib.asynccontextmanager
async def silent_host() -> AsyncIterator[tuple[str, Callable[[], int]]]:
    """A port that takes every connection and never says a word; and how many it has taken."""
    taken: list[asyncio.StreamWriter] = []

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(writer)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", lambda: len(taken)
    finally:
        server.close()
        for writer in taken:
            writer.transport.abort()


@pytest.fixture
def gpus(nvml_library: Path, tmp_path: Path) -> ScriptedGpus:
    return ScriptedGpus(tmp_path / "gpus", nvml_library, count=2)


def test_while_it_starts_and_the_driver_hangs(gpus: ScriptedGpus, tmp_path: Path) -> None:
    gpus.hang_library(True)

    async def story() -> None:
        async with running("127.0.0.1:1", tmp_path, environ=gpus.environment) as agent:
            await agent.says("source host: ok")
            assert await agent.stopped() < EXIT_SECONDS
            assert NOT_STORED in agent.log

    asyncio.run(story())


def test_while_its_host_answers_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with silent_host() as (address, taken), running(address, tmp_path, *SIMULATED) as agent:
            await until(lambda: taken() == 1, "the agent to connect")
            assert await agent.stopped() < EXIT_SECONDS
            assert NOT_STORED in agent.log

    asyncio.run(story())


def test_while_the_name_of_its_server_is_looked_up_in_vain(shim: Shim, tmp_path: Path) -> None:
    shim.set(resolver_hangs=True)

    async def story() -> None:
        async with running("gpu-monitor.invalid:8642", tmp_path, *SIMULATED, environ=shim.environment) as agent:
            await until(lambda: shim.has_hung, "the name to be looked up")
            assert await agent.stopped() < EXIT_SECONDS
            assert NOT_STORED in agent.log

    asyncio.run(story())


def test_while_it_pauses_before_it_tries_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with running("127.0.0.1:1", tmp_path, *SIMULATED) as agent:
            await agent.says("Connection refused")
            assert await agent.stopped() < EXIT_SECONDS
            assert NOT_STORED in agent.log

    asyncio.run(story())


def test_while_all_is_well(tmp_path: Path) -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        async with running(server.url, tmp_path, *SIMULATED) as agent:
            await until(lambda: len(samples(server)) >= 3, "samples")
            await agent.stopped()
            assert ALL_STORED in agent.log

    with_server(server, story)
    assert isinstance(server.heard[-1], wire.Bye)


def test_while_the_driver_hangs(gpus: ScriptedGpus, tmp_path: Path) -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        async with running(server.url, tmp_path, environ=gpus.environment) as agent:
            await until(lambda: statuses(server) == {"0": "ok", "1": "ok"}, "the cards")
            gpus.hang_library(True)
            gpus.set(0, hang=True)
            gpus.set(1, hang=True)
            await until(lambda: set(statuses(server).values()) == {"no_data"}, "the cards to have no data")
            assert await agent.stopped() < EXIT_SECONDS
            assert ALL_STORED in agent.log, "what could be read is stored"

    with_server(server, story)


def test_while_the_server_reads_nothing_in_the_middle_of_a_backlog(tmp_path: Path) -> None:
    """It welcomes, and then stands still: what is sent fills both sides' buffers, and the agent waits to write more."""
    log = tmp_path / "train.log"
    log.write_text(
        "".join(f"step:{number} - timing_s/step:{number}.5 - timing_s/gen:9.0\n" for number in range(20_000))
    )

    async def stand_still(server: FakeServer, connection: ServerConnection) -> None:
        server.heard.append(wire.decode_agent(await connection.recv()))
        connection.transport.pause_reading()
        connection.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await say(connection, WELCOME)
        await over.wait()

    over = asyncio.Event()
    server = FakeServer(stand_still)

    async def story() -> None:
        argv = ("--log", str(log), "--log-from", "start", "--engine-metrics", "off")
        try:
            async with running(server.url, tmp_path, *argv) as agent:
                await agent.says("connected to")
                await until(lambda: _unsent_bytes(agent.process.pid) > 0, "the agent to wait for the server")
                assert await agent.stopped() < EXIT_SECONDS
                assert NOT_STORED in agent.log
        finally:
            over.set()

    with_server(server, story)


def test_while_it_reads_a_huge_backlog_as_slowly_as_its_budget_asks(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    steps = 400_000
    log.write_text("".join(f"step:{n} - timing_s/step:{n}.5 - timing_s/gen:9.0\n" for n in range(steps)))
    server = FakeServer(welcoming())

    async def story() -> None:
        argv = ("--log", str(log), "--log-from", "auto", "--engine-metrics", "off", "--cpu-budget", "0.1")
        async with running(server.url, tmp_path, *argv) as agent:
            await until(lambda: "--cpu-budget" in str(told_of(server, "log train.log")), "the budget to hold it back")
            await until(lambda: _steps_told(server), "the first steps")
            assert await agent.stopped() < EXIT_SECONDS
            assert ALL_STORED in agent.log or NOT_STORED in agent.log, "with a goodbye, in the middle of the log"
            assert _steps_told(server) < steps

    with_server(server, story)


def _steps_told(server: FakeServer) -> int:
    return sum(isinstance(said, wire.Event) and isinstance(said.body, wire.Step) for said in server.heard)


def _unsent_bytes(pid: int) -> int:
    """What the kernel holds of the agent's sending: the other side takes no more. From /proc/PID/net/tcp, tx_queue."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    own = _inodes(pid)
    queues = (line.split()[4].partition(":")[0] for line in lines if line.split()[9] in own)
    return sum(int(queue, 16) for queue in queues)


def _inodes(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    return found
