"""PURE: the rollout engines of one node as one row of its history."""

from collections.abc import Iterable
from typing import NamedTuple

from oomwatch import wire


class Engines(NamedTuple):
    """The fullest KV cache, and sums of the counts. None: no engine told it."""

    kv_used_ratio: float | None = None
    requests_waiting: int | None = None
    preemptions_total: int | None = None


NO_ENGINES = Engines()


def joined(engines: Iterable[wire.EngineSample]) -> Engines:
    engines = list(engines)
    return Engines(
        max((one.kv_used_ratio for one in engines if one.kv_used_ratio is not None), default=None),
        _sum(one.requests_waiting for one in engines),
        _sum(one.preemptions_total for one in engines),
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
