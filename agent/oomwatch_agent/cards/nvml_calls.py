"""The driver's library, called by way of nvidia-ml-py: the only importer of pynvml."""

import _ctypes
import ctypes
from collections.abc import Callable

import pynvml

from oomwatch_agent.cards.nvml_gpu import MEMORY_V2, LostError, NoAnswerError, Untyped
from oomwatch_agent.source import SourceMissingError

# Codes of nvml.h, by number: older bindings lack some of the names.
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
        if error.value in _DEVICE_IS_LOST:
            raise LostError(str(error)) from error
        if error.value in _LIBRARY_IS_DEAD:
            raise SourceMissingError(_remedy(error)) from error
        raise NoAnswerError(str(error), for_ever=error.value in _WILL_NOT_CHANGE) from error


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


def gauge(handle: Untyped) -> Callable[[], int | None] | None:
    """What asks a device again and again how many bytes are in use; None where the binding or the driver is too old.

    It does once what nvidia-ml-py does at every call: to find the function, to make the struct. That costs more than
    the driver's answer in a program that wakes up four times a second and finds nothing of its own in the processor's
    caches. Used by one thread at a time; it gives None where the driver has no answer.
    """
    try:
        ask = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetMemoryInfo_v2")  # noqa: SLF001 - no other way
        memory = pynvml.c_nvmlMemory_v2_t()
        read = pynvml.c_nvmlMemory_v2_t.used.__get__
    except (AttributeError, pynvml.NVMLError):
        return None
    memory.version = MEMORY_V2
    place = ctypes.byref(memory)

    def used_bytes() -> int | None:
        return read(memory) if ask(handle, place) == 0 else None

    return used_bytes


def _remedy(error: Untyped) -> str:
    return _REMEDIES.get(error.value, f"NVML failed: {error} (code {error.value}); see `nvidia-smi` and `dmesg`")
