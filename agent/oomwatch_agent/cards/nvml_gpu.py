"""What NVML is asked about one GPU. The calls themselves are an argument: nvml_calls.py makes them.

Any function may answer "not supported" or "no permission" for any device: that field is None, and is not asked again.
"""

import contextlib
import ctypes
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch_agent.source import Sight, SourceMissingError

logger = logging.getLogger(__name__)

# What the binding gives, which has no types: structs with the fields of nvml.h, numbers, texts, handles.
Untyped: TypeAlias = Any

# Calls a function of the binding by name. Raises NoAnswerError, LostError, or what ends the source.
Call: TypeAlias = Callable[..., Untyped]

# Of a handle and a question, what asks for that number again and again, is cheaper than a call and raises as one does;
# None: there is nothing cheaper.
Gauge: TypeAlias = Callable[..., Callable[[], int] | None]

# Of several handles, what asks how many bytes each has in use, as a gauge asks one; None: there is nothing cheaper.
Sweep: TypeAlias = Callable[[Sequence[Untyped]], Callable[[], Sequence[int]] | None]

# Values of nvml.h.
MEMORY_V2 = 0x02000028
_GPU_SENSOR = 0
_UNCORRECTED, _SINCE_MANUFACTURE = 1, 1
_MEMORY_QUESTIONS = (("nvmlDeviceGetMemoryInfo", MEMORY_V2), ("nvmlDeviceGetMemoryInfo",))
_MIG_ENABLED = 1
_XID_EVENT = 8

_MAX_MIG_INSTANCES = 7  # what today's cards can be cut into; used where the driver may not tell
_MAX_EVENTS_A_READ = 100
_WHOLE_LOOK_EVERY = 6  # slow reads: once a minute. Little of it changes while the card is the same


class _Question(NamedTuple):
    """One whose answer is a number: the function and its arguments behind the handle; `field` where it is a struct."""

    words: tuple[Any, ...]
    field: str | None = None


_USED = tuple(_Question(words, "used") for words in _MEMORY_QUESTIONS)
_UTILIZATION = _Question(("nvmlDeviceGetUtilizationRates",), "gpu")
_CELSIUS = (
    _Question(("nvmlDeviceGetTemperatureV", _GPU_SENSOR)),
    _Question(("nvmlDeviceGetTemperature", _GPU_SENSOR)),
)
_MILLIWATTS = _Question(("nvmlDeviceGetPowerUsage",))
_ECC = _Question(("nvmlDeviceGetTotalEccErrors", _UNCORRECTED, _SINCE_MANUFACTURE))


class NoAnswerError(Exception):
    """The driver has no answer to this. `for_ever`: it will have none later either."""

    def __init__(self, text: str, *, for_ever: bool) -> None:
        super().__init__(text)
        self.for_ever = for_ever


class LostError(Exception):
    """The driver gave the device up."""


class _Device:
    """A device handle that remembers what the driver does not tell about it."""

    def __init__(self, call: Call, handle: Untyped = None) -> None:
        self._call = call
        self.handle = handle
        self.silent_on: set[tuple[object, ...]] = set()

    def ask(self, *question: object) -> Untyped:
        """The driver's answer to (function, further arguments), or None. Raises LostError."""
        if question in self.silent_on:
            return None
        function, *arguments = question
        try:
            return self._call(function, self.handle, *arguments)
        except NoAnswerError as reason:
            if reason.for_ever:
                self.silent_on.add(question)
            return None

    def ask_first_of(self, *questions: tuple[object, ...]) -> Untyped:
        """The answer to the first question that this driver knows: newer functions first."""
        for question in questions:
            answer = self.ask(*question)
            if answer is not None or question not in self.silent_on:
                return answer
        return None


class _Figure:
    """A number of a device that is asked for again and again. Used by one thread at a time."""

    __slots__ = ("_ways",)

    def __init__(self, call: Call, gauge: Gauge, handle: Untyped, *questions: _Question) -> None:
        self._ways = [
            gauge(handle, *question.words) or functools.partial(_number_by_call, call, handle, question)
            for question in questions
        ]

    @property
    def ask(self) -> Callable[[], int | None]:
        """What asks by the first question, and raises where there is no answer."""
        return self._ways[0] if self._ways else _nothing

    def read(self) -> int | None:
        """By the first question that this driver knows: newer functions first. None: no answer. Raises LostError."""
        if not self._ways:
            return None
        try:
            return self._ways[0]()
        except NoAnswerError as reason:
            if not reason.for_ever:
                return None
        del self._ways[0]
        return self.read()


def _nothing() -> None:
    """Of a figure that the driver has no answer to."""


def _number_by_call(call: Call, handle: Untyped, question: _Question) -> int:
    function, *arguments = question.words
    answer = call(function, handle, *arguments)
    return int(getattr(answer, question.field) if question.field else answer)


class _Figures:
    """What is read of a device each time; its memory twice, since a look may go on beside a reading."""

    def __init__(self, call: Call, gauge: Gauge, handle: Untyped) -> None:
        figure = functools.partial(_Figure, call, gauge, handle)
        self.seen_bytes = figure(*_USED)
        self._figures = (figure(*_USED), figure(_UTILIZATION), figure(_MILLIWATTS), figure(*_CELSIUS), figure(_ECC))
        self._asks: list[Callable[[], int | None]] | None = None  # of all of them; None: find out which there are

    def read(self) -> list[int | None]:
        """Bytes in use, utilization in percent, milliwatts, celsius, uncorrected ECC errors. Raises LostError."""
        if self._asks is not None:
            try:
                return [ask() for ask in self._asks]
            except NoAnswerError:
                self._asks = None
        found = [one.read() for one in self._figures]
        self._asks = [one.ask for one in self._figures]
        return found


class _Unit(_Device):
    """What is listed: a whole GPU, or an instance of a GPU cut up by MIG."""

    def __init__(self, call: Call, gauge: Gauge, label: str, *, mig: bool) -> None:
        super().__init__(call)
        self.label = label
        self.mig = mig
        self.facts: wire.GpuFacts | None = None
        self._usable_bytes = 0
        self._gauge = gauge
        self._figures: _Figures  # made by `look`

    def look(
        self, handle: Untyped, driver_version: str | None, pci_bus_id: Callable[[], str | None], *, whole: bool
    ) -> None:
        """Read the facts (again). They stay as they were while the driver does not tell them.

        Of a device that is known nothing but the power limit, unless it is to be a `whole` look.
        """
        is_new = _address(handle) != _address(self.handle)
        self.handle = handle
        uuid = self.ask("nvmlDeviceGetUUID")
        if uuid and self.facts is not None and self.facts.uuid != uuid:  # another device under the same label
            is_new, self.facts = True, None
            self.silent_on.clear()
        if is_new:
            self._figures = _Figures(self._call, self._gauge, handle)
        limit = self.ask_first_of(("nvmlDeviceGetEnforcedPowerLimit",), ("nvmlDeviceGetPowerManagementLimit",))
        if self.facts is not None and uuid and not is_new and not whole:
            if _watts(limit) != self.facts.power_limit_watts:
                self.facts = msgspec.structs.replace(self.facts, power_limit_watts=_watts(limit))
            return
        memory = self._memory()
        if not uuid or memory is None:
            return
        self.facts = wire.GpuFacts(
            gpu=self.label,
            uuid=uuid[: wire.NAME_CHARS_MAX],
            name=(self.ask("nvmlDeviceGetName") or "NVIDIA GPU")[: wire.NAME_CHARS_MAX],
            total_bytes=memory.total,
            reserved_bytes=getattr(memory, "reserved", 0),  # version 1 counts it as used
            mig=self.mig,
            pci_bus_id=pci_bus_id(),
            power_limit_watts=_watts(limit),
            driver_version=driver_version,
        )
        self._usable_bytes = self.facts.total_bytes - self.facts.reserved_bytes

    def sample(self, *, slow: bool) -> wire.GpuSample:
        try:
            used_bytes, percent, milliwatts, celsius, ecc = self._figures.read()
            processes = self._processes() if slow and used_bytes is not None else None
        except LostError:
            return wire.GpuSample(gpu=self.label, status="lost")
        if used_bytes is None:
            return wire.GpuSample(gpu=self.label, status="no_data")
        return wire.GpuSample(
            gpu=self.label,
            used_bytes=_plausible(used_bytes, wire.COUNT_MAX),
            utilization_ratio=None if percent is None else percent / 100,
            power_watts=_watts(milliwatts),
            temperature_celsius=_plausible(celsius, wire.CELSIUS_MAX),
            ecc_uncorrected_total=_plausible(ecc, wire.COUNT_MAX),
            processes=processes,
        )

    @property
    def seen_bytes(self) -> _Figure:
        """How many bytes are in use, for looks."""
        return self._figures.seen_bytes

    def sight(self, used_bytes: int) -> Sight:
        return Sight(self.label, used_bytes, self._usable_bytes)

    def _memory(self) -> Untyped:
        return self.ask_first_of(*_MEMORY_QUESTIONS)

    def _processes(self) -> tuple[wire.GpuProcess, ...] | None:
        """Process ids and bytes. One that computes and draws is in both lists with the same figure."""
        lists = [
            self.ask_first_of(
                (f"nvmlDeviceGet{kind}RunningProcesses_v3",), (f"nvmlDeviceGet{kind}RunningProcesses_v2",)
            )
            for kind in ("Compute", "Graphics")
        ]
        if all(listed is None for listed in lists):
            return None
        used = {process.pid: process.usedGpuMemory for listed in lists for process in listed or ()}
        return tuple(
            wire.GpuProcess(pid=pid, used_bytes=bytes_) for pid, bytes_ in sorted(used.items())[: wire.PROCESSES_MAX]
        )


class Gpu:
    """One physical GPU. What is listed of it is itself, or its MIG instances where it has any: they are what fills."""

    def __init__(self, call: Call, gauge: Gauge, index: int, driver_version: str | None) -> None:
        self.index = index
        self.looks = 0  # for facts, until now
        self.units: tuple[_Unit, ...] = ()
        self.trouble: str | None = "it does not answer"  # why nothing is listed of it, until it was looked at
        self._driver_version = driver_version
        self._call = call
        self._gauge = gauge
        self._whole = _Device(call)

    @property
    def address(self) -> int | None:
        """What an event names it by."""
        return _address(self._whole.handle)

    def read(self, *, slow: bool) -> list[wire.GpuSample]:
        """Ask the driver. A slow read also looks whether the GPU was cut up or exchanged."""
        if slow or not self.units:
            self.look()
        return [unit.sample(slow=slow) for unit in self.units]

    def look(self) -> None:
        try:
            self._whole.handle = self._call("nvmlDeviceGetHandleByIndex", self.index)
            self._look()
        except (LostError, NoAnswerError) as error:
            self.trouble = str(error)
        finally:
            self.looks += 1  # last: who sees it sees what came of the look

    def _look(self) -> None:
        self.trouble, whole = None, self.looks % _WHOLE_LOOK_EVERY == 0
        known = {unit.label: unit for unit in self.units}
        units = []
        for label, handle, mig in self._targets():
            unit = known.get(label) or _Unit(self._call, self._gauge, label, mig=mig)
            unit.look(handle, self._driver_version, self._bus_id, whole=whole)
            if unit.facts is not None:
                units.append(unit)
            else:
                self.trouble = "its name or its memory cannot be read"
        self.units = tuple(units)

    def _bus_id(self) -> str | None:
        pci = self._whole.ask("nvmlDeviceGetPciInfo_v3")
        return pci.busId if pci else None

    def _targets(self) -> list[tuple[str, Untyped, bool]]:
        migs = [(f"{self.index}:{number}", handle, True) for number, handle in self._migs()]
        return migs or [(str(self.index), self._whole.handle, False)]

    def _migs(self) -> Iterator[tuple[int, Untyped]]:
        """Numbers and handles of the instances. The parent may be forbidden while its instances are not, so that only a
        plain "MIG is off" ends the search."""
        mode = self._whole.ask("nvmlDeviceGetMigMode")
        if mode is not None and mode[0] != _MIG_ENABLED:
            return
        count = self._whole.ask("nvmlDeviceGetMaxMigDeviceCount")
        for number in range(_MAX_MIG_INSTANCES if count is None else count):
            handle = self._whole.ask("nvmlDeviceGetMigDeviceHandleByIndex", number)
            if handle is not None:
                yield number, handle


class Gaze:
    """What is looked at between two readings: the memory of some units, as they are now. `sweep` asks all at once."""

    def __init__(self, gpus: Iterable[Gpu] = (), sweep: Sweep | None = None) -> None:
        self._units = [unit for gpu in gpus for unit in gpu.units]
        self._sweep = sweep([unit.handle for unit in self._units]) if sweep is not None and self._units else None
        self._last: tuple[Sequence[int | None], Sequence[Sight]] = ((), ())

    def look(self) -> Sequence[Sight]:
        """How full each is; the same object as before where nothing has changed, as at most looks.

        Of a lost GPU the next reading tells.
        """
        used = self._used()
        before, sights = self._last
        if used is not before and used != before:
            found = zip(self._units, used, strict=True)
            sights = [unit.sight(now) for unit, now in found if now is not None and now <= wire.COUNT_MAX]
            self._last = used, sights
        return sights

    def _used(self) -> Sequence[int | None]:
        if self._sweep is not None:
            try:
                return self._sweep()
            except LostError:
                pass
            except NoAnswerError as reason:
                self._sweep = None if reason.for_ever else self._sweep
        return [_seen(unit.seen_bytes) for unit in self._units]


def _seen(figure: _Figure) -> int | None:
    try:
        return figure.read()
    except LostError:
        return None


class Xids:
    """The driver's notices of critical errors. A driver that has none gives none.

    `gauge`: of a set of events, what gives the next one or None, and raises as a call does.
    """

    def __init__(self, call: Call, gauge: Callable[[Untyped], Callable[[], Untyped]]) -> None:
        self._call = call
        self._gauge = gauge
        self._set: Untyped = None
        self._next_event: Callable[[], Untyped] = _no_event

    def open(self, gpus: Iterable[Gpu]) -> None:
        self._set, self._next_event = None, _no_event  # those of a library that is gone
        try:
            self._set = self._call("nvmlEventSetCreate")
            self._next_event = self._gauge(self._set)
        except (NoAnswerError, LostError) as reason:
            logger.info("no Xid events from NVML: %s", reason)
            return
        for gpu in gpus:
            self._register(gpu)

    def _register(self, gpu: Gpu) -> None:
        try:
            handle = self._call("nvmlDeviceGetHandleByIndex", gpu.index)
            self._call("nvmlDeviceRegisterEvents", handle, _XID_EVENT, self._set)
        except (NoAnswerError, LostError) as reason:
            logger.info("no Xid events of GPU %d: %s", gpu.index, reason)

    def read(self) -> list[tuple[int | None, int]]:
        """Address of the device and Xid, of every event since the last read. Does not wait."""
        found: list[tuple[int | None, int]] = []
        while len(found) < _MAX_EVENTS_A_READ:
            try:
                event = self._next_event()
            except (NoAnswerError, LostError):  # a lost GPU tells of itself
                break
            if event is None:
                break
            if event.eventType == _XID_EVENT:
                found.append((_address(event.device), event.eventData))
        return found

    def close(self) -> None:
        """A driver that is gone has let go of them itself."""
        freed, self._set, self._next_event = self._set, None, _no_event
        if freed is not None:
            with contextlib.suppress(NoAnswerError, LostError, SourceMissingError):
                self._call("nvmlEventSetFree", freed)


def _no_event() -> None:
    """Of a driver without events."""


def _address(handle: Untyped) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value if handle is not None else None


def _plausible(value: int | None, limit: float) -> int | None:
    """NVML writes 2**64 - 1 for "not available"."""
    return value if value is not None and value <= limit else None


def _watts(milliwatts: int | None) -> float | None:
    plausible = _plausible(milliwatts, 1000 * wire.WATTS_MAX)
    return None if plausible is None else plausible / 1000
