"""Housekeeping that is ended from outside, again and again: run by test_store_killed_merging.py.

    python -m tests.server.killed_merging URL NOW

Each line that is read has a copy of this process merge, and says when that one is to be ended, as by `kill -9`:

    statement N   one helping, before its statement of that number
    moment S      all there is, when it has taken so many seconds, wherever that may be

The line that is written says what became of it: "killed", "helped" (a whole helping) or "done" (nothing is left).
"""

import os
import signal
import sys
from itertools import count

from sqlalchemy import event

from oomwatch.store.store import Store

HELPED, DONE = 0, 3  # exit statuses


def merge(url: str, now: float, how: str, number: str) -> int:
    """In the process that is ended. Gives its exit status, if it comes to that."""
    store = Store.open(url)
    if how == "statement":
        numbers = count(1)

        def end(*_: object) -> None:
            if next(numbers) == int(number):
                os.kill(os.getpid(), signal.SIGKILL)

        event.listen(store._database._engine, "before_cursor_execute", end)
        event.listen(store._database._engine, "commit", end)
        return HELPED if store.compact(now, for_seconds=0.0) else DONE
    signal.setitimer(signal.ITIMER_REAL, float(number))  # nobody handles its signal: the kernel ends the process
    while store.compact(now, for_seconds=0.0):
        pass
    return DONE


def main() -> None:
    """See the module."""
    url, now = sys.argv[1], float(sys.argv[2])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            status = 1  # a traceback went before
            try:
                status = merge(url, now, *line.split())
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        told = {HELPED: "helped", DONE: "done"}
        print("killed" if os.WIFSIGNALED(status) else told[os.waitstatus_to_exitcode(status)], flush=True)


if __name__ == "__main__":
    main()
