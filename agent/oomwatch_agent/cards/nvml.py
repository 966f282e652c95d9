"""GPUs as NVIDIA's management library (NVML) tells them.

Any call may hang for ever once something died in the driver, so every device is asked under a guard, and one that hangs
reports `no_data` while the others go on. A lost GPU is asked again every time, so that it recovers as soon as the
driver answers for it.
"""

import functools
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from oomwatch import wire
from oomwatch_agent.cards.losses import Losses
from oomwatch_agent.cards.nvml_calls import call, event_gauge, gauge, initialise, sweep, unload
from oomwatch_agent.cards.nvml_gpu import Gaze, Gpu, LostError, NoAnswerError, Untyped, Xids
from oomwatch_agent.hang_guard import HangGuard, Round
from oomwatch_agent.source import CARD_LOOKS_AN_INTERVAL, Reading, Sight, SourceMissingError
from oomwatch_agent.who.processes import Processes

logger = logging.getLogger(__name__)

_INIT_LIMIT_SECONDS = 20.0  # without persistence mode the driver wakes each card first, which takes seconds
_EVENTS = -1  # the key of the guard for what concerns no single device


class NvmlSource:
    """Every GPU of this machine. `limit_seconds` is how long a read may take, whatever hangs."""

    name = "nvml"
    looks_an_interval = CARD_LOOKS_AN_INTERVAL

    def __init__(
        self,
        *,
        limit_seconds: float = 2.0,
        init_limit_seconds: float = _INIT_LIMIT_SECONDS,
        root: Path = Path("/"),
    ) -> None:
        self._guard: HangGuard[int, Untyped] = HangGuard(limit_seconds)
        self._init_guard: HangGuard[str, str | None] = HangGuard(init_limit_seconds)
        self._processes = Processes(root)
        self._losses = Losses(self.name)
        self._gpus: list[Gpu] = []
        self._xids = Xids(call, event_gauge)
        self._driver_version: str | None = None
        self._starts = 0  # of the library that are to be undone: more than one where one hung and was answered later
        self._facts: wire.NodeFacts | None = None
        self._bus_ids: dict[str, str | None] = {}
        self._looks_told = 0  # for facts, at all cards, when they were told last
        self._opened = False
        self._gate = threading.Lock()  # of the next one, and of closing beside a look
        self._looks = 0  # that go on
        self._silent: frozenset[int] = frozenset()  # cards that did not answer the last read
        self._gaze = Gaze()  # at all the others

    def open(self) -> wire.NodeFacts:
        """Raises SourceMissingError with the remedy where there is no usable driver."""
        try:
            opened = self._init_guard.ask(["init"], lambda _: self._initialise())
        except SourceMissingError:
            self._let_go()  # the next try may find a library that fits the kernel's module
            raise
        if "init" not in opened:
            raise SourceMissingError(
                "the NVIDIA driver does not answer (nvmlInit hangs): look for Xid or NVRM lines in `dmesg`; "
                "a reboot is often the only way out"
            )
        self._opened = True
        self._driver_version = opened["init"]
        self._gpus = []
        self._recount()
        self._guard.ask([gpu.index for gpu in self._gpus], lambda index: self._gpus[index].look())
        self._guard.ask([_EVENTS], lambda _: self._xids.open(self._gpus))
        self._silent = frozenset()
        self._gaze = Gaze(self._gpus, sweep)
        self._losses.know(unit.label for gpu in self._gpus for unit in gpu.units)
        return self._learn()

    def read(self, *, slow: bool) -> Reading:
        """Raises SourceMissingError where the driver as a whole went away: it must then be opened again."""
        if slow:
            self._recount()
        return self._reading(self._guard.ask(self._keys(), functools.partial(self._ask, slow=slow)), slow=slow)

    def begin(self) -> Round[int, Untyped]:
        """The same, unless slowly, in two steps."""
        return self._guard.begin(self._keys(), functools.partial(self._ask, slow=False))

    def end(self, begun: Round[int, Untyped]) -> Reading:
        """What came. Raises SourceMissingError."""
        return self._reading(self._guard.end(begun), slow=False)

    def _reading(self, answers: dict[int, Untyped], *, slow: bool) -> Reading:
        silent = frozenset([gpu.index for gpu in self._gpus if gpu.index not in answers])
        if slow or silent != self._silent:
            self._silent, self._gaze = silent, Gaze((gpu for gpu in self._gpus if gpu.index not in silent), sweep)
        read: list[wire.GpuSample] = []
        for gpu in self._gpus:
            read += answers[gpu.index] if gpu.index in answers else _unanswered(gpu)
        samples = self._processes.named(tuple(read)) if slow else tuple(read)
        xids, facts = answers.get(_EVENTS), self._news_of_facts()
        return Reading(
            gpus=samples,
            identities=self._processes.identities if slow else (),
            found=self._losses.news(samples, self._labelled(xids) if xids else (), self._bus_ids, time.monotonic()),
            facts=facts,
        )

    def look(self) -> Sequence[Sight]:
        """Device memory alone, unguarded: this thread may hang. Cards that did not answer the last read are left."""
        with self._gate:
            if not self._opened:
                return []
            self._looks += 1
        try:
            return self._gaze.look()
        finally:
            with self._gate:
                self._looks -= 1

    def close(self) -> None:
        """The library is left alone while a thread is stuck in it: shutting it down under one is a crash."""
        with self._gate:
            if not self._opened or self._is_in_use():
                return
            self._opened, self._gpus, self._gaze = False, [], Gaze()  # handles are the library's
        try:
            self._guard.ask([_EVENTS], lambda _: self._shut_down())
        except (NoAnswerError, LostError) as error:
            logger.info("closing NVML: %s", error)
            return  # it may still be at work, and is kept
        except SourceMissingError as error:  # nothing is left to shut down
            logger.info("closing NVML: %s", error)
        self._let_go()

    def _is_in_use(self) -> bool:
        return bool(self._looks or self._guard.hung() or self._init_guard.hung())

    def _initialise(self) -> str | None:
        """The driver's version, None where it is not told. Raises SourceMissingError."""
        version = initialise()
        self._starts += 1
        return version

    def _shut_down(self) -> None:
        self._xids.close()
        starts, self._starts = self._starts, 0
        for _ in range(starts):
            call("nvmlShutdown")

    def _let_go(self) -> None:
        with self._gate:
            if not self._is_in_use():
                # Closing left them while a look went on: the next would crash.
                self._opened, self._gpus, self._gaze = False, [], Gaze()
                unload()

    def _keys(self) -> list[int]:
        return [*range(len(self._gpus)), _EVENTS]

    def _ask(self, key: int, *, slow: bool) -> Untyped:
        return self._xids.read() if key == _EVENTS else self._gpus[key].read(slow=slow)

    def _recount(self) -> None:
        """Follow the driver's count of GPUs: the next read looks at new ones; one that vanished stays, as lost."""
        try:
            count = self._guard.ask([_EVENTS], lambda _: call("nvmlDeviceGetCount")).get(_EVENTS)
        except (NoAnswerError, LostError) as error:
            logger.warning("NVML does not tell how many GPUs there are: %s", error)
            return
        known = len(self._gpus)
        self._gpus += [Gpu(call, gauge, index, self._driver_version) for index in range(known, count or known)]

    def _news_of_facts(self) -> wire.NodeFacts | None:
        """The facts, where they have changed."""
        if self._looks_for_facts() == self._looks_told:  # as at most readings: nobody has looked for facts since
            return None
        before, facts = self._facts, self._learn()
        return facts if facts != before else None

    def _learn(self) -> wire.NodeFacts:
        self._looks_told = self._looks_for_facts()  # first: of a look that ends meanwhile the next reading hears
        self._facts = facts = self._current_facts()
        self._bus_ids = {gpu.gpu: gpu.pci_bus_id for gpu in facts.gpus}
        return facts

    def _looks_for_facts(self) -> int:
        return len(self._gpus) + sum([gpu.looks for gpu in self._gpus])

    def _current_facts(self) -> wire.NodeFacts:
        troubles = [f"GPU {gpu.index}: {gpu.trouble}" for gpu in self._gpus if gpu.trouble and not gpu.units]
        detail = "; ".join(troubles)[: wire.TEXT_CHARS_MAX] or None
        return wire.NodeFacts(
            gpus=tuple(unit.facts for gpu in self._gpus for unit in gpu.units if unit.facts is not None),
            sources=(wire.SourceFacts(name=self.name, state="ok", detail=detail),),
        )

    def _labelled(self, xids: Sequence[tuple[int | None, int]]) -> list[tuple[str, int]]:
        labels = {gpu.address: [unit.label for unit in gpu.units] for gpu in self._gpus}
        return [(label, xid) for address, xid in xids for label in labels.get(address, ())]


def _unanswered(gpu: Gpu) -> list[wire.GpuSample]:
    return [wire.GpuSample(gpu=unit.label, status="no_data") for unit in gpu.units]
