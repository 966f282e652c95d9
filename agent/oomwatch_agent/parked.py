"""Threads that wait for something to do, so that handing a job to another thread does not begin with making one.

Making a thread costs several times what waking one does, and the agent hands something over at every reading. A job may
never end (a call that hangs within a driver): its thread is then lost, and the next job gets another. All are daemons,
so that a stuck one does not keep the program from ending.
"""

import concurrent.futures
import socket
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

KEPT = 4  # more at once is trouble, which is seldom

_IDLE_NAME = "oomwatch idle"


class _Parked:
    """A thread and what it is to do next."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._gate.acquire()
        self._job: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._work, name=_IDLE_NAME, daemon=True)
        self._thread.start()

    def give(self, job: Callable[[], None], name: str) -> None:
        self._job, self._thread.name = job, name
        self._gate.release()

    def _work(self) -> None:
        while True:
            self._gate.acquire()  # opened once for each job
            job, self._job = self._job, None
            if job is not None:
                job()
            del job  # nothing of it is kept alive while this waits
            self._thread.name = _IDLE_NAME
            if len(_idle) >= KEPT:
                return
            _idle.append(self)


_idle: list[_Parked] = []  # append and pop are atomic


def start(job: Callable[[], None], name: str) -> None:
    """Run `job`, which must not raise, in another thread, called `name` for as long as it does."""
    try:
        parked = _idle.pop()
    except IndexError:
        parked = _Parked()
    parked.give(job, name)


def _plainly(function: object, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """A plain name is looked up as bytes: for a text Python loads half a MiB of tables of international names."""
    if function is socket.getaddrinfo and isinstance(arguments[0], str) and arguments[0].isascii():
        return arguments[0].encode(), *arguments[1:]
    return arguments


class Executor(concurrent.futures.ThreadPoolExecutor):
    """For asyncio, which looks names up in threads: one that hangs there does not keep the program from ending."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> concurrent.futures.Future[T]:
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        call: Callable[..., T] = fn
        given = _plainly(fn, args)

        def job() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*given, **kwargs))
            except BaseException as error:  # whoever waits for it is told
                future.set_exception(error)

        start(job, "oomwatch executor")
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nobody is waited for."""
