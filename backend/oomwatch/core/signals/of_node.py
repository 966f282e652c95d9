"""Signals of a node: its host's memory and disks, and whether its agent is heard."""

from collections.abc import Callable

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.hostdisks import Disk, disk_use
from oomwatch.core.hostmemory import tightest
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.signals.signal import Signal
from oomwatch.core.subject import Subject


def _fresh_host(fleet: Fleet, subject: Subject, now: float) -> tuple[wire.HostSample, wire.HostFacts] | None:
    node = fleet.nodes.get(subject.name)
    if node is None or node.host is None or now - node.host_at > node.stale_after_seconds:
        return None
    facts = node.hello.facts.host
    return None if facts is None else (node.host, facts)


def _is_fresh(fleet: Fleet, subject: Subject, now: float) -> bool:
    return _fresh_host(fleet, subject, now) is not None


def _host_memory_ratio(fleet: Fleet, subject: Subject, now: float) -> float | None:
    found = _fresh_host(fleet, subject, now)
    use = tightest(*found) if found else None
    return use.ratio if use else None


def _host_memory_facts(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    node = fleet.nodes.get(subject.name)
    facts = node.hello.facts.host if node else None
    use = tightest(node.host, facts) if node and node.host and facts else None
    if node is None or use is None:
        return {}
    detail: dict[str, wire.Fact] = {
        "used_bytes": use.used_bytes,
        "limit_bytes": use.limit_bytes,
        "limited_by": use.limited_by,
    }
    return detail | _biggest_process(node)


def _biggest_process(node: NodeRecord) -> dict[str, wire.Fact]:
    if not node.host_processes:
        return {}
    biggest = max(node.host_processes, key=lambda process: process.rss_bytes)
    return {"process": biggest.name, "pid": biggest.pid, "process_bytes": biggest.rss_bytes}


def _disk_ratio(disk: Disk) -> Callable[[Fleet, Subject, float], float | None]:
    def read(fleet: Fleet, subject: Subject, now: float) -> float | None:
        found = _fresh_host(fleet, subject, now)
        use = disk_use(disk, *found) if found else None
        return use.used_bytes / use.limit_bytes if use else None

    return read


def _disk_facts(disk: Disk) -> Callable[[Fleet, Subject], dict[str, wire.Fact]]:
    def explain(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
        node = fleet.nodes.get(subject.name)
        facts = node.hello.facts.host if node else None
        use = disk_use(disk, node.host, facts) if node and node.host and facts else None
        return use.facts() if use else {}

    return explain


def _agent_silent_seconds(fleet: Fleet, subject: Subject, now: float) -> float | None:
    node = fleet.nodes.get(subject.name)
    if node is None:
        return None
    return 0.0 if node.stopped else max(0.0, now - node.heard_at)


def _gpu_count(fleet: Fleet, subject: Subject) -> dict[str, wire.Fact]:
    node = fleet.nodes.get(subject.name)
    return {"gpus": len(node.gpus)} if node else {}


SIGNALS: dict[str, Signal] = {
    "host_memory_ratio": Signal(
        ("node",),
        "ratio",
        "host memory in use, as a share of the machine's or the container's limit, whichever is tighter",
        _host_memory_ratio,
        ("readings",),
        ("used_bytes", "limit_bytes", "limited_by", "process", "pid", "process_bytes"),
        _host_memory_facts,
        predicts="host",
        topic="host",
        is_fresh=_is_fresh,
    ),
    "host_shm_ratio": Signal(
        ("node",),
        "ratio",
        "use of /dev/shm",
        _disk_ratio("shm"),
        ("readings",),
        ("path", "used_bytes", "limit_bytes"),
        _disk_facts("shm"),
        predicts="host",
        topic="disk",
        is_fresh=_is_fresh,
    ),
    "host_disk_ratio": Signal(
        ("node",),
        "ratio",
        "use of the file system that Ray spills to",
        _disk_ratio("spill_disk"),
        ("readings",),
        ("path", "used_bytes", "limit_bytes"),
        _disk_facts("spill_disk"),
        predicts="disk",
        topic="disk",
        is_fresh=_is_fresh,
    ),
    "agent_silent_seconds": Signal(
        ("node",),
        "seconds",
        "time since the node's agent was last heard; 0 once it said goodbye",
        _agent_silent_seconds,
        ("time",),
        ("gpus",),
        _gpu_count,
    ),
}
