"""GPUs as NVIDIA's management library (NVML) tells them.

Any call may hang for ever once something died in the driver, so every device is asked under a guard, and one that hangs
reports `no_data` while the others go on. A lost GPU is asked again every time, so that it recovers as soon as the
driver answers for it.
"""

import functools
import logging
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from oomwatch import wire
from oomwatch_agent.cards.losses import Losses
from oomwatch_agent.cards.nvml_gpu import Call, Gpu, LostError, NoAnswerError, Xids
from oomwatch_agent.cards.nvml_library import Library, NvmlError, Untyped
from oomwatch_agent.hang_guard import HangGuard
from oomwatch_agent.source import Reading, Sight, SourceMissingError
from oomwatch_agent.who.processes import Processes

logger = logging.getLogger(__name__)

# Codes of nvml.h.
_DEVICE_IS_LOST = frozenset({15, 16, 28})  # GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND
_LIBRARY_IS_DEAD = frozenset(
    {1, 9, 12, 18}
)  # UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, LIB_RM_VERSION_MISMATCH
# NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND, VGPU_ECC_NOT_SUPPORTED, ARGUMENT_VERSION_MISMATCH, DEPRECATED
_WILL_NOT_CHANGE = frozenset({3, 4, 13, 22, 25, 26})
_REMEDIES = {
    4: "no permission to use the NVIDIA driver: give the agent access to /dev/nvidiactl and /dev/nvidia*",
    9: "the NVIDIA driver is not loaded: load it (modprobe nvidia), or give the container its GPUs (--gpus all)",
    12: "no NVIDIA driver: libnvidia-ml.so.1 not found; install the driver, or start the container with GPU access "
    "(--gpus all, with the driver capability `utility`)",
    18: "NVIDIA's library and kernel module are of different versions: reboot, or reload the nvidia module",
}
_INIT_LIMIT_SECONDS = 20.0  # without persistence mode the driver wakes each card first, which takes seconds
_EVENTS = -1  # the key of the guard for what concerns no single device


def _call(library: Library, function: str, *arguments: object) -> Untyped:
    """Call the library. Raises NoAnswerError, LostError or, where the whole library is gone, SourceMissingError."""
    try:
        return library.call(function, *arguments)
    except NvmlError as error:
        if error.code in _DEVICE_IS_LOST:
            raise LostError(str(error)) from error
        if error.code in _LIBRARY_IS_DEAD:
            raise SourceMissingError(_remedy(error)) from error
        raise NoAnswerError(str(error), for_ever=error.code in _WILL_NOT_CHANGE) from error


def _remedy(error: NvmlError) -> str:
    return _REMEDIES.get(error.code, f"NVML failed: {error} (code {error.code}); see `nvidia-smi` and `dmesg`")


class NvmlSource:
    """Every GPU of this machine. `limit_seconds` is how long a read may take, whatever hangs."""

    name = "nvml"
    looks_an_interval = 4  # the memory of a card that stood still may be filled within a second

    def __init__(
        self,
        *,
        limit_seconds: float = 2.0,
        init_limit_seconds: float = _INIT_LIMIT_SECONDS,
        root: Path = Path("/"),
    ) -> None:
        self._guard: HangGuard[int, Untyped] = HangGuard(limit_seconds)
        self._init_guard: HangGuard[str, _Driver] = HangGuard(init_limit_seconds)
        self._processes = Processes(root)
        self._losses = Losses(self.name)
        self._gpus: list[Gpu] = []
        self._drivers: list[_Driver] = []  # initialised and not yet shut down: one, but for one that hung meanwhile
        self._driver: _Driver | None = None  # the last one
        self._facts: wire.NodeFacts | None = None
        self._opened = False
        self._gate = threading.Lock()  # of the next one, and of closing beside a look
        self._looks = 0  # that go on
        self._silent: frozenset[int] = frozenset()  # cards that did not answer the last read

    def open(self) -> wire.NodeFacts:
        """Raises SourceMissingError with the remedy where there is no usable driver."""
        opened = self._init_guard.ask(["init"], lambda _: self._initialise())
        if "init" not in opened:
            raise SourceMissingError(
                "the NVIDIA driver does not answer (nvmlInit hangs): look for Xid or NVRM lines in `dmesg`; "
                "a reboot is often the only way out"
            )
        driver = self._driver = opened["init"]
        self._gpus = []
        self._opened = True
        self._recount(driver)
        self._guard.ask([gpu.index for gpu in self._gpus], lambda index: self._gpus[index].look())
        self._guard.ask([_EVENTS], lambda _: driver.xids.open(self._gpus))
        self._losses.know(unit.label for gpu in self._gpus for unit in gpu.units)
        self._facts = self._current_facts()
        return self._facts

    def read(self, *, slow: bool) -> Reading:
        """Raises SourceMissingError where the driver as a whole went away: it must then be opened again."""
        if slow and self._driver is not None:
            self._recount(self._driver)
        answers = self._guard.ask([*range(len(self._gpus)), _EVENTS], functools.partial(self._ask, slow=slow))
        self._silent = frozenset(gpu.index for gpu in self._gpus if gpu.index not in answers)
        samples = tuple(sample for gpu in self._gpus for sample in answers.get(gpu.index, _unanswered(gpu)))
        facts = self._current_facts()
        changed, self._facts = facts != self._facts, facts
        return Reading(
            gpus=self._processes.named(samples) if slow else samples,
            identities=self._processes.identities if slow else (),
            found=self._losses.news(
                samples, self._labelled(answers.get(_EVENTS, [])), _bus_ids(facts), time.monotonic()
            ),
            facts=facts if changed else None,
        )

    def look(self) -> list[Sight]:
        """Device memory alone, unguarded: this thread may hang. Cards that did not answer the last read are left."""
        with self._gate:
            if not self._opened:
                return []
            self._looks += 1
        try:
            return [sight for gpu in self._gpus if gpu.index not in self._silent for sight in gpu.sights()]
        finally:
            with self._gate:
                self._looks -= 1

    def close(self) -> None:
        """The library is left alone while a thread is stuck in it: shutting it down under one is a crash."""
        with self._gate:
            if not self._opened or self._looks or self._guard.hung() or self._init_guard.hung():
                return
            self._opened, self._gpus = False, []  # whose handles are the library's
        self._guard.ask([_EVENTS], lambda _: self._shut_down())

    def _initialise(self) -> "_Driver":
        """Raises SourceMissingError. It may end long after nobody waits for it any more."""
        driver = _initialised()
        self._drivers.append(driver)
        return driver

    def _shut_down(self) -> None:
        while self._drivers:
            driver = self._drivers.pop()
            driver.xids.close()
            driver.library.shut_down()

    def _ask(self, key: int, *, slow: bool) -> Untyped:
        if key == _EVENTS:
            return self._driver.xids.read() if self._driver is not None else []
        return self._gpus[key].read(slow=slow)

    def _recount(self, driver: "_Driver") -> None:
        """Follow the driver's count of GPUs: the next read looks at new ones; one that vanished stays, as lost."""
        try:
            count = self._guard.ask([_EVENTS], lambda _: driver.call("nvmlDeviceGetCount_v2")).get(_EVENTS)
        except (NoAnswerError, LostError) as error:
            logger.warning("NVML does not tell how many GPUs there are: %s", error)
            return
        known = len(self._gpus)
        self._gpus += [Gpu(driver.call, index, driver.version) for index in range(known, count or known)]

    def _current_facts(self) -> wire.NodeFacts:
        troubles = [f"GPU {gpu.index}: {gpu.trouble}" for gpu in self._gpus if gpu.trouble and not gpu.units]
        detail = "; ".join(troubles)[: wire.TEXT_CHARS_MAX] or None
        return wire.NodeFacts(
            gpus=tuple(unit.facts for gpu in self._gpus for unit in gpu.units if unit.facts is not None),
            sources=(wire.SourceFacts(name=self.name, state="ok", detail=detail),),
        )

    def _labelled(self, xids: Iterable[tuple[int | None, int]]) -> list[tuple[str, int]]:
        labels = {gpu.address: [unit.label for unit in gpu.units] for gpu in self._gpus}
        return [(label, xid) for address, xid in xids for label in labels.get(address, ())]


class _Driver(NamedTuple):
    """A library that was initialised. `call` raises as `_call` does."""

    library: Library
    call: Call
    version: str | None
    xids: Xids


def _initialised() -> _Driver:
    """Raises SourceMissingError."""
    library: Library | None = None
    try:
        library = Library()
        library.call("nvmlInitWithFlags", 0)
    except NvmlError as error:
        if library is not None:  # the next try may find one that fits the kernel's module
            library.let_go()
        raise SourceMissingError(_remedy(error)) from error
    call = functools.partial(_call, library)
    try:
        version: str | None = call("nvmlSystemGetDriverVersion")
    except (NoAnswerError, LostError):
        version = None
    return _Driver(library, call, version, Xids(call))


def _unanswered(gpu: Gpu) -> list[wire.GpuSample]:
    return [wire.GpuSample(gpu=unit.label, status="no_data") for unit in gpu.units]


def _bus_ids(facts: wire.NodeFacts) -> dict[str, str | None]:
    return {gpu.gpu: gpu.pci_bus_id for gpu in facts.gpus}
