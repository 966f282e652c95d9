"""torch.cuda by hand. Whatever is touched before `init()`, or would change something, ends up in `touched`."""

import os
from typing import Any

from torch.cuda import memory as memory

touched: list[str] = []
_initialized_in = 0
devices: list[dict[str, Any]] = []
uuids: dict[int, str] = {}
broken = False  # True: the counters raise, as those of an allocator of the program's own do


class Properties:
    """A device of torch before 2.4 has no UUID."""


class PropertiesWithUuid(Properties):
    def __init__(self, uuid: str) -> None:
        self.uuid = uuid


def init() -> None:
    """What the program does, and the probe must not."""
    global _initialized_in  # noqa: PLW0603 - as torch has it
    _initialized_in = os.getpid()


def is_initialized() -> bool:
    return _initialized_in == os.getpid()  # False in the child of a process that has initialised it


def _touch(what: str) -> None:
    if not is_initialized():
        touched.append(what)
        raise AssertionError(f"{what} was called before the program initialised CUDA")


def device_count() -> int:
    _touch("device_count")
    return len(devices)


def memory_stats_as_nested_dict(device: int) -> dict[str, Any]:
    _touch("memory_stats_as_nested_dict")
    if broken:
        raise RuntimeError("this allocator does not yet support getDeviceStats")
    return devices[device]


def get_device_properties(device: int) -> Properties:
    _touch("get_device_properties")
    return PropertiesWithUuid(uuids[device]) if device in uuids else Properties()


def _forbidden(name: str) -> Any:
    def call(*_arguments: Any, **_named: Any) -> None:
        touched.append(name)

    return call


reset_peak_memory_stats = _forbidden("reset_peak_memory_stats")
reset_accumulated_memory_stats = _forbidden("reset_accumulated_memory_stats")
empty_cache = _forbidden("empty_cache")
synchronize = _forbidden("synchronize")
current_device = _forbidden("current_device")


def fill(
    *,
    reserved: int,
    allocated: int = 0,
    active: int = 0,
    inactive_split: int = 0,
    reserved_peak: int | None = None,
    retries: int = 0,
    ooms: int = 0,
) -> dict[str, Any]:
    """The counters of one device, in torch's own shape."""

    def pool(current: int, peak: int) -> dict[str, Any]:
        return {"all": {"current": current, "peak": peak, "allocated": peak, "freed": peak - current}}

    return {
        "reserved_bytes": pool(reserved, reserved if reserved_peak is None else reserved_peak),
        "allocated_bytes": pool(allocated, allocated),
        "active_bytes": pool(active, active),
        "inactive_split_bytes": pool(inactive_split, inactive_split),
        "num_alloc_retries": retries,
        "num_ooms": ooms,
        "num_sync_all_streams": 0,
    }
