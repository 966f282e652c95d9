"""From torch's counters within a launched training, through a real agent, to what a server receives."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.agent.fake_server import FakeServer, welcoming
from tests.probe.guests import CUDA_IN_USE, DEADLINE_SECONDS, GIB, ROOT, STANDIN, environment

from oomwatch import wire

ALONE = ("--ray", "off", "--engine-metrics", "off")
FAST = "import oomwatch_probe.sampling as sampling\nsampling.INTERVAL_SECONDS = 0.02\n"


async def _start(*argv: str) -> asyncio.subprocess.Process:
    dependencies = [entry for entry in sys.path if entry.endswith("site-packages")]
    path = ":".join([str(ROOT / "agent"), str(ROOT / "backend"), str(STANDIN), *dependencies])
    pipe = asyncio.subprocess.PIPE
    program = (sys.executable, "-m", "oomwatch_agent", *argv)
    return await asyncio.create_subprocess_exec(
        *program, env=environment(PYTHONPATH=path), stdin=pipe, stdout=pipe, stderr=pipe
    )


async def _until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)

    await asyncio.wait_for(poll(), DEADLINE_SECONDS)


def test_the_server_receives_what_torch_holds_and_who_holds_it(tmp_path: Path) -> None:
    socket = str(tmp_path / "probe.sock")
    (tmp_path / "train.py").write_text(FAST + CUDA_IN_USE + "import sys; sys.stdin.read()\n")
    server = FakeServer(welcoming())

    def torch() -> list[wire.TorchSample]:
        return [torch for sample in server.heard if isinstance(sample, wire.Sample) for torch in sample.torch]

    async def story(started: list[asyncio.subprocess.Process]) -> None:
        agent = await _start("--server", server.url, "--node", "n1", "--interval", "0.2", "--probe", socket, *ALONE)
        started.append(agent)
        await _until(lambda: Path(socket).exists())
        training = await _start("run", "--run", "qwen", "--probe", socket, "--", sys.executable, f"{tmp_path}/train.py")
        started.append(training)
        await _until(lambda: bool(torch()))
        first = torch()[0]
        assert (first.pid, first.run, first.reserved_bytes) == (training.pid, "qwen", 3 * GIB)
        events = [message for message in server.heard if isinstance(message, wire.Event)]
        assert [(type(event.body), event.run) for event in events] == [(wire.Probe, "qwen")]
        _, told = await asyncio.wait_for(training.communicate(b""), DEADLINE_SECONDS)
        assert (training.returncode, told) == (0, b"")
        agent.send_signal(signal.SIGTERM)
        await asyncio.wait_for(agent.communicate(b""), DEADLINE_SECONDS)
        assert agent.returncode == 0

    asyncio.run(_with_server(server, story))
    assert not Path(socket).exists()


async def _with_server(
    server: FakeServer, story: Callable[[list[asyncio.subprocess.Process]], Awaitable[None]]
) -> None:
    started: list[asyncio.subprocess.Process] = []
    await server.start()
    try:
        await story(started)
    finally:
        for process in started:
            if process.returncode is None:
                process.kill()
                await process.communicate()
        await server.stop()
