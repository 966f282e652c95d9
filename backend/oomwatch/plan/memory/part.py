"""One part of the memory of a GPU or a host: what it is, how large, by which formula, and whose formula that is."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from oomwatch.plan.memory.names import PartName

GIB = 2**30
# Who holds a part: torch's allocator in the training process, as allocated or as merely reserved; that process outside
# of torch (CUDA, NCCL); an engine; or the host.
Holder = Literal["allocated", "reserved", "context", "engine", "host"]
# How long a part stays: for good, while its model is in use; for one pass, as much as the pass has tokens; or for a
# moment, whatever the batch. So a smaller batch frees the second alone.
Stay = Literal["lasting", "per_token", "passing"]


class Part(Struct, frozen=True, kw_only=True):
    """`spread` is how far the part may be from `bytes`, as a ratio: what is exact by its formula has next to none."""

    name: PartName
    bytes: int
    formula: str  # with its numbers: "4 bytes x 7.62 G / 8"
    source: str
    holder: Holder = "allocated"
    stay: Stay = "passing"
    spread: float = 0.02


def total(parts: Iterable[Part]) -> int:
    return sum(part.bytes for part in parts)


def staying(parts: Iterable[Part], stay: Stay) -> int:
    return total(part for part in parts if part.stay == stay)


def held(parts: Iterable[Part], *holders: Holder) -> int:
    return total(part for part in parts if part.holder in holders)


def present(parts: Iterable[Part | None]) -> tuple[Part, ...]:
    """Those that are there and hold anything."""
    return tuple(part for part in parts if part is not None and part.bytes > 0)


def amount(number: float) -> str:
    """A count as formulas show it: 7.62 G, 152 k, 24."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
