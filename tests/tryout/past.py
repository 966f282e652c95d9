"""A database with some time in it."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
from tests.server.house import GIB, hello, sample

from oomwatch import wire
from oomwatch.rulefile import parse_rules
from oomwatch.store.store import Batch, Entry, Store

BEGIN = 1_700_000_000.0 // 3600 * 3600 + 3000  # ten minutes before a full hour
CARD_BYTES = 80 * GIB

RULES = """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    for: 20s
    keep_firing_for: 10s
    summary: "GPU {gpu} of {node} is {value} full"
  - alert: host_full
    severity: critical
    when: {kind: threshold, metric: host_memory_ratio, above: 90%}
    summary: "{node}"
  - alert: silent
    severity: critical
    when: {kind: threshold, metric: agent_silent_seconds, above: 30s}
    summary: "{node}"
"""
IN_FORCE = parse_rules(RULES).rules
LOWER = RULES.replace("above: 85%", "above: 60%")
HIGHER = RULES.replace("above: 85%", "above: 98%")


def store_with(folder: Path, told: Iterable[tuple[str, wire.AgentMessage]], *, run: str | None = None) -> Store:
    """A database that holds these messages, and a hello of each node before them."""
    store = Store.open(f"sqlite:///{folder / 'oomwatch.db'}")
    kept = [(node, numbered(message, seq)) for seq, (node, message) in enumerate(told, start=1)]
    greetings = [
        hello(node, session=f"s-{node}", sent_at=BEGIN, run=run) for node in dict.fromkeys(node for node, _ in kept)
    ]
    store.record(Batch(entries=tuple(entry(one.node, one) for one in greetings)))
    store.record(Batch(entries=tuple(entry(node, message) for node, message in kept)))
    return store


def numbered(message: wire.AgentMessage, seq: int) -> wire.AgentMessage:
    """What comes later has the higher number, or it would pass for stored."""
    return message if isinstance(message, wire.Hello) else msgspec.structs.replace(message, seq=seq)


def entry(node: str, message: wire.AgentMessage) -> Entry:
    at = message.sent_at if isinstance(message, wire.Hello) else message.at
    return Entry(node=node, session=f"s-{node}", received_at=at, message=message)


def readings(node: str, used_gib: Iterable[float], *, offset: float = 0.0) -> list[tuple[str, wire.AgentMessage]]:
    """One a second from BEGIN on."""
    return [(node, sample(seq, used, BEGIN + offset + seq - 1)) for seq, used in enumerate(used_gib, start=1)]


def peak(seconds: int, *, at: int = 60, lasts: int = 60, gib: float = 75.0) -> list[float]:
    """A card at 40 GiB which is fuller for a while."""
    return [gib if at <= second < at + lasts else 40.0 for second in range(seconds)]
