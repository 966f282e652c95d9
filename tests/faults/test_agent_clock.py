"""A clock that is set, and a machine that sleeps: samples keep their rhythm and the server is told."""

import signal
import time
from pathlib import Path

import pytest
from tests.agent.fake_server import FakeServer, welcoming
from tests.faults.agents import Shim, running, samples, until, with_server

from oomwatch import wire
from oomwatch_agent.sampler import HUNG_AFTER_SECONDS

INTERVAL_SECONDS = 0.2
SIMULATED = ("--simulate", "healthy", "--simulate-gpus", "2")
WATCHED_SECONDS = 3.0  # after a jump
SUSPENDED_SECONDS = HUNG_AFTER_SECONDS + 1.0  # a source would be called hung


def _hellos(server: FakeServer) -> list[wire.Hello]:
    return [message for message in server.heard if isinstance(message, wire.Hello)]


@pytest.mark.parametrize("jump_seconds", [3600.0, -3600.0])
def test_a_clock_that_is_set_neither_stops_the_samples_nor_floods_the_server_and_is_told(
    jump_seconds: float, shim: Shim, tmp_path: Path
) -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        async with running(server.url, tmp_path, *SIMULATED, environ=shim.environment) as agent:
            await until(lambda: len(samples(server)) >= 3, "samples")
            before, at = len(samples(server)), time.monotonic()
            shim.set(clock_ahead_seconds=jump_seconds)
            await until(lambda: len(samples(server)) >= before + WATCHED_SECONDS / INTERVAL_SECONDS, "samples to go on")
            passed = time.monotonic() - at
            # At most one more than the rhythm gives, however long that took on a slow machine.
            assert len(samples(server)) - before <= passed / INTERVAL_SECONDS + 3
            assert abs(samples(server)[-1].at - time.time() - jump_seconds) < passed
            await until(lambda: len(_hellos(server)) >= 2, "the server to be told")
            assert abs(_hellos(server)[-1].sent_at - time.time() - jump_seconds) < passed
            assert "this machine's clock was set by" in agent.log
            assert len(server.connections) == 1, "it is told on the connection that there is"
            await agent.stopped()

    with_server(server, story)
    assert server.seqs() == list(range(1, len(server.seqs()) + 1))


def test_an_agent_that_was_suspended_goes_on_where_it_was(tmp_path: Path) -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        async with running(server.url, tmp_path, *SIMULATED) as agent:
            await until(lambda: len(samples(server)) >= 3, "samples")
            agent.signal(signal.SIGSTOP)
            slept_from, slept_at = len(samples(server)), time.monotonic()
            await until(
                lambda: time.monotonic() - slept_at > SUSPENDED_SECONDS, "the agent to have slept for long enough"
            )
            assert len(samples(server)) <= slept_from + 2, "what it had sent came"
            at, before = time.monotonic(), len(samples(server))
            agent.signal(signal.SIGCONT)
            await until(lambda: len(samples(server)) >= before + 5, "samples to go on")
            assert len(samples(server)) - before <= (time.monotonic() - at) / INTERVAL_SECONDS + 3, "no flood"
            assert all(gpu.status == "ok" for gpu in samples(server)[-1].gpus)
            assert len(server.connections) == 1
            await agent.stopped()

    with_server(server, story)
    assert server.seqs() == list(range(1, len(server.seqs()) + 1))
