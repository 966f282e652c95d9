"""How full a host is: the tighter of the machine's memory and the container's limit, whichever would kill first."""

from typing import Literal, NamedTuple

from oomwatch import wire


class HostUse(NamedTuple):
    ratio: float
    used_bytes: int
    limit_bytes: int
    limited_by: Literal["machine", "container"]


def uses(host: wire.HostSample, facts: wire.HostFacts) -> list[HostUse]:
    """The use of the machine and of the container, as far as it can be told: the highest since the sample before."""
    found: list[HostUse] = []
    machine = highest(host.memory_used_bytes, host.memory_used_peak_bytes)
    container = highest(host.cgroup_used_bytes, host.cgroup_used_peak_bytes)
    if machine is not None and (limit := facts.memory_total_bytes):
        found.append(HostUse(machine / limit, machine, limit, "machine"))
    if container is not None and (limit := facts.memory_limit_bytes or 0):
        found.append(HostUse(container / limit, container, limit, "container"))
    return found


def highest(used_bytes: int | None, peak_bytes: int | None) -> int | None:
    """Of a reading and what was seen before it, since the reading before; None where there is no reading."""
    return used_bytes if used_bytes is None or peak_bytes is None else max(used_bytes, peak_bytes)


def tightest(host: wire.HostSample, facts: wire.HostFacts) -> HostUse | None:
    """The use that is nearest to its limit, the machine's where both are; None where neither can be told.

    The page judges alike (hostUse in judge.js); both are held against tests/core/host_use.json.
    """
    return max(uses(host, facts), key=lambda use: use.ratio, default=None)
