"""From torch's counters within a launched training, through a real agent, to what a server receives."""

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.agent.fake_server import FakeServer, asking, welcoming
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


ASK = wire.ActRequest(
    id="a1",
    alert=wire.Alert(
        id="a1", alert="memory_forecast", severity="critical", state="firing",
        labels={"node": "n1", "run": "qwen"}, started_at=1.0, texts={},
    ),
    acts=wire.ACTS,
    step_seconds=0.5,
)  # fmt: skip
HOOK = """#!/bin/sh
cat > alert-as-the-hook-saw-it.json
echo saved
"""


def test_what_a_server_asks_for_is_done_within_the_trainer_while_it_lives(tmp_path: Path) -> None:
    socket, hook = str(tmp_path / "probe.sock"), tmp_path / "hook"
    code = FAST + CUDA_IN_USE + "from torch.cuda import memory\nimport sys\n"
    reading = "import threading, time\nthreading.Thread(target=sys.stdin.read).start()\n"
    (tmp_path / "train.py").write_text(
        code + reading + "while threading.active_count() > 1: memory.take(3); time.sleep(0.01)\n"
    )
    hook.write_text(HOOK)
    hook.chmod(0o755)
    server = FakeServer(asking(ASK, ASK, once=lambda sample: bool(sample.torch)))  # twice, as after a break
    allowing = ("--allow-acts", "memory_snapshot,stacks,hook", "--hook", str(hook), "--acts-dir", f"{tmp_path}/acts")

    def told() -> dict[str, wire.ActDone]:
        events = [message for message in server.heard if isinstance(message, wire.Event)]
        assert all(event.run == "qwen" for event in events)
        return {event.body.act: event.body for event in events if isinstance(event.body, wire.ActDone)}

    async def story(started: list[asyncio.subprocess.Process]) -> None:
        where = ("--server", server.url, "--node", "n1", "--interval", "0.2", "--probe", socket)
        agent = await _start(*where, *allowing, *ALONE)
        started.append(agent)
        await _until(lambda: Path(socket).exists())
        training = await _start("run", "--run", "qwen", "--probe", socket, "--", sys.executable, f"{tmp_path}/train.py")
        started.append(training)
        await _until(lambda: set(told()) == set(wire.ACTS))
        assert {act: done.ok for act, done in told().items()} == dict.fromkeys(wire.ACTS, True)
        os.kill(training.pid, 0)  # it lives
        _check_files(tmp_path / "acts", training.pid, told())
        _, said = await asyncio.wait_for(training.communicate(b""), DEADLINE_SECONDS)
        assert (training.returncode, said) == (0, b"")
        agent.send_signal(signal.SIGTERM)
        _, log = await asyncio.wait_for(agent.communicate(b""), DEADLINE_SECONDS)
        assert log.count(b"the server asks for memory_snapshot, stacks, hook because of alert") == 1
        assert b"act hook for alert memory_forecast (a1): ended with status 0" in log

    asyncio.run(_with_server(server, story))


def _check_files(acts: Path, pid: int, told: dict[str, wire.ActDone]) -> None:
    (folder,) = acts.iterdir()
    assert folder.name.endswith("-memory_forecast-a1")
    snapshot = pickle.loads((folder / f"memory_snapshot-{pid}/memory.pickle").read_bytes())  # noqa: S301 - our own
    assert snapshot["device_traces"][0][0]["frames"][0]["filename"] == "train.py"
    assert told["memory_snapshot"].path == str(folder / f"memory_snapshot-{pid}")
    assert "train.py" in Path(told["stacks"].path or "").read_text()
    assert Path(told["hook"].path or "").read_text() == "saved\n"
    assert (folder / "alert-as-the-hook-saw-it.json").read_bytes() == wire.encode(ASK.alert) + b"\n"


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
