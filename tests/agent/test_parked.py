"""Threads are used again; one that is stuck is lost and no more."""

import subprocess
import sys
import threading

from oomwatch_agent import parked

DEADLINE_SECONDS = 10.0


def _run(name: str) -> threading.Thread:
    """The thread that ran a job of that name."""
    told: list[threading.Thread] = []
    done = threading.Event()

    def job() -> None:
        told.append(threading.current_thread())
        done.set()

    parked.start(job, name)
    assert done.wait(DEADLINE_SECONDS)
    return told[0]


def test_a_job_runs_in_another_thread_that_bears_its_name() -> None:
    entered, leave = threading.Event(), threading.Event()
    names: list[str] = []

    def job() -> None:
        names.append(threading.current_thread().name)
        entered.set()
        leave.wait(DEADLINE_SECONDS)

    parked.start(job, "a job")
    assert entered.wait(DEADLINE_SECONDS)
    leave.set()
    assert names == ["a job"]


def test_one_thread_does_job_after_job() -> None:
    assert len({_run(str(number)).ident for number in range(20)}) <= parked.KEPT


def test_a_stuck_job_does_not_keep_the_next_one_waiting() -> None:
    leave = threading.Event()

    def stuck() -> None:
        leave.wait(DEADLINE_SECONDS)

    for _ in range(2 * parked.KEPT):
        parked.start(stuck, "stuck")
    assert _run("next").daemon
    leave.set()


_LOOK_UP = """
import asyncio, sys
from oomwatch_agent import parked

async def story() -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(parked.Executor())
    assert await loop.getaddrinfo("localhost", 80)

asyncio.run(story())
assert "encodings.idna" not in sys.modules
"""


def test_a_plain_name_is_looked_up_without_the_tables_of_international_ones() -> None:
    """Half a MiB. In a program of its own: this one has them loaded."""
    subprocess.run([sys.executable, "-c", _LOOK_UP], check=True, timeout=60)
