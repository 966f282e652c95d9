"""A server that says what no server says."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.agent.fake_server import WELCOME, FakeServer, say, welcoming
from tests.faults.agents import running, samples, until, with_server
from websockets.asyncio.server import ServerConnection

from oomwatch import wire

SIMULATED = ("--simulate", "healthy", "--simulate-gpus", "2")
MEMORY_MIB = 80  # 36 of its own, and room for a frame that is refused
OVERSIZED_BYTES = 20 * 2**20

Say = Callable[[ServerConnection], Awaitable[None]]


async def _noise(connection: ServerConnection) -> None:
    for text in ("", "{", "[]", "null", '{"type":"ack"}', '{"type":"ack","seq":-1}', "\x00" * 1000, "x" * 2**19):
        await connection.send(text)
    await connection.send(b"\xff\xfe" * 1000)


async def _more_than_fits(connection: ServerConnection) -> None:
    await connection.send("x" * OVERSIZED_BYTES)


async def _broken_frames(connection: ServerConnection) -> None:
    connection.transport.write(bytes(range(256)) * 100)


async def _an_acknowledgement_of_what_was_never_sent(connection: ServerConnection) -> None:
    await say(connection, wire.Ack(seq=2**52))


@pytest.mark.parametrize("speak", [_noise, _more_than_fits, _broken_frames, _an_acknowledgement_of_what_was_never_sent])
def test_whatever_a_server_says_the_agent_goes_on_and_loses_nothing(speak: Say, tmp_path: Path) -> None:
    """The first connection is to one that says it after its welcome; that may end it, and the next is to a good one."""

    async def odd(server: FakeServer, connection: ServerConnection) -> None:
        server.heard.append(wire.decode_agent(await connection.recv()))
        await say(connection, WELCOME)
        await speak(connection)
        await connection.close()

    server = FakeServer(odd, welcoming())

    async def story() -> None:
        async with running(server.url, tmp_path, *SIMULATED) as agent:
            await until(lambda: len(samples(server)) >= 5, "samples")
            assert agent.resident_mib < MEMORY_MIB
            await agent.stopped()
            assert "unforeseen" not in agent.log
            assert "stopped; everything is stored" in agent.log

    with_server(server, story)
    first = server.seqs()[0]
    assert server.seqs() == list(range(first, server.seqs()[-1] + 1))
    if speak is not _an_acknowledgement_of_what_was_never_sent:
        assert first == 1
