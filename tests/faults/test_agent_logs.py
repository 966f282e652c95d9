"""Logs as they break: what follows is read all the same, once, and within a bounded memory."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.fake_server import FakeServer, welcoming
from tests.faults.agents import Agent, running, until, with_server

from oomwatch import wire

GIGANTIC_BYTES = 64 * 2**20
PART_BYTES = 2**20
MEMORY_MIB = 80


def _append(log: Path, content: bytes) -> None:
    with log.open("ab") as file:
        file.write(content)


def _step(number: int) -> bytes:
    return f"step:{number} - timing_s/step:{number}.5 - timing_s/gen:9.0\n".encode()


def _gigantic_line(log: Path) -> None:
    for _ in range(GIGANTIC_BYTES // PART_BYTES):
        _append(log, b"x" * PART_BYTES)
    _append(log, b"\n")


def _gigantic_bar(log: Path) -> None:
    """A progress bar: no line feed for long."""
    _append(log, b"\r  5%|#         | 1/20 [00:01<00:19]" * 200_000 + b"\n")


def _binary(log: Path) -> None:
    _append(log, bytes(range(256)) * 20_000 + b"\n")


def _truncated(log: Path) -> None:
    log.write_bytes(b"")


def _rotated(log: Path) -> None:
    log.rename(log.with_suffix(".1"))
    log.write_bytes(b"")


def _removed(log: Path) -> None:
    log.unlink()


def _steps(server: FakeServer) -> list[int]:
    events = [message.body for message in server.heard if isinstance(message, wire.Event)]
    return [body.step for body in events if isinstance(body, wire.Step)]


@pytest.mark.parametrize("break_it", [_gigantic_line, _gigantic_bar, _binary, _truncated, _rotated, _removed])
def test_what_follows_in_a_log_that_broke_is_read_once(break_it: Callable[[Path], None], tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"")
    server = FakeServer(welcoming())

    async def story() -> None:
        argv = ("--log", str(log), "--log-from", "start", "--engine-metrics", "off")
        async with running(server.url, tmp_path, *argv) as agent:
            await until(lambda: server.heard, "the agent")
            _append(log, _step(1))
            await until(lambda: _steps(server) == [1], "the first step")
            await asyncio.to_thread(break_it, log)
            _append(log, _step(2))
            mib = await _most_resident_mib(agent, until_true=lambda: _steps(server)[1:])
            _append(log, _step(3))
            await until(lambda: _steps(server)[2:], "the third step")
            assert _steps(server) == [1, 2, 3]
            assert mib < MEMORY_MIB
            await agent.stopped()

    with_server(server, story)


async def _most_resident_mib(agent: Agent, *, until_true: Callable[[], object]) -> float:
    most = 0.0

    def seen() -> object:
        nonlocal most
        most = max(most, agent.resident_mib)
        return until_true()

    await until(seen, "the second step")
    return most
