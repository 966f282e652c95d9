"""A real agent over the scripted library: a card that fills up steeply is told before its time."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from tests.agent.fake_server import FakeServer, welcoming
from tests.nvml.standin import GIB, ScriptedGpus

from oomwatch import wire
from oomwatch_agent.pace import offset_seconds

INTERVAL_SECONDS = 2.0
DEADLINE_SECONDS = 60.0
_LOOK = ("nvmlDeviceGetMemoryInfo_v2", 1)  # at the memory of GPU 1
ROOT = Path(__file__).resolve().parents[2]


def _agent(server: FakeServer) -> list[str]:
    fixed = ["--server", server.url, "--node", "n1", "--interval", str(INTERVAL_SECONDS)]
    return [sys.executable, "-m", "oomwatch_agent", *fixed]


def _samples(server: FakeServer) -> list[wire.Sample]:
    return [message for message in server.heard if isinstance(message, wire.Sample)]


def _off_the_grid_seconds(at: float) -> float:
    """How far from the nearest moment at which this node reads anyway."""
    passed = (at - offset_seconds("n1", INTERVAL_SECONDS)) % INTERVAL_SECONDS
    return min(passed, INTERVAL_SECONDS - passed)


async def _until_heard(server: FakeServer, used_bytes: int, after: int) -> wire.Sample:
    """The first sample, of those after so many, in which GPU 1 is that full."""
    deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        for sample in _samples(server)[after:]:
            if any(gpu.gpu == "1" and gpu.used_bytes == used_bytes for gpu in sample.gpus):
                return sample
        await asyncio.sleep(0.01)
    pytest.fail("no such sample came")


@pytest.mark.parametrize(("to_gib", "early"), [(60, True), (41, False)])
def test_a_steep_rise_is_told_before_its_time_and_a_small_one_at_it(
    gpus: ScriptedGpus, to_gib: int, early: bool
) -> None:
    gpus.set(1, used_bytes=40 * GIB)

    async def story() -> None:
        server = FakeServer(welcoming())
        await server.start()
        environ = {**os.environ, **gpus.environment, "PYTHONPATH": f"{ROOT / 'backend'}:{ROOT / 'agent'}"}
        agent = await asyncio.create_subprocess_exec(*_agent(server), env=environ, stderr=asyncio.subprocess.DEVNULL)
        try:
            await _until_heard(server, 40 * GIB, after=1)  # the first is taken at once, the second on the grid
            heard = len(_samples(server))
            gpus.set(1, used_bytes=to_gib * GIB)
            told = await _until_heard(server, to_gib * GIB, after=heard)
            assert (_off_the_grid_seconds(told.at) > INTERVAL_SECONDS / 8) is early
        finally:
            agent.kill()
            await agent.wait()
            await server.stop()

    asyncio.run(story())


def test_a_spike_that_is_over_before_the_next_sample_is_told_all_the_same(gpus: ScriptedGpus) -> None:
    """The card filled steeply and has little room left, so that it is looked at ten times a second."""
    gpus.set(1, used_bytes=40 * GIB)

    async def story() -> None:
        server = FakeServer(welcoming())
        await server.start()
        environ = {**os.environ, **gpus.environment, "PYTHONPATH": f"{ROOT / 'backend'}:{ROOT / 'agent'}"}
        agent = await asyncio.create_subprocess_exec(*_agent(server), env=environ, stderr=asyncio.subprocess.DEVNULL)
        try:
            await _until_heard(server, 40 * GIB, after=1)
            gpus.set(1, used_bytes=76 * GIB)
            await _until_heard(server, 76 * GIB, after=2)
            gpu = await _until_a_peak_is_told(server, gpus, 78 * GIB)
            assert gpu.used_bytes == 76 * GIB
            assert 0.0 <= (gpu.used_peak_seconds_ago or 0.0) <= DEADLINE_SECONDS, "samples are late where all is slow"
        finally:
            agent.kill()
            await agent.wait()
            await server.stop()

    asyncio.run(story())


async def _until_a_peak_is_told(server: FakeServer, gpus: ScriptedGpus, peak_bytes: int) -> wire.GpuSample:
    """A spike after a sample, again and again: the first is a new height and told at once, as a reading. So is one that
    a sample happens to see; the others only looks have seen."""
    gpus.count_calls()
    used_bytes = gpus[1].used_bytes
    deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS
    while asyncio.get_running_loop().time() < deadline:
        heard = len(_samples(server))
        gpus.set(1, used_bytes=peak_bytes)
        await _until_looked_at(gpus, deadline)
        gpus.set(1, used_bytes=used_bytes)
        told = await _until_heard(server, used_bytes, after=heard)
        for gpu in told.gpus:
            if gpu.used_peak_bytes == peak_bytes:
                return gpu
    pytest.fail("no peak was told")


async def _until_looked_at(gpus: ScriptedGpus, deadline: float) -> None:
    """Twice from now on: the first may have begun before the last change."""
    seen = gpus.calls().count(_LOOK)
    while asyncio.get_running_loop().time() < deadline:
        if gpus.calls().count(_LOOK) >= seen + 2:
            return
        await asyncio.sleep(0.01)
