"""PURE: what few hosts have, as one row of the history: the rollout engines of a node together, and Ray's disk."""

from collections.abc import Iterable
from typing import NamedTuple

from oomwatch import wire


class BesideHost(NamedTuple):
    """The fullest KV cache, sums of the counts, and what is used of the disk. None: not told."""

    kv_used_ratio: float | None = None
    requests_waiting: int | None = None
    preemptions_total: int | None = None
    disk_used_bytes: int | None = None


NOTHING = BesideHost()


def beside_host(engines: Iterable[wire.EngineSample], host: wire.HostSample | None) -> BesideHost:
    engines = list(engines)
    return BesideHost(
        max((one.kv_used_ratio for one in engines if one.kv_used_ratio is not None), default=None),
        _sum(one.requests_waiting for one in engines),
        _sum(one.preemptions_total for one in engines),
        host.disk_used_bytes if host is not None else None,
    )


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
