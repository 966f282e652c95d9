"""Asking something of a process with the probe inside: a file beside the probe's socket, answered in its messages.

The probe looks for the file once a second (`oomwatch_probe.asked` is the other half) and tells in every message how far
it is, until the file is gone. So nothing listens within the trainer, and no message that is lost is missed.
"""

import contextlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from oomwatch.oserror import with_place
from oomwatch_agent.probe.report import Answer, Report

_OURS = re.compile(r"ask-\d+-\d+|\.asking-\w{8}")  # what lies beside a socket that a person named may be anything
TAKEN_SECONDS = 6.0  # within which a probe that knows the act has said so: it looks once a second
_WAIT_SECONDS = 0.5


class NoAnswerError(Exception):
    """The process does not do it. The text says why."""


class Asking:
    """Between the source, which hears the probes, and the acts, which ask. Every method may be called by any thread.

    `interval_seconds` is how often the source is read: an answer takes so much longer.
    """

    def __init__(self, *, interval_seconds: float = 1.0, taken_seconds: float = TAKEN_SECONDS) -> None:
        self._taken_seconds = taken_seconds + 2 * interval_seconds
        self._heard = threading.Condition()
        self._folder: Path | None = None
        self._guests: Mapping[int, Report] = {}
        self._asked: dict[Path, dict[str, Any]] = {}  # by file, by act
        self._closed = False

    def hear(self, folder: Path, guests: Mapping[int, Report]) -> None:
        """The latest of every process with the probe inside, by the agent's number of it."""
        with self._heard:
            self._folder, self._guests = folder, guests
            self._heard.notify_all()

    def knows(self, pid: int) -> bool:
        return pid in self._guests

    def ask(self, pid: int, act: str, what: dict[str, Any], within_seconds: float) -> Answer:
        """Have a process do it, and wait for the end of it. Raises NoAnswerError."""
        path = self._put(pid, act, what)
        try:
            return self._wait(pid, act, str(what["id"]), within_seconds)
        finally:
            self._take_back(path, act)

    def clear(self, folder: Path) -> None:
        """Take away what an agent that was killed has asked: its probes stop, and nobody would hear them."""
        with contextlib.suppress(OSError):
            for path in folder.iterdir():
                if _OURS.fullmatch(path.name) and path not in self._asked:
                    path.unlink()

    def close(self) -> None:
        """Nobody waits any more: what was asked is taken back."""
        with self._heard:
            self._closed = True
            self._heard.notify_all()
            for path in self._asked:
                with contextlib.suppress(OSError):
                    path.unlink()
            self._asked = {}

    def _put(self, pid: int, act: str, what: dict[str, Any]) -> Path:
        with self._heard:
            report, folder = self._guests.get(pid), self._folder
            if report is None or folder is None:
                raise NoAnswerError("no probe is in it")
            path = folder / ask_name(report.pid, report.started_at)
            asked = self._asked[path] = {**self._asked.get(path, {}), act: what}
            try:
                _write_whole(path, msgspec.json.encode(asked))
            except OSError as error:
                raise NoAnswerError(f"it cannot be asked: {with_place(error)}") from error
        return path

    def _take_back(self, path: Path, act: str) -> None:
        with self._heard, contextlib.suppress(OSError):
            asked = self._asked.get(path, {})
            asked.pop(act, None)
            if asked:
                _write_whole(path, msgspec.json.encode(asked))
                return
            self._asked.pop(path, None)
            path.unlink()

    def _wait(self, pid: int, act: str, key: str, within_seconds: float) -> Answer:
        started_at = time.monotonic()
        while not self._closed:
            waited = time.monotonic() - started_at
            with self._heard:
                report = self._guests.get(pid)
                answer = _answer(report, act, key)
                if answer is None or answer.state == "working":
                    self._heard.wait(_WAIT_SECONDS)
            if answer is not None and answer.state != "working":
                return answer
            if report is None:
                raise NoAnswerError("it ended meanwhile")
            if answer is None and waited > self._taken_seconds:
                raise NoAnswerError("its probe does not answer; it may be of an older version")
            if waited > within_seconds:
                raise NoAnswerError(f"it was not done after {within_seconds:g} s")
        raise NoAnswerError("the agent was stopped meanwhile")


def ask_name(pid: int, started_at: float) -> str:
    """As in `oomwatch_probe.asked`: a process by its own number, which those of other containers may have too."""
    return f"ask-{pid}-{int(started_at * 1000)}"


def _answer(report: Report | None, act: str, key: str) -> Answer | None:
    answers = report.acts if report is not None else ()
    return next((answer for answer in answers if (answer.act, answer.id) == (act, key)), None)


def _write_whole(path: Path, content: bytes) -> None:
    """The probe must never see half of it. Readable for every user's processes: it holds no secret."""
    descriptor, part = tempfile.mkstemp(prefix=".asking-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o644)
        Path(part).replace(path)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise
