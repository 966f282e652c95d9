"""The seam between the agent and everything it reads from.

A source is anything that can be opened and read: NVML, a vendor's tool, the host's memory, a log file, Ray's session
folder, an engine's metrics, the probes within the trainer's processes, a simulation. Sources block as they please; the
sampler reads them in other threads within a time limit, so that a hung driver costs its own reading and nothing else.
Whatever schema a source reads stops in its own file: only wire types come out.
"""

import enum
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from oomwatch import wire


class SourceMissingError(Exception):
    """This source gives nothing on this machine. The text says why, and what a person can do about it."""


class KnownBy(enum.IntEnum):
    """How a run came by its name: where several are known of one process, the highest counts."""

    FILE = 0  # the name of its log's file
    BATCH_JOB = 1  # the job of Slurm or Kubernetes that the process was started in
    RAY_JOB = 2  # Ray's own name of the job, until its driver says what people call it
    LOG = 3  # the run's configuration or its log
    PERSON = 4  # OOMWATCH_RUN, for this very process


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What a source knows of one process. None: not known to it."""

    pid: int  # as this machine, or the container that the log is from, numbers its processes
    inner_pid: int | None = None  # of the same process within its container, where that differs
    run: str | None = None
    run_by: KnownBy = KnownBy.BATCH_JOB
    rank: int | None = None
    role: str | None = None  # one of wire.ROLES


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An event as a source recognised it, before the agent gives it a sequence number."""

    body: wire.EventBody
    origin: wire.Origin
    run: str | None = None
    run_by: KnownBy = KnownBy.LOG
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
    identities: tuple[Identity, ...] = ()  # of processes, where they are new or may have changed
    facts: wire.NodeFacts | None = None


class Source(Protocol):
    """Opened once, read at every interval, closed at the end; never by two threads at once."""

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


class Sight(NamedTuple):
    """How full one memory is: the only thing that is looked at between two reads."""

    memory: str  # a GPU's label, MACHINE or CONTAINER
    used_bytes: int
    usable_bytes: int


MACHINE, CONTAINER = "the machine", "the container"  # no label of a GPU has a space

# Where nothing fills: the memory of a card that stood still may be filled within a second. Each look more costs an
# agent that rests a tenth of all that it takes; a card that fills is looked at more often than this anyway.
CARD_LOOKS_AN_INTERVAL = 3


@runtime_checkable
class Looking(Protocol):
    """A source that can tell at little cost, between two reads, how full its memories are."""

    @property
    def looks_an_interval(self) -> int:
        """How often to look where nothing fills: 1 leaves it to the reads."""
        ...

    def look(self) -> Sequence[Sight]:
        """What can be seen now; unlike all else in a thread of its own, and while a read may be going on.

        May raise, and may hang: the next read tells of it. Who gives the same object as before says that nothing has
        changed, which costs least.
        """
        ...


class Begun(Protocol):
    """A reading in which each of several things may hang. `hang_guard.Round` is one."""

    def work(self) -> None:
        """Ask them, in this thread, which may hang in it."""
        ...

    def claim(self) -> bool:
        """Of the threads that could end the reading, the first gets yes."""
        ...


@runtime_checkable
class InSteps(Protocol):
    """A source that can be read, unless slowly, without a thread more: who reads it may hang, and another ends it then.

    begin, Begun.work, end; each reading is ended once, in the thread that worked or, where that is stuck, in another.
    """

    def begin(self) -> Begun | None:
        """Must not raise, nor wait. None: this time it has to be read at once."""
        ...

    def end(self, begun: Begun) -> Reading:
        """What came of what `begin` gave; waits for a moment where something hangs."""
        ...
