"""torch's own record of who took which memory: switched on for one step, written down, and switched off again.

The files are what pytorch.org/memory_viz reads. The first is written at once, for the process may die within the step:
it tells what is held, and not yet by whom. Where the program records by itself, its recording is its own: it is written
down as it is, and neither begun nor ended here.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from types import ModuleType
from typing import Any

from oomwatch_probe.work import NEW_FILE, Work

AT_ONCE = "memory-at-once.pickle"
WHOLE = "memory.pickle"
# One stack at each allocation, Python's frames alone: those of C++ would have to be looked up, which takes minutes.
RECORD = {"context": "alloc", "stacks": "python"}
_PROTOCOL = 4  # the latest that every Python of a trainer can read


class History(Work):
    """One recording, or the program's own as it is."""

    def __init__(self, act: str, ask: dict[str, Any]) -> None:
        super().__init__(act, ask)
        self._memory: Any = None  # torch.cuda.memory, while we record
        self._began_at = 0.0

    def begin(self, cuda: ModuleType) -> None:
        memory: Any = cuda.memory
        if _program_records():
            self._write(WHOLE, memory._snapshot())
            self.done("the program records by itself: its own history, as it was")
            return
        self._write(AT_ONCE, memory._snapshot())
        memory._record_memory_history("all", max_entries=int(self.ask["max_entries"]), **RECORD)
        self._memory, self._began_at = memory, time.monotonic()

    def go_on(self) -> None:
        """The step is over: write down what was recorded, which ends with the recording."""
        seconds = time.monotonic() - self._began_at
        if seconds < float(self.ask["seconds"]):
            return
        try:
            snapshot = self._memory._snapshot()
        finally:
            self.drop()
        self._write(WHOLE, snapshot)
        self.done(f"{seconds:.0f} s of history")

    def drop(self) -> None:
        memory, self._memory = self._memory, None
        if memory is not None:
            memory._record_memory_history(None)

    def _write(self, name: str, snapshot: object) -> None:
        """Under its name once it is whole: the process may die meanwhile."""
        part = self.path(name) + ".part"
        try:
            with open(os.open(part, NEW_FILE, 0o600), "wb", buffering=0) as file:
                pickle.dump(snapshot, _Bounded(file, int(self.ask["max_bytes"])), _PROTOCOL)
            os.rename(part, self.path(name))
        except BaseException:
            _remove(part)
            raise
        self.answer["files"].append(name)


class _Bounded:
    """A file that takes so many bytes. At each write the program's other threads may go on."""

    def __init__(self, file: Any, max_bytes: int) -> None:
        self._file = file
        self._left = max_bytes

    def write(self, content: bytes) -> int:
        view = memoryview(content)
        written = view.nbytes
        self._left -= written
        if self._left < 0:
            raise OSError("the snapshot is larger than may be written")
        while view.nbytes:
            view = view[self._file.write(view) :]
        return written


def _program_records() -> bool:
    """Raises AttributeError where torch is too old to tell, and then nothing is begun."""
    core: Any = sys.modules["torch._C"]
    return bool(core._cuda_isHistoryEnabled())


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
