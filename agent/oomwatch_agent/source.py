"""The seam between the agent and everything it reads from.

A source is anything that can be opened and read: NVML, a vendor's tool, the host's memory, a log file, Ray's session
folder, an engine's metrics, the probes within the trainer's processes, a simulation. Sources block as they please; the
sampler gives each a worker thread and a time limit, so that a hung driver costs its own reading and nothing else.
Whatever schema a source reads stops in its own file: only wire types come out.
"""

from typing import Protocol

import msgspec

from oomwatch import wire


class SourceMissingError(Exception):
    """This source gives nothing on this machine. The text says why, and what a person can do about it."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An event as a source recognised it, before the agent gives it a sequence number."""

    body: wire.EventBody
    origin: wire.Origin
    run: str | None = None
    backlog: bool = False
    at: float | None = None  # Unix seconds where the source knows better than "when it was read"


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one read of one source gave. `facts` is set at the first read and whenever the facts have changed.

    A source that cannot know a GPU's label gives, in `torch` and in a wire.Probe, what the process calls the device:
    its UUID, or an entry of CUDA_VISIBLE_DEVICES. The sampler makes labels of them.
    """

    gpus: tuple[wire.GpuSample, ...] = ()
    host: wire.HostSample | None = None
    engines: tuple[wire.EngineSample, ...] = ()
    torch: tuple[wire.TorchSample, ...] = ()
    found: tuple[Found, ...] = ()
    facts: wire.NodeFacts | None = None


class Source(Protocol):
    """Opened once, read at every interval, closed at the end; always from one thread at a time."""

    @property
    def name(self) -> str:
        """Its name in SourceFacts: "nvml", "host", "log driver.log"."""
        ...

    def open(self) -> wire.NodeFacts:
        """Find out what there is. Raises SourceMissingError; the agent tries again now and then."""
        ...

    def read(self, *, slow: bool) -> Reading:
        """Read once. `slow` is true about every tenth time: the moment for what is dear, such as process tables."""
        ...

    def close(self) -> None:
        """Let go of handles. Must not raise, and is called even where open failed."""
        ...
