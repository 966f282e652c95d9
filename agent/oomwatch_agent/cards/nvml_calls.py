"""The driver's library, called by way of nvidia-ml-py: the only importer of pynvml."""

import _ctypes
import ctypes
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pynvml

from oomwatch_agent.cards.nvml_gpu import MEMORY_V2, LostError, NoAnswerError, Untyped
from oomwatch_agent.source import SourceMissingError

# Codes of nvml.h, by number: older bindings lack some of the names.
_TIMEOUT = 10  # of a wait for events: there is none
_DEVICE_IS_LOST = frozenset({15, 16, 28})  # GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND
# UNINITIALIZED, DRIVER_NOT_LOADED, LIBRARY_NOT_FOUND, LIB_RM_VERSION_MISMATCH
_LIBRARY_IS_DEAD = frozenset({1, 9, 12, 18})
# NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND, VGPU_ECC_NOT_SUPPORTED, ARGUMENT_VERSION_MISMATCH, DEPRECATED
_WILL_NOT_CHANGE = frozenset({3, 4, 13, 22, 25, 26})
_REMEDIES = {
    4: "no permission to use the NVIDIA driver: give the agent access to /dev/nvidiactl and /dev/nvidia*",
    9: "the NVIDIA driver is not loaded: load it (modprobe nvidia), or give the container its GPUs (--gpus all)",
    12: "no NVIDIA driver: libnvidia-ml.so.1 not found; install the driver, or start the container with GPU access "
    "(--gpus all, with the driver capability `utility`)",
    18: "NVIDIA's library and kernel module are of different versions: reboot, or reload the nvidia module",
}


def initialise() -> str | None:
    """The driver's version. Raises SourceMissingError."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise SourceMissingError(_remedy(error)) from error
    try:
        version: str = call("nvmlSystemGetDriverVersion")
    except (NoAnswerError, LostError):
        return None
    return version


def call(function: str, *arguments: object) -> Untyped:
    """Call the binding. Raises NoAnswerError, LostError or, where the whole library is gone, SourceMissingError."""
    bound = getattr(pynvml, function, None)
    if bound is None:
        raise NoAnswerError(f"{function} is not in this nvidia-ml-py", for_ever=True)
    try:
        return bound(*arguments)
    except pynvml.NVMLError as error:
        raise _trouble(error) from error


def _trouble(error: Untyped) -> Exception:
    if error.value in _DEVICE_IS_LOST:
        return LostError(str(error))
    if error.value in _LIBRARY_IS_DEAD:
        return SourceMissingError(_remedy(error))
    return NoAnswerError(str(error), for_ever=error.value in _WILL_NOT_CHANGE)


def unload() -> None:
    """Let the library go, so that the next start loads the one that is installed then. No call may be going on.

    nvidia-ml-py keeps it for the life of the process: after an upgrade of the driver every call would fail until the
    agent was started again.
    """
    with pynvml.libLoadLock:
        library, pynvml.nvmlLib = pynvml.nvmlLib, None
        pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - nvidia-ml-py has no other way
    if library is not None:
        _ctypes.dlclose(library._handle)  # noqa: SLF001 - nor has ctypes


def gauge(handle: Untyped, function: str, *arguments: int) -> Callable[[], int] | None:
    """What asks a device one question again and again, and raises as `call` does; None where it has to be a call.

    It does once what nvidia-ml-py does at every call: to find the function, to make what the answer is written to. That
    costs more than the driver's answer in a program that wakes up some times a second and finds nothing of its own in
    the processor's caches. Used by one thread at a time.
    """
    try:
        name, fixed, answer, field = _GAUGES[function](*arguments)
        ask = pynvml._nvmlGetFunctionPointer(name)  # noqa: SLF001 - no other way
    except (AttributeError, pynvml.NVMLError):  # of the binding, or of the driver
        return None
    read, place = getattr(type(answer), field).__get__, ctypes.byref(answer)

    def number() -> int:
        code = ask(handle, *fixed, place)
        if code:
            raise _trouble(pynvml.NVMLError(code))
        found: int = read(answer)
        return found

    return number


def sweep(handles: Sequence[Untyped]) -> Callable[[], Sequence[int]] | None:
    """What asks many devices how much of their memory is in use, and raises where one does not answer as `call` does.

    It gives the same object as before where nothing has changed. All answers lie in one place: eight cards, in cold
    caches, take 81 µs in place of the 96 of a gauge for each, and eight bare calls 65. None where it has to be calls.
    Used by one thread at a time.
    """
    try:
        kind = pynvml.c_nvmlMemory_v2_t
        ask = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetMemoryInfo_v2")  # noqa: SLF001 - no other way
    except (AttributeError, pynvml.NVMLError):  # of the binding, or of the driver
        return None
    answers = (kind * len(handles))(*(kind(version=MEMORY_V2) for _ in handles))
    places = [ctypes.byref(answers, number * ctypes.sizeof(kind)) for number in range(len(handles))]
    asked = list(zip(handles, places, strict=True))
    known, used = b"", list[int]()

    def used_bytes() -> Sequence[int]:
        nonlocal known, used
        for handle, place in asked:
            code = ask(handle, place)
            if code:
                raise _trouble(pynvml.NVMLError(code))
        told = bytes(answers)
        if told != known:
            known, used = told, [answer.used for answer in answers]
        return used

    return used_bytes


def event_gauge(events: Untyped) -> Callable[[], Untyped]:
    """What asks for the next event that has come: gives it, or None where there is none. Raises as `call` does."""
    try:
        ask = pynvml._nvmlGetFunctionPointer("nvmlEventSetWait_v2")  # noqa: SLF001 - no other way
    except pynvml.NVMLError as error:
        raise _trouble(error) from error
    event, at_once = pynvml.c_nvmlEventData_t(), ctypes.c_uint(0)
    place = ctypes.byref(event)

    def next_event() -> Untyped:
        code = ask(events, place, at_once)
        if code == 0:
            return event
        return None if code == _TIMEOUT else call("nvmlEventSetWait_v2", events, 0)

    return next_event


# Of a question: the function of the driver's library, what stands before the place of the answer, that place, and which
# field of it is wanted.
_Gauge: TypeAlias = tuple[str, tuple[Untyped, ...], Untyped, str]


def _memory(version: int | None = None) -> _Gauge:
    if version is None:
        return "nvmlDeviceGetMemoryInfo", (), pynvml.c_nvmlMemory_t(), "used"
    return "nvmlDeviceGetMemoryInfo_v2", (), pynvml.c_nvmlMemory_v2_t(version=version), "used"


def _temperature(sensor: int) -> _Gauge:
    answer = pynvml.c_nvmlTemperature_v1_t(version=pynvml.nvmlTemperature_v1, sensorType=sensor)
    return "nvmlDeviceGetTemperatureV", (), answer, "temperature"


def _ecc_errors(kind: int, counter: int) -> _Gauge:
    return "nvmlDeviceGetTotalEccErrors", (ctypes.c_uint(kind), ctypes.c_uint(counter)), ctypes.c_ulonglong(), "value"


_GAUGES: dict[str, Callable[..., _Gauge]] = {
    "nvmlDeviceGetMemoryInfo": _memory,
    "nvmlDeviceGetUtilizationRates": lambda: ("nvmlDeviceGetUtilizationRates", (), pynvml.c_nvmlUtilization_t(), "gpu"),
    "nvmlDeviceGetTemperatureV": _temperature,
    "nvmlDeviceGetTemperature": lambda sensor: (
        "nvmlDeviceGetTemperature",
        (ctypes.c_uint(sensor),),
        ctypes.c_uint(),
        "value",
    ),
    "nvmlDeviceGetPowerUsage": lambda: ("nvmlDeviceGetPowerUsage", (), ctypes.c_uint(), "value"),
    "nvmlDeviceGetTotalEccErrors": _ecc_errors,
}


def _remedy(error: Untyped) -> str:
    return _REMEDIES.get(error.value, f"NVML failed: {error} (code {error.value}); see `nvidia-smi` and `dmesg`")
