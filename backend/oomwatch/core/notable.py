"""The events that a rule may name: they are kept with their GPU, node or run for a while."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.core.subject import Topic

NOTABLE = (wire.DeviceOom, wire.HostOom, wire.DiskFull, wire.ShmSmall, wire.GpuLost, wire.NcclError)
NOTABLE_KEPT = 64
OUT_OF_MEMORY = (wire.DeviceOom, wire.HostOom)
# What they are about; the others have no cause in a memory.
TOPICS: dict[type[msgspec.Struct], Topic] = {
    wire.DeviceOom: "device",
    wire.HostOom: "host",
    wire.DiskFull: "disk",
    wire.ShmSmall: "disk",
}


class Notable(NamedTuple):
    """An event that a rule may name, with who wrote it."""

    at: float
    body: wire.EventBody
    origin: wire.Origin | None
    run: str | None = None
    works: int = 0  # how often its run had worked again by then (core/lives.py)


def kept(events: Iterable[Notable], another: Notable) -> tuple[Notable, ...]:
    """The last of these and this one. Most places have none, and it costs them nothing."""
    return (*events, another)[-NOTABLE_KEPT:]


def moved(events: Iterable[Notable], seconds: float) -> tuple[Notable, ...]:
    """The clock that their times are told by was set by so much."""
    return tuple(one._replace(at=one.at + seconds) for one in events)
