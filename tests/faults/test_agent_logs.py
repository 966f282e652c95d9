"""Logs as they break: what follows is read all the same, once, and within a bounded memory."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.fake_server import FakeServer, welcoming
from tests.faults.agents import Agent, hellos, running, samples, told_of, until, with_server

from oomwatch import wire

GIGANTIC_BYTES = 64 * 2**20
FLOOD_BYTES = 100 * 2**20  # as fast as a disk takes it: some hundred MB a second
PART_BYTES = 2**20
MEMORY_MIB = 80
LOST = wire.SourceFacts(name="log", state="missing", detail="it is not told of")


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


def _flood(log: Path) -> None:
    block = b"INFO a line of chatter, of which there is no end while this goes on\n" * 16_000
    for _ in range(FLOOD_BYTES // len(block)):
        _append(log, block)


def test_a_log_that_grows_faster_than_it_can_be_read_delays_no_sample_and_loses_no_line(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"")
    server = FakeServer(welcoming())

    async def story() -> None:
        argv = ("--log", str(log), "--log-from", "start", "--engine-metrics", "off", "--cpu-budget", "1")
        async with running(server.url, tmp_path, *argv) as agent:
            await until(lambda: server.heard, "the agent")
            before, cpu_before = len(samples(server)), agent.cpu_seconds  # it reads while the flood comes, too
            await asyncio.to_thread(_flood, log)
            _append(log, _step(1))
            mib = await _most_resident_mib(agent, until_true=lambda: _steps(server))
            took = len(samples(server)) - before
            assert took >= 100 // 4 - 5, "of 4 MiB each"
            assert (agent.cpu_seconds - cpu_before) / took < 0.15, "a tenth of a second of reading at most"
            assert mib < MEMORY_MIB
            details = [told.detail or "" for hello in hellos(server) for told in hello.facts.sources]
            assert any(detail.endswith(" MB behind: more is written than can be read") for detail in details)
            await until(
                lambda: (told_of(server, "log train.log") or LOST).detail is None, "it to say that it has come up"
            )
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
