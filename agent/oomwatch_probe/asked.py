"""What the agent asks of this process before it dies: to write down where its memory went, or where its threads are.

Nothing listens in here, and nothing is kept open. An agent that wants something puts a file beside its socket, named
after this process, and the probe looks for it once a second. Who could put it there is who could put the socket there:
root, or this process' own user. The file's going away ends what it asked for.
"""

from __future__ import annotations

import json
import os
import stat
from types import ModuleType
from typing import Any

from oomwatch_probe.work import Work

ACTS = ("memory_snapshot", "stacks")
MAX_ASK_BYTES = 4096
_ROOT = 0


class Asked:
    """Looks for what is asked, does it, and keeps the answer for as long as the asking stands."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}  # by act

    def look(self, name: str, paths: list[str], cuda: ModuleType) -> list[dict[str, Any]]:
        """Once a sample: go on with what is asked. `name`: of this process, `paths`: the agents' sockets."""
        asks = _asks(name, paths)
        if asks or self._works:
            for act in ACTS:
                ask = asks.get(act)
                self._look_for(act, ask if isinstance(ask, dict) else None, cuda)
        return [work.answer for work in self._works.values()]

    def _look_for(self, act: str, ask: dict[str, Any] | None, cuda: ModuleType) -> None:
        work = self._works.get(act)
        if work is not None and (ask is None or ask.get("id") != work.ask.get("id")):
            work.safely(self._works.pop(act).drop)
            work = None
        if ask is not None and work is None:
            begun = self._works[act] = _work(act, ask)
            begun.safely(lambda: begun.begin(cuda))
        elif work is not None and work.answer["state"] == "working":
            work.safely(work.go_on)


def _work(act: str, ask: dict[str, Any]) -> Work:
    # Imported when they are wanted, which is next to never.
    if act == "stacks":
        from oomwatch_probe.stacks import Stacks  # noqa: PLC0415

        return Stacks(act, ask)
    from oomwatch_probe.history import History  # noqa: PLC0415

    return History(act, ask)


def ask_name(pid: int, started_at: float) -> str:
    """What files for a process are called, whatever numbers other containers give theirs. The agent has the same."""
    return f"ask-{pid}-{int(started_at * 1000)}"


def _asks(name: str, paths: list[str]) -> dict[str, Any]:
    """By act, of the first agent that asks for anything."""
    for path in paths:
        asks = _read(path[: path.rfind("/") + 1] + name)
        if asks:
            return asks
    return {}


def _read(path: str) -> dict[str, Any]:
    """The file's content, where it is one that an agent we trust has written; else nothing."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_mode & 0o022 or found.st_size > MAX_ASK_BYTES:
            return {}
        if found.st_uid not in (_ROOT, os.geteuid()):
            return {}
        asks = json.loads(os.read(file, MAX_ASK_BYTES))
        return asks if isinstance(asks, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}
    finally:
        os.close(file)
