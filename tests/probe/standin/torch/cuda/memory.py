"""torch.cuda.memory by hand: a history that is recorded while it is switched on, and a snapshot of it."""

from typing import Any

from torch import _C

calls: list[tuple[Any, dict[str, Any]]] = []
trace: list[dict[str, Any]] = []
refuses = False  # True: as a torch that has another way of recording


def _record_memory_history(enabled: str | None = "all", **how: Any) -> None:
    if refuses:
        raise TypeError("_record_memory_history() got an unexpected keyword argument")
    calls.append((enabled, how))
    _C.recording = enabled is not None
    trace.clear()


def take(count: int, size: int = 512) -> None:
    """The program allocates; it is seen while the history is recorded."""
    if _C.recording:
        frames = [{"filename": "train.py", "line": 12, "name": "update_actor"}]
        trace.extend({"action": "alloc", "addr": at, "size": size, "frames": frames} for at in range(count))


def _snapshot(device: object = None) -> dict[str, Any]:  # noqa: ARG001 - torch's shape
    return {"segments": [{"address": 1, "total_size": 3 * 2**30}], "device_traces": [list(trace)]}
