"""Trying rules for a server: in a process of its own and at a low priority, so that neither the event loop nor what
arrives waits for it; one at a time, and not for longer than it is wanted."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import Struct

from oomwatch.rulefile import RuleFileError, read_rules
from oomwatch.store.address import is_in_memory
from oomwatch.tryout.result import Tryout
from oomwatch.web.answers import RefusedError

NICENESS = 10
LOOK_SECONDS = 0.2  # how often we look whether the client is still there
GRACE_SECONDS = 20.0  # beyond the budget: to start, and to write the answer
ERROR_CHARS = 2000

Talk: TypeAlias = "asyncio.Future[tuple[bytes, bytes]]"  # what the process has written, once it has ended


class Question(Struct, frozen=True, kw_only=True):
    """What is to be tried, as the flags of `oomwatch rules try` say it."""

    hours: float = 24.0
    node: str | None = None
    run: str | None = None
    budget_seconds: float = 60.0
    judge_all: bool = False
    alone: bool = False

    def flags(self, against: Path) -> list[str]:
        given = [f"--hours={self.hours!r}", f"--budget={self.budget_seconds!r}s"]
        given += [f"--node={self.node}"] if self.node is not None else []
        given += [f"--run={self.run}"] if self.run is not None else []
        given += ["--all"] if self.judge_all else []
        return [*given, "--alone" if self.alone else f"--against={against}"]


class Tryouts:
    """Use from the event loop."""

    def __init__(self, database: str, rules: Path) -> None:
        self._database = database
        self._rules = rules
        self.is_busy = False

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Whoever has it may call `attempt`. Raises RefusedError while another has it, and where nothing can be tried.

        To read a large text takes a while too, and so is part of it.
        """
        if is_in_memory(self._database):
            raise RefusedError(409, "the database is in memory, where another process cannot read it")
        if self.is_busy:
            raise RefusedError(409, "another change is being tried at this moment; ask again when that is done")
        self.is_busy = True
        try:
            yield
        finally:
            self.is_busy = False

    async def attempt(self, text: str, question: Question, is_gone: Callable[[], Awaitable[bool]]) -> Tryout:
        """Try this text of a rule file. Raises RefusedError; ClientGoneError where nobody waits for the answer."""
        note = await asyncio.to_thread(self._cannot_compare)
        question = msgspec.structs.replace(question, alone=question.alone or note is not None)
        found = await self._run(text, question, is_gone)
        return msgspec.structs.replace(found, note=note)

    def _cannot_compare(self) -> str | None:
        try:
            read_rules(self._rules)
        except RuleFileError:
            return "the file on disk has mistakes, so that there was nothing to compare with"
        return None

    async def _run(self, text: str, question: Question, is_gone: Callable[[], Awaitable[bool]]) -> Tryout:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "oomwatch", "rules", "try", "-", "--json", *question.flags(self._rules)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environ(),
        )
        talk = asyncio.ensure_future(process.communicate(text.encode()))
        try:
            with contextlib.suppress(OSError):  # it may have ended already
                os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            await _wait(talk, question.budget_seconds + GRACE_SECONDS, is_gone)
        finally:
            await _end(process, talk)
        out, err = talk.result()
        return _answer(process.returncode, out, err)

    def _environ(self) -> dict[str, str]:
        """The database's address may hold a password, and is no business of who lists processes."""
        environ = {name: value for name, value in os.environ.items() if name != "OOMWATCH_SERVER"}
        return environ | {"OOMWATCH_DB": self._database}


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


async def _wait(
    talk: "asyncio.Future[tuple[bytes, bytes]]", seconds: float, is_gone: Callable[[], Awaitable[bool]]
) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while not talk.done():
        await asyncio.wait({talk}, timeout=LOOK_SECONDS)
        if talk.done():
            return
        if await is_gone():
            raise ClientGoneError
        if loop.time() >= until:
            raise RefusedError(503, "trying the rules took longer than its budget, and was given up")


async def _end(process: asyncio.subprocess.Process, talk: Talk) -> None:
    """Leave no process behind."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await asyncio.wait({talk})  # it ends with the process


def _answer(status: int | None, out: bytes, err: bytes) -> Tryout:
    if status != 0:
        why = err.decode(errors="replace").strip()[-ERROR_CHARS:].removeprefix("oomwatch: ")
        raise RefusedError(400 if status == 1 else 503, why or f"trying the rules ended with status {status}")
    return msgspec.json.decode(out, type=Tryout)
