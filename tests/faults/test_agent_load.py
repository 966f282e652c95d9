"""A driver that takes far too much CPU: the agent keeps to its budget as far as it can, and says what it spares."""

from pathlib import Path

from tests.agent.fake_server import FakeServer, welcoming
from tests.faults.agents import running, samples, statuses, told_of, until, used_bytes, with_host, with_server
from tests.nvml.standin import GIB, ScriptedGpus

GPUS = 8
BURN_MICROSECONDS = 300  # 8 GPUs with 6 calls each, and 3 looks: 14 ms of a second's samples, 7 ms of its looks
BUDGET_PERCENT = "1"
SAMPLES_AFTER = 5


def test_a_driver_that_is_dear_is_looked_at_less_and_read_at_every_interval_all_the_same(
    nvml_library: Path, tmp_path: Path
) -> None:
    gpus = ScriptedGpus(tmp_path / "gpus", nvml_library, count=GPUS)
    server = FakeServer(welcoming())

    async def story() -> None:
        argv = ("--cpu-budget", BUDGET_PERCENT)
        async with running(server.url, tmp_path, *argv, environ=gpus.environment, interval="1") as agent:
            await until(lambda: len(statuses(server)) == GPUS, "the cards")
            gpus.burn(BURN_MICROSECONDS)
            await until(lambda: "looks between samples" in _spared(server), "the agent to say what it spares")
            assert "raise it with --cpu-budget" in _spared(server)
            gpus.set(3, used_bytes=60 * GIB)
            before = len(samples(server))
            await until(lambda: len(with_host(server, before)) >= SAMPLES_AFTER, "samples to go on")
            await until(lambda: used_bytes(server, "3") == 60 * GIB, "what a card says")
            await agent.stopped()

    def _spared(server: FakeServer) -> str:
        told = told_of(server, "cpu budget")
        return (told.detail or "") if told else ""

    with_server(server, story)
