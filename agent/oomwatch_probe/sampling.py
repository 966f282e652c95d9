"""The probe's thread: once a second, if the program uses CUDA and an agent listens, read and send."""

from __future__ import annotations

import atexit
import os
import sys
from _thread import LockType

from oomwatch_probe import allocate_lock, start_new_thread
from oomwatch_probe.asked import Asked
from oomwatch_probe.identity import Identity
from oomwatch_probe.sender import listeners, message, send
from oomwatch_probe.torch_memory import TorchMemory, initialised_cuda

INTERVAL_SECONDS = 1.0


class Sampling:
    """One thread in one process. It is not one of `threading`'s, so that no program meets it in its own lists."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._errors = 0  # what goes wrong in here is counted, told to the agent, and troubles nobody else
        self._running_in = 0  # pid of the process that the thread runs in
        self._starting = allocate_lock()
        self._stop = allocate_lock()
        self._identity = Identity()
        self._torch = TorchMemory()
        self._asked = Asked()

    def start(self) -> None:
        """Start the thread unless it runs. Where another thread is just starting it, there is nothing to do."""
        if self._running_in == os.getpid() or not self._starting.acquire(False):
            return
        try:
            if self._running_in != os.getpid():
                self._stop = allocate_lock()
                self._stop.acquire()
                start_new_thread(self._run, (self._stop,))
                self._running_in = os.getpid()
        finally:
            self._starting.release()

    def start_in_child(self) -> None:
        """After a fork everything begins anew: no thread is inherited, a lock may be held by one that is not here any
        more, and the child is another process with another identity."""
        try:
            ran = self._running_in
            self._begin()
            if ran:
                self.start()
        except Exception:
            self._errors += 1

    def stop(self) -> None:
        """Wake the thread for the last time."""
        try:
            self._stop.release()
        except RuntimeError:  # it never ran, or was stopped before
            pass

    def sample(self) -> None:
        """Read and send once. Costs next to nothing before CUDA is initialised and while no agent listens."""
        cuda = initialised_cuda()
        paths = listeners() if cuda is not None else []
        if cuda is not None and paths:
            devices = self._torch.read(cuda)
            answers = self._asked.look(self._identity.ask_name, paths, cuda)
            send(message(self._identity.now(self._errors + self._torch.errors), devices, answers), paths)

    def _run(self, stop: LockType) -> None:
        try:
            while not stop.acquire(True, INTERVAL_SECONDS) and not sys.is_finalizing():
                try:
                    self.sample()
                except Exception:
                    self._errors += 1
        except BaseException:  # the interpreter is going down around us
            pass


_sampling = Sampling()
start = _sampling.start

os.register_at_fork(after_in_child=_sampling.start_in_child)
atexit.register(_sampling.stop)
