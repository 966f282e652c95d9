"""Server and agent on one machine, as two processes that share one fate: what `make run` starts."""

import argparse
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from types import FrameType

from oomwatch.settings import Address, Settings, address_of

START_SECONDS = 30.0
STOP_SECONDS = 8.0  # longer than either needs to say goodbye
LOOK_SECONDS = 0.1
PR_SET_PDEATHSIG = 1  # linux/prctl.h
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(options: argparse.Namespace) -> int:
    """Start both, and end with either. Gives the exit status."""
    editable = {"rules-editable": None} if options.rules_editable else {}
    return Up(
        server=_given(options, "listen", "db", "rules") | editable,
        agent=_given(options, "log", "ray", "run", "node", "simulate"),
    ).run()


def _given(options: argparse.Namespace, *names: str) -> dict[str, str | None]:
    return {name: value for name in names if (value := getattr(options, name)) is not None}


class StoppedError(Exception):
    """Someone asked us to stop."""


class Up:
    """`server` and `agent` are the flags to hand on, without their dashes; None for one that takes no value."""

    def __init__(self, *, server: Mapping[str, str | None], agent: Mapping[str, str | None]) -> None:
        self._server_flags: dict[str, str | None] = dict(server)
        # Without a GPU the agent shows a demo, and says so.
        by_itself: dict[str, str | None] = {} if os.environ.get("OOMWATCH_SIMULATE") else {"simulate": "auto"}
        self._agent_flags = by_itself | dict(agent)
        listen = server.get("listen") or os.environ.get("OOMWATCH_LISTEN") or Settings().listen
        self._address = address_of(Settings(listen=listen))

    def run(self) -> int:
        """Start both, wait for the end of either, and stop the other. Gives the exit status."""
        processes: list[subprocess.Popen[bytes]] = []
        try:
            with _raising_on_signals():
                return self._run(processes)
        except StoppedError:
            return 0
        finally:
            _stop(processes)

    def _run(self, processes: "list[subprocess.Popen[bytes]]") -> int:
        processes.append(_start("oomwatch", "serve", self._server_flags))
        if not _answers(self._address, processes[0]):
            return processes[0].returncode or 1
        processes.insert(0, _start("oomwatch_agent", None, {"server": _agent_url(self._address)} | self._agent_flags))
        _say(f"Dashboard: {self._address.url}   (Ctrl-C stops everything)")
        while all(process.poll() is None for process in processes):
            time.sleep(LOOK_SECONDS)
        return _tell_end(processes)


def _start(module: str, command: str | None, flags: Mapping[str, str | None]) -> "subprocess.Popen[bytes]":
    arguments = [part for name, value in flags.items() for part in (f"--{name}", value) if part is not None]
    # A session of its own: Ctrl-C in the terminal reaches only us, and we stop the agent before the server.
    return subprocess.Popen(  # noqa: S603 - our own programs, with the user's own flags
        [sys.executable, "-m", module, *([command] if command else []), *arguments],
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - we have no threads
    )


def _die_with_parent() -> None:
    """Should we be killed, the kernel stops the child (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _answers(address: Address, server: "subprocess.Popen[bytes]") -> bool:
    """Wait until the server answers; False where it gave up."""
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < deadline:
        if _is_alive(f"{address.url}/healthz"):
            # An older server on the same port answers too, while ours is finding out that the port is taken.
            time.sleep(LOOK_SECONDS)
            return server.poll() is None
        time.sleep(LOOK_SECONDS)
    return False


def _is_alive(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):  # noqa: S310 - our own http:// address
            return True
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return False
    except OSError:
        return False


def _agent_url(address: Address) -> str:
    return "ws" + address.url.removeprefix("http")


def _tell_end(processes: "list[subprocess.Popen[bytes]]") -> int:
    ended = next(process for process in processes if process.poll() is not None)
    name = "server" if ended is processes[-1] else "agent"
    _say(f"The {name} has ended (status {ended.returncode}); stopping the other.")
    return ended.returncode or 1


def _stop(processes: "list[subprocess.Popen[bytes]]") -> None:
    """One after the other, so that the agent can still say goodbye to the server."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _raising_on_signals() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # stopping takes a moment, and must not be interrupted
        raise StoppedError

    for number in STOP_SIGNALS:
        signal.signal(number, stop)
    yield


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
