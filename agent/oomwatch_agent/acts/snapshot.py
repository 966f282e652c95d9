"""memory_snapshot: torch's memory history of one step, by the probe within each process on the GPU."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from oomwatch.oserror import with_place
from oomwatch_agent.acts.cabinet import folder_for_process
from oomwatch_agent.acts.task import Done, Task, together
from oomwatch_agent.probe.asking import NoAnswerError

LIMIT_SECONDS = 120.0  # of recording, where the steps are longer or nobody knows them
STEP_MARGIN = 1.1  # a step that takes a little longer than usual is still whole
WRITING_SECONDS = 60.0  # for the file, on a slow disk
MAX_ENTRIES = 100_000  # of history: what verl's own recording keeps
MIB = 2**20


def memory_snapshot(task: Task) -> Done:
    """In all of the processes at once: it is one step that is recorded."""
    pids = [pid for pid in task.pids if task.asking.knows(pid)]
    if not pids:
        return Done(ok=False, detail="no process there has the probe inside (docs/howto/probe.md)")
    with ThreadPoolExecutor(len(pids), thread_name_prefix="oomwatch snapshot") as pool:
        return together(list(pool.map(lambda pid: _of_process(pid, task), pids)), task.folder)


def _of_process(pid: int, task: Task) -> Done:
    try:
        folder = folder_for_process(task.folder, "memory_snapshot", pid)
    except OSError as error:
        return Done(ok=False, detail=f"process {pid}: {with_place(error)}")
    seconds = min(LIMIT_SECONDS, STEP_MARGIN * (task.request.step_seconds or LIMIT_SECONDS))
    what = {
        "id": task.request.id,
        "folder": str(folder),
        "seconds": seconds,
        "max_entries": MAX_ENTRIES,
        "max_bytes": task.cabinet.bytes_for_a_file(),
    }
    try:
        answer = task.asking.ask(pid, "memory_snapshot", what, seconds + WRITING_SECONDS)
    except NoAnswerError as error:
        return _what_there_is(pid, folder, str(error))
    if answer.state != "done":
        return _what_there_is(pid, folder, answer.detail)
    return Done(ok=True, detail=f"process {pid}: {answer.detail}{_size(folder)}", path=folder)


def _what_there_is(pid: int, folder: Path, why: str) -> Done:
    """The process may have died on the way: its memory as it was at the beginning may lie there."""
    there = any(folder.glob("*.pickle"))
    more = "; what it held before is written down" if there else ""
    return Done(ok=there, detail=f"process {pid}: {why}{more}", path=folder if there else None)


def _size(folder: Path) -> str:
    return f", {sum(path.stat().st_size for path in folder.glob('*.pickle')) / MIB:.1f} MiB"
