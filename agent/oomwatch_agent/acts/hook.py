"""hook: the user's own executable, with the alert as JSON on its standard input, and no argument at all."""

import os

from oomwatch import wire
from oomwatch.oserror import with_remedy
from oomwatch_agent.acts.command import OUTPUT_BYTES_MAX, run
from oomwatch_agent.acts.task import Done, Task

ALERT_FILE, OUTPUT_FILE = "alert.json", "hook.txt"


def hook(task: Task) -> Done:
    """It runs in the folder of the alert's files. What it prints is kept there."""
    program = task.permit.hook
    if program is None:
        return Done(ok=False, detail="this agent was given no --hook")
    given, output = task.folder / ALERT_FILE, task.folder / OUTPUT_FILE
    given.touch(0o600)
    given.write_bytes(wire.encode(task.request.alert) + b"\n")
    try:
        ended = run(
            [str(program)],
            output,
            limit_seconds=task.permit.hook_seconds,
            stopping=task.stopping,
            stdin=given,
            environ=_environ(),
        )
    except OSError as error:
        return Done(ok=False, detail=f"{program} cannot be started: {with_remedy(error)}")
    cut = f", output cut after {OUTPUT_BYTES_MAX // 2**20} MiB" if ended.truncated else ""
    return Done(ok=ended.status == 0, detail=_told(ended.status, ended.seconds, task) + cut, path=output)


def _told(status: int | None, seconds: float, task: Task) -> str:
    if status is not None:
        return f"ended with status {status} after {seconds:.1f} s"
    if task.stopping.is_set():
        return "killed, since the agent was stopped"
    return f"killed after {task.permit.hook_seconds:g} s, with all that it had started"


def _environ() -> dict[str, str]:
    """The agent's own, without its settings: a token is among them."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OOMWATCH_")}
