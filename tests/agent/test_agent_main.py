"""The agent as a process: it starts, streams, stops as asked, and says plainly what is wrong."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest
from tests.agent.fake_server import WELCOME, FakeServer, asking, refusing, say, welcoming
from websockets.asyncio.server import ServerConnection

from oomwatch import __version__, wire
from oomwatch_agent.__main__ import main
from oomwatch_agent.check import FIRST_ANSWERS_SECONDS

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 30.0
MEMORY_BUDGET_MIB = 50
SIMULATED = ("--simulate", "healthy", "--simulate-gpus", "2", "--interval", "0.2", "--node", "n1")


class Process:
    """A running agent, and what it said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, *argv: str) -> "Process":
        environ = {name: value for name, value in os.environ.items() if not name.startswith("OOMWATCH_")}
        environ["PYTHONPATH"] = f"{ROOT / 'backend'}:{ROOT / 'agent'}"
        pipe = asyncio.subprocess.PIPE
        program = (sys.executable, "-m", "oomwatch_agent", *argv)
        return cls(await asyncio.create_subprocess_exec(*program, env=environ, stdout=pipe, stderr=pipe))

    @property
    def pid(self) -> int:
        return self._process.pid

    async def ended(self) -> tuple[int | None, str, str]:
        """Exit status, standard output and log, once it has ended."""
        try:
            out, log = await asyncio.wait_for(self._process.communicate(), DEADLINE_SECONDS)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.communicate()
            raise
        return self._process.returncode, out.decode(), log.decode()

    async def says(self, words: str) -> None:
        """Wait for words in the log."""
        assert self._process.stderr is not None
        while line := await asyncio.wait_for(self._process.stderr.readline(), DEADLINE_SECONDS):
            if words in line.decode():
                return
        pytest.fail(f"the agent ended without saying {words}")

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)


async def _until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)

    await asyncio.wait_for(poll(), DEADLINE_SECONDS)


def _with_server(server: FakeServer, story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await server.start()
        try:
            await story()
        finally:
            await server.stop()

    asyncio.run(run())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_streams_samples_until_it_is_stopped_and_then_says_goodbye(number: signal.Signals) -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        agent = await Process.start("--server", server.url, *SIMULATED)
        await _until(lambda: len(server.heard_of(wire.Sample)) >= 3)
        agent.signal(number)
        status, _, log = await agent.ended()
        assert status == 0
        assert "stopped; everything is stored" in log

    _with_server(server, story)
    hello = server.heard[0]
    assert isinstance(hello, wire.Hello)
    assert (hello.node, hello.simulated, hello.agent_version) == ("n1", True, __version__)
    assert [gpu.gpu for gpu in hello.facts.gpus] == ["0", "1"], "the first hello knows the GPUs"
    samples = [message for message in server.heard if isinstance(message, wire.Sample)]
    assert all(len(sample.gpus) == 2 and sample.host is not None for sample in samples)
    assert isinstance(server.heard[-1], wire.Bye)
    assert server.seqs() == list(range(1, len(server.seqs()) + 1))


def test_the_effective_settings_are_logged_without_the_token() -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        agent = await Process.start("--server", server.url, "--token", "s3cret", *SIMULATED)
        await _until(lambda: bool(server.heard))
        agent.signal(signal.SIGTERM)
        _, _, log = await agent.ended()
        assert "node = n1 (flag --node)" in log
        assert "token = (secret) (flag --token)" in log
        assert "s3cret" not in log

    _with_server(server, story)
    assert server.authorizations == ["Bearer s3cret"]


def test_who_stops_it_while_it_starts_has_stopped_it(tmp_path: Path) -> None:
    settings = tmp_path / "agent.yaml"
    os.mkfifo(settings)
    ends: list[int] = []  # to write to; the settings that it waits for never come

    def is_read() -> bool:
        with contextlib.suppress(OSError):  # nobody has opened it to read
            ends.append(os.open(settings, os.O_WRONLY | os.O_NONBLOCK))
        return bool(ends)

    async def story() -> None:
        agent = await Process.start("--config", str(settings), *SIMULATED)
        await _until(is_read)
        agent.signal(signal.SIGTERM)
        os.close(ends.pop())  # a signal that came just before it began to wait is heeded once the waiting is over
        status, _, log = await agent.ended()
        assert (status, log) == (0, "")

    asyncio.run(story())


def test_without_a_server_it_runs_on_and_stops_at_once_when_asked() -> None:
    async def story() -> None:
        agent = await Process.start("--server", "127.0.0.1:1", *SIMULATED)
        await agent.says("cannot reach ws://127.0.0.1:1/ws/agent: Connection refused")
        agent.signal(signal.SIGTERM)
        status, _, log = await agent.ended()
        assert status == 0
        assert "the server had not stored" in log

    asyncio.run(story())


def test_it_fits_into_a_trainers_image() -> None:
    """35 MiB on Python 3.11 (bench/agent.py); the budget leaves room for other versions' interpreters."""
    server = FakeServer(welcoming())

    async def story() -> None:
        agent = await Process.start("--server", server.url, *SIMULATED)
        await _until(lambda: len(server.heard_of(wire.Sample)) >= 5)
        resident_mib = psutil.Process(agent.pid).memory_info().rss / 2**20
        agent.signal(signal.SIGTERM)
        await agent.ended()
        assert resident_mib < MEMORY_BUDGET_MIB

    _with_server(server, story)


def test_an_agent_that_is_stopped_ends_its_hook_and_tells_of_it_first(tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text("#!/bin/sh\necho $$ > pid\nexec sleep 600\n")
    hook.chmod(0o755)
    alert = wire.Alert(
        id="a1", alert="full", severity="critical", state="firing", labels={"node": "n1"}, started_at=1.0, texts={}
    )
    server = FakeServer(asking(wire.ActRequest(id="a1", alert=alert, acts=("hook", "stacks"))))

    def pids() -> list[str]:
        return [told for path in tmp_path.glob("acts/*/pid") if (told := path.read_text())]

    async def story() -> None:
        permitting = ("--allow-acts", "hook", "--hook", str(hook), "--acts-dir", str(tmp_path / "acts"))
        agent = await Process.start("--server", server.url, *SIMULATED, *permitting)
        await _until(lambda: bool(pids()))
        agent.signal(signal.SIGTERM)
        status, _, log = await agent.ended()
        assert status == 0, log
        assert not psutil.pid_exists(int(pids()[0]))

    _with_server(server, story)
    *_, last = server.heard
    assert isinstance(last, wire.Bye)
    bodies = [one.body for one in server.heard if isinstance(one, wire.Event) and isinstance(one.body, wire.ActDone)]
    assert [(body.act, body.detail) for body in bodies] == [
        ("stacks", "not allowed on this node; start its agent with --allow-acts stacks"),
        ("hook", "killed, since the agent was stopped"),
    ]


def test_check_says_what_is_found_and_that_the_server_takes_it() -> None:
    server = FakeServer(welcoming())

    async def story() -> None:
        agent = await Process.start("--server", server.url, "--check", *SIMULATED)
        status, out, log = await agent.ended()
        assert (status, log) == (0, "")
        assert "simulated      ok" in out
        assert "GPUs: 2" in out
        assert "Simulated H100 80GB HBM3, 79.11 GiB usable" in out
        assert '"type": "sample"' in out
        assert "Acts permitted before a process dies: none" in out
        assert f"Server {server.url} (oomwatch 9.9) takes this agent as node n1" in out

    _with_server(server, story)
    hello, bye = server.heard
    assert isinstance(hello, wire.Hello)
    assert hello.check, "a server that knows checks keeps nothing of it"
    assert isinstance(bye, wire.Bye), "an older one is left no silent node"


def test_check_takes_it_that_a_server_closes_as_soon_as_it_has_answered() -> None:
    async def answering_only(server: FakeServer, connection: ServerConnection) -> None:
        async for _ in server.listen(connection):
            await say(connection, WELCOME)
            return

    server = FakeServer(answering_only)

    async def story() -> None:
        agent = await Process.start("--server", server.url, "--check", *SIMULATED)
        status, out, log = await agent.ended()
        assert (status, log) == (0, "")
        assert "takes this agent as node n1" in out

    _with_server(server, story)


def test_check_fails_with_the_servers_own_sentence_when_it_is_refused() -> None:
    server = FakeServer(refusing(wire.RefusedReason.NODE_TAKEN, 'another agent is "n1"', retry=True))

    async def story() -> None:
        agent = await Process.start("--server", server.url, "--check", *SIMULATED)
        status, out, log = await agent.ended()
        assert status == 1
        assert "GPUs: 2" in out
        assert 'refuses this agent (node_taken): another agent is "n1"; if two agents share the name' in log

    _with_server(server, story)


def test_a_check_that_is_stopped_has_not_found_all_to_be_well() -> None:
    async def listen(server: FakeServer, connection: ServerConnection) -> None:
        async for _ in server.listen(connection):
            pass  # and never answers

    async def story() -> None:
        server = FakeServer(listen)
        await server.start()
        agent = await Process.start("--server", server.url, "--check", *SIMULATED)
        await _until(lambda: bool(server.heard))
        agent.signal(signal.SIGTERM)
        status, _, _ = await agent.ended()
        assert status == -signal.SIGTERM
        await server.stop()

    asyncio.run(story())


def test_check_does_not_wait_for_what_may_never_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started_at = time.monotonic()
    argv = ["--server", "127.0.0.1:1", "--check", "--ray", "off", "--log", str(tmp_path / "later.log")]
    assert main(argv) == 1
    assert time.monotonic() - started_at < FIRST_ANSWERS_SECONDS
    assert "waiting" in capsys.readouterr().out


def test_check_fails_when_there_is_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--server", "127.0.0.1:1", "--check", *SIMULATED]) == 1
    told = capsys.readouterr()
    assert "simulated      ok" in told.out
    assert "cannot reach ws://127.0.0.1:1/ws/agent: Connection refused" in told.err


def test_a_wrong_setting_ends_it_with_status_2_and_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--simulate", "chaos"]) == 2
    assert 'oomwatch-agent: flag --simulate: there is no scenario "chaos"' in capsys.readouterr().err


def test_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"oomwatch-agent {__version__}\n"
