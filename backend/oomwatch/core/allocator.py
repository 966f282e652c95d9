"""torch's allocator on one GPU: the figures of all the processes there, together."""

from collections.abc import Iterable
from typing import NamedTuple

from oomwatch import wire


class Allocator(NamedTuple):
    """Sums over the processes with a probe. None: no process told it."""

    reserved_bytes: int | None = None
    allocated_bytes: int | None = None
    alloc_retries_total: int | None = None


UNKNOWN = Allocator()
TOGETHER_PID = 0  # of a reading out of the history, which keeps the sum over a GPU's processes alone


def by_gpu(readings: Iterable[wire.TorchSample]) -> dict[str, Allocator]:
    """The sums of each GPU that a probe is on; processes that could not be mapped to a GPU are in none."""
    sums: dict[str, Allocator] = {}
    for reading in readings:
        if reading.gpu is not None:
            sums[reading.gpu] = plus(sums.get(reading.gpu, UNKNOWN), reading)
    return sums


def plus(sums: Allocator, reading: wire.TorchSample) -> Allocator:
    return Allocator(
        _sum(sums.reserved_bytes, reading.reserved_bytes),
        _sum(sums.allocated_bytes, reading.allocated_bytes),
        _sum(sums.alloc_retries_total, reading.alloc_retries_total),
    )


def believed_ratio(reserved_bytes: int, in_use_bytes: float | None, capacity_bytes: int | None) -> float | None:
    """torch's figure as a share of the card, believing the device where the two disagree.

    A sleeping engine's pool in the same process stays counted by torch though its pages are gone, so the counter can
    exceed the memory in use, and even the card; then, without the device's own figure, nothing can be told.
    """
    believed = reserved_bytes if in_use_bytes is None else min(reserved_bytes, in_use_bytes)
    return believed / capacity_bytes if capacity_bytes and believed <= capacity_bytes else None


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
