"""How full a host is: the tighter of the machine's memory and the container's limit, whichever would kill first."""

from typing import Literal, NamedTuple

from oomwatch import wire


class HostUse(NamedTuple):
    ratio: float
    used_bytes: int
    limit_bytes: int
    limited_by: Literal["machine", "container"]


def uses(host: wire.HostSample, facts: wire.HostFacts) -> list[HostUse]:
    """The use of the machine and of the container, as far as it can be told."""
    found: list[HostUse] = []
    if host.memory_used_bytes is not None and (limit := facts.memory_total_bytes):
        found.append(HostUse(host.memory_used_bytes / limit, host.memory_used_bytes, limit, "machine"))
    if host.cgroup_used_bytes is not None and (limit := facts.memory_limit_bytes or 0):
        found.append(HostUse(host.cgroup_used_bytes / limit, host.cgroup_used_bytes, limit, "container"))
    return found


def tightest(host: wire.HostSample, facts: wire.HostFacts) -> HostUse | None:
    """The use that is nearest to its limit, the machine's where both are; None where neither can be told.

    The page judges alike (hostUse in judge.js); both are held against tests/core/host_use.json.
    """
    return max(uses(host, facts), key=lambda use: use.ratio, default=None)
