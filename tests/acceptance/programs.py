"""The real programs as processes on loopback, for tests that use oomwatch the way people do."""

import contextlib
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from tests.asking import answer_of
from tests.ports import free_port
from tests.server.running_server import ENVIRON

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_SECONDS = 60.0
T = TypeVar("T")


def until(what: str, look: Callable[[], T | None], *, seconds: float = DEADLINE_SECONDS) -> T:
    """What `look` finds, as soon as it finds something. Fails with `what` in words when the time is over."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(0.05)  # between two looks, never instead of one


class Program:
    """One process, its output kept in a file."""

    def __init__(
        self,
        name: str,
        arguments: list[str],
        folder: Path,
        environ: Mapping[str, str] | None = None,
        *,
        before: Sequence[str] = (),
        python: str | None = None,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        quiet = {name: value for name, value in ENVIRON.items() if not name.startswith("OOMWATCH_")}
        if python is not None:  # of an environment of its own, which is not to see what lies in this one
            del quiet["PYTHONPATH"]
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*before, python or sys.executable, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=folder,
                env={**quiet, "PYTHONUNBUFFERED": "1", **(environ or {})},
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Pull the plug: kill -9."""
        self._process.kill()
        self._process.wait()

    def stop(self, *, seconds: float = 15.0) -> int:
        """Ask it to end, and its exit status."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end within {seconds:g} s:\n{self.output}") from None


class ServerProgram:
    """`oomwatch serve` on a port of its own; its database lies in its folder unless `--db` names another.

    Not started yet; may be killed and started again. `before` are words that its command line begins with, `python` is
    the interpreter of another environment in which oomwatch is installed.
    """

    def __init__(
        self,
        folder: Path,
        rules: Path,
        *more: str,
        name: str = "server",
        before: Sequence[str] = (),
        python: str | None = None,
    ) -> None:
        self.name = name
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._before = before
        self._python = python
        db = () if "--db" in more else ("--db", str(folder / "oomwatch.db"))
        listen = ("--listen", f"127.0.0.1:{self.port}")
        self._arguments = ["-m", "oomwatch", "serve", *listen, *db, "--rules", str(rules), *more]
        self.program: Program

    def start(self) -> Program:
        self.program = Program(self.name, self._arguments, self._folder, before=self._before, python=self._python)
        return self.program

    def end(self) -> None:
        if self.program.running:
            self.program.kill()

    def wait_until_ready(self) -> None:
        until("the server to be ready", lambda: self.ready()[0] == HTTPStatus.OK)

    def ready(self) -> tuple[int, list[str]]:
        """The status of /readyz (0: nobody answers), and what it says is amiss."""
        status, body = self.ask("/readyz")
        return status, msgspec.json.decode(body)["problems"] if status else ["nobody answers"]

    def ask(self, path: str) -> tuple[int, bytes]:
        """The status of a GET (0: nobody answers), and what is said."""
        try:
            return answer_of(self.url + path)
        except OSError:
            assert self.program.running, self.program.output
            return 0, b""

    def get(self, path: str, *, raw: bool = False) -> Any:
        """The answer to a GET: JSON, or bytes where `raw`."""
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:  # noqa: S310 - loopback
            body = answer.read()
        return body if raw else msgspec.json.decode(body)


class Server(ServerProgram):
    """One that is ready from the beginning, and whenever it was started again."""

    def __init__(self, folder: Path, rules: Path, *more: str, python: str | None = None) -> None:
        super().__init__(folder, rules, *more, python=python)
        self.start()

    def start(self) -> Program:
        program = super().start()
        self.wait_until_ready()
        return program

    def alerts(self, **filters: str) -> list[dict[str, Any]]:
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        return list(self.get(f"/api/v1/alerts?{query}"))


def agent(folder: Path, server: Server, *arguments: str, node: str = "gpu-07", **environ: str) -> Program:
    """`oomwatch-agent` reporting to a server."""
    where = ["--server", f"ws://127.0.0.1:{server.port}", "--node", node]
    return Program(f"agent-{node}", ["-m", "oomwatch_agent", *where, *arguments], folder, environ)


@contextlib.contextmanager
def ending(*those: Program | ServerProgram) -> Iterator[None]:
    """Whatever happens, no process outlives its test."""
    try:
        yield
    finally:
        for one in those:
            program = one.program if isinstance(one, ServerProgram) else one
            if program.running:
                program.kill()
