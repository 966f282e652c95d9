"""stacks: where every thread of the processes is. By py-spy where it is installed, else by the probe within."""

import shutil
import sys
from pathlib import Path

from oomwatch.oserror import with_place, with_remedy
from oomwatch_agent.acts.cabinet import folder_for_process
from oomwatch_agent.acts.command import run
from oomwatch_agent.acts.task import Done, Task, together
from oomwatch_agent.probe.asking import NoAnswerError

PY_SPY_SECONDS = 15.0
PROBE_SECONDS = 20.0


def stacks(task: Task) -> Done:
    """Of one process after the other: py-spy halts each for some milliseconds."""
    if not task.pids:
        return Done(ok=False, detail="no process is known there")
    return together([_of_process(pid, task) for pid in task.pids], task.folder)


def _of_process(pid: int, task: Task) -> Done:
    by_py_spy = _by_py_spy(pid, task)
    if by_py_spy.ok:
        return by_py_spy
    by_probe = _by_probe(pid, task)
    return by_probe if by_probe.ok else Done(ok=False, detail=f"{by_py_spy.detail}; {by_probe.detail}")


def _by_py_spy(pid: int, task: Task) -> Done:
    program = _py_spy()
    if program is None:
        return Done(ok=False, detail=f"process {pid}: py-spy is not installed beside the agent")
    output = task.folder / f"stacks-{pid}.txt"
    command = [program, "dump", "--pid", str(pid)]
    try:
        ended = run(command, output, limit_seconds=PY_SPY_SECONDS, stopping=task.stopping)
    except OSError as error:
        return Done(ok=False, detail=f"process {pid}: py-spy cannot be started: {with_remedy(error)}")
    if ended.status == 0:
        return Done(ok=True, detail=f"process {pid}: by py-spy", path=output)
    why = f"not done after {PY_SPY_SECONDS:g} s" if ended.status is None else _last_line(output)
    return Done(ok=False, detail=f"process {pid}: py-spy: {why}")


def _by_probe(pid: int, task: Task) -> Done:
    if not task.asking.knows(pid):
        return Done(ok=False, detail="no probe is in it")
    try:
        folder = folder_for_process(task.folder, "stacks", pid)
        answer = task.asking.ask(pid, "stacks", {"id": task.request.id, "folder": str(folder)}, PROBE_SECONDS)
    except (NoAnswerError, OSError) as error:
        return Done(ok=False, detail=f"probe: {with_place(error)}")
    if answer.state != "done":
        return Done(ok=False, detail=f"probe: {answer.detail}")
    return Done(ok=True, detail=f"process {pid}: by the probe", path=folder / answer.files[0])


def _py_spy() -> str | None:
    """On the agent's PATH, or beside its Python."""
    return shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))


def _last_line(output: Path) -> str:
    lines = output.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "it failed and says nothing")
