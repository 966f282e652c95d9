"""One act that is to be done, and what came of it: what every file of an act takes and gives."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from oomwatch import wire
from oomwatch_agent.acts.cabinet import Cabinet
from oomwatch_agent.acts.permit import Permit
from oomwatch_agent.probe.asking import Asking


class Task(Struct, frozen=True, kw_only=True):
    """What is known to whoever does it."""

    request: wire.ActRequest
    permit: Permit
    cabinet: Cabinet
    folder: Path  # for the files of this alert
    pids: tuple[int, ...]  # the processes that are meant, largest first
    asking: Asking
    stopping: threading.Event  # the agent goes down: come to an end


class Done(Struct, frozen=True):
    """`detail` is a sentence for people; `path` a file, or the folder of several."""

    ok: bool
    detail: str
    path: Path | None = None


Deed: TypeAlias = Callable[[Task], Done]
"""Does one act. May take as long as it must, and may raise OSError."""


def together(parts: list[Done], folder: Path) -> Done:
    """What was done in several processes, as one."""
    paths = [part.path for part in parts if part.path is not None]
    path = paths[0] if len(paths) == 1 else folder if paths else None
    return Done(any(part.ok for part in parts), "; ".join(part.detail for part in parts), path)
