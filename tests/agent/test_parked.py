"""Threads are used again; one that is stuck is lost and no more."""

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
