"""NVIDIA's management library, called as its public header nvml.h declares it: what of it is needed, and no more.

Not by nvidia-ml-py. That keeps the library loaded for the life of the process, so that after an upgrade of the driver
every call fails until the program is started again; here the library is let go with its last user, as NVIDIA's own
go-nvml does. And its functions, nearly all of which the agent never calls, would take two of its 34 MiB.

Every call brings memory of its own for the answer: one that hangs in the driver may still write to it hours later.
"""

import _ctypes
import ctypes
import logging
from collections.abc import Callable
from typing import Any, TypeAlias

logger = logging.getLogger(__name__)

# What comes back: records with the fields of nvml.h, numbers, texts, handles.
Untyped: TypeAlias = Any

SONAME = "libnvidia-ml.so.1"

# Codes of nvml.h.
_NOTHING_TO_SHUT_DOWN = (1, 9, 18)  # UNINITIALIZED, DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH
_INSUFFICIENT_SIZE = 7
_LIBRARY_NOT_FOUND = 12
_FUNCTION_NOT_FOUND = 13

_TEXT_BYTES = 96  # no text of a device is longer, by nvml.h
_FIRST_PROCESSES = 32  # room for so many at the first try
_NOT_TOLD = 2**64 - 1


class NvmlError(Exception):
    """The library answered with an error, or there is none. `code` is that of nvml.h."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Library:
    """The library, loaded and not yet initialised. Raises NvmlError where there is none."""

    def __init__(self) -> None:
        try:
            self._native = ctypes.CDLL(SONAME)
        except OSError as error:
            raise NvmlError(_LIBRARY_NOT_FOUND, str(error)) from error
        self._ways: dict[str, Way] = {}

    def call(self, function: str, *arguments: Untyped) -> Untyped:
        """What a function of nvml.h gives, without the arguments that are there for the answer. Raises NvmlError."""
        code, answer = (self._ways.get(function) or self._way(function))(*arguments)
        if code:
            raise NvmlError(code, self._text(code))
        return answer

    def shut_down(self) -> None:
        """Undo `nvmlInitWithFlags` and let the library go, so that the next one is loaded afresh. No call may go on.

        One that does not want to shut down is kept: it may still be at work.
        """
        try:
            self.call("nvmlShutdown")
        except NvmlError as error:
            if error.code not in _NOTHING_TO_SHUT_DOWN:
                logger.info("closing NVML: %s", error)
                return
        self.let_go()

    def let_go(self) -> None:
        """Unload it, where nobody else in this process has it loaded. It must not be called any more."""
        _ctypes.dlclose(self._native._handle)  # noqa: SLF001 - ctypes has no other way

    def _way(self, function: str) -> "Way":
        try:
            native = getattr(self._native, function)
        except AttributeError:  # of a later driver
            raise NvmlError(_FUNCTION_NOT_FOUND, f"this driver's library has no {function}") from None
        way = self._ways[function] = _HOW[function](native)
        return way

    def _text(self, code: int) -> str:
        say = self._native.nvmlErrorString
        say.restype = ctypes.c_char_p
        return (say(code) or b"").decode("utf-8", "replace") or f"code {code}"


class _PciInfo(ctypes.Structure):
    _fields_ = (
        ("busIdLegacy", ctypes.c_char * 16),
        *((name, ctypes.c_uint) for name in ("domain", "bus", "device", "pciDeviceId", "pciSubSystemId")),
        ("busId", ctypes.c_char * 32),
    )


class _Memory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


class _MemoryV2(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    )


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Temperature(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint), ("sensorType", ctypes.c_uint), ("temperature", ctypes.c_int))


class _ProcessInfo(ctypes.Structure):
    """Of the functions _v2 and _v3 alike."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("usedGpuMemory", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint),
        ("computeInstanceId", ctypes.c_uint),
    )


class _EventData(ctypes.Structure):
    _fields_ = (
        ("device", ctypes.c_void_p),
        ("eventType", ctypes.c_ulonglong),
        ("eventData", ctypes.c_ulonglong),
        ("gpuInstanceId", ctypes.c_uint),
        ("computeInstanceId", ctypes.c_uint),
    )


# Takes what goes into a function; gives its code and its answer.
Way: TypeAlias = Callable[..., tuple[int, Untyped]]


def _record(record: type[ctypes.Structure], version: int | None = None) -> Callable[[Untyped], Way]:
    """A function that fills a record; one of a version says in its first field which (NVML_STRUCT_VERSION)."""
    first = () if version is None else (ctypes.sizeof(record) | version << 24,)

    def way(native: Untyped) -> Way:
        def ask(*arguments: Untyped) -> tuple[int, Untyped]:
            out = record(*first)
            return native(*arguments, ctypes.byref(out)), out

        return ask

    return way


def _number(kind: Untyped) -> Callable[[Untyped], Way]:
    def way(native: Untyped) -> Way:
        def ask(*arguments: Untyped) -> tuple[int, Untyped]:
            out = kind()
            return native(*arguments, ctypes.byref(out)), out.value

        return ask

    return way


def _handle(native: Untyped) -> Way:
    def ask(*arguments: Untyped) -> tuple[int, Untyped]:
        out = ctypes.c_void_p()
        return native(*arguments, ctypes.byref(out)), out

    return ask


def _text(native: Untyped) -> Way:
    def ask(*arguments: Untyped) -> tuple[int, str]:
        out = ctypes.create_string_buffer(_TEXT_BYTES)
        return native(*arguments, out, ctypes.c_uint(_TEXT_BYTES)), out.value.decode("utf-8", "replace")

    return ask


def _nothing(native: Untyped) -> Way:
    def ask(*arguments: Untyped) -> tuple[int, None]:
        return native(*arguments), None

    return ask


def _current_of_two(native: Untyped) -> Way:
    """What is so now; the second is what will be after a reset."""

    def ask(handle: Untyped) -> tuple[int, int]:
        current, pending = ctypes.c_uint(), ctypes.c_uint()
        return native(handle, ctypes.byref(current), ctypes.byref(pending)), current.value

    return ask


def _celsius(native: Untyped) -> Way:
    version = ctypes.sizeof(_Temperature) | 1 << 24

    def ask(handle: Untyped, sensor: int) -> tuple[int, int]:
        out = _Temperature(version, sensor)
        return native(handle, ctypes.byref(out)), out.temperature

    return ask


def _processes(native: Untyped) -> Way:
    """Process ids and bytes, None where they are not told. The list grows until it has room for all."""

    def ask(handle: Untyped) -> tuple[int, list[tuple[int, int | None]]]:
        count, code = ctypes.c_uint(_FIRST_PROCESSES), _INSUFFICIENT_SIZE
        while code == _INSUFFICIENT_SIZE:
            listed = (_ProcessInfo * count.value)()
            code = native(handle, ctypes.byref(count), listed)
            if code == _INSUFFICIENT_SIZE:
                count = ctypes.c_uint(max(count.value, len(listed)) * 2)  # more may have come meanwhile
        told = listed[: count.value] if code == 0 else []
        return code, [(one.pid, None if one.usedGpuMemory == _NOT_TOLD else one.usedGpuMemory) for one in told]

    return ask


def _registration(native: Untyped) -> Way:
    def ask(handle: Untyped, event_types: int, event_set: Untyped) -> tuple[int, None]:
        return native(handle, ctypes.c_ulonglong(event_types), event_set), None

    return ask


def _event(native: Untyped) -> Way:
    def ask(event_set: Untyped, within_ms: int) -> tuple[int, Untyped]:
        out = _EventData()
        return native(event_set, ctypes.byref(out), ctypes.c_uint(within_ms)), out

    return ask


_HOW: dict[str, Callable[[Untyped], Way]] = {
    "nvmlInitWithFlags": _nothing,
    "nvmlShutdown": _nothing,
    "nvmlSystemGetDriverVersion": _text,
    "nvmlDeviceGetCount_v2": _number(ctypes.c_uint),
    "nvmlDeviceGetHandleByIndex_v2": _handle,
    "nvmlDeviceGetUUID": _text,
    "nvmlDeviceGetName": _text,
    "nvmlDeviceGetPciInfo_v3": _record(_PciInfo),
    "nvmlDeviceGetMemoryInfo_v2": _record(_MemoryV2, 2),
    "nvmlDeviceGetMemoryInfo": _record(_Memory),
    "nvmlDeviceGetUtilizationRates": _record(_Utilization),
    "nvmlDeviceGetPowerUsage": _number(ctypes.c_uint),
    "nvmlDeviceGetEnforcedPowerLimit": _number(ctypes.c_uint),
    "nvmlDeviceGetPowerManagementLimit": _number(ctypes.c_uint),
    "nvmlDeviceGetTemperatureV": _celsius,
    "nvmlDeviceGetTemperature": _number(ctypes.c_uint),
    "nvmlDeviceGetTotalEccErrors": _number(ctypes.c_ulonglong),
    "nvmlDeviceGetComputeRunningProcesses_v3": _processes,
    "nvmlDeviceGetComputeRunningProcesses_v2": _processes,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": _processes,
    "nvmlDeviceGetGraphicsRunningProcesses_v2": _processes,
    "nvmlDeviceGetMigMode": _current_of_two,
    "nvmlDeviceGetMaxMigDeviceCount": _number(ctypes.c_uint),
    "nvmlDeviceGetMigDeviceHandleByIndex": _handle,
    "nvmlEventSetCreate": _handle,
    "nvmlEventSetFree": _nothing,
    "nvmlDeviceRegisterEvents": _registration,
    "nvmlEventSetWait_v2": _event,
}
