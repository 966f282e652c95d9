"""Hosts' memory, as the rules see it."""

from collections.abc import Iterator

from oomwatch.core.hostmemory import tightest
from oomwatch.core.noderecord import NodeRecord
from oomwatch.metrics.family import OF_NODE, Family, Reading, Room, View

USED = Family("oomwatch_host_memory_used_bytes", "gauge",
              "Host memory in use, of the machine or of the container, whichever is nearer to its limit.",
              OF_NODE, ("node",))  # fmt: skip
LIMIT = Family("oomwatch_host_memory_limit_bytes", "gauge", "The limit that belongs to it.", OF_NODE, ("node",))


def _read(view: View) -> Iterator[Reading]:
    fresh = [((node.name,), *use) for node in view.nodes if (use := _tightest(node, view.now))]
    yield USED.of((key, used) for key, used, _ in fresh)
    yield LIMIT.of((key, limit) for key, _, limit in fresh)


def _tightest(node: NodeRecord, now: float) -> tuple[int, int] | None:
    """Used and limit of what would fill first."""
    facts, host = node.hello.facts.host, node.host
    if facts is None or host is None or now - node.host_at > node.stale_after_seconds:
        return None
    use = tightest(host, facts)
    return (use.used_bytes, use.limit_bytes) if use else None


ROOM = Room((USED, LIMIT), _read)
