"""What a server that is one of several works with: the seams to the database, NATS and the channels."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from oomwatch import wire
from oomwatch.cluster.envelope import Envelope
from oomwatch.cluster.follower import Truth
from oomwatch.cluster.gaps import History
from oomwatch.cluster.leadership import Lease
from oomwatch.cluster.rolls import Table
from oomwatch.service.journal import Call


class Line(Protocol):
    """What is used of the bus."""

    problem: str | None

    @property
    def is_connected(self) -> bool: ...

    def publish(self, envelope: Envelope) -> None: ...

    async def last_word(self, envelope: Envelope) -> None: ...


class Channels(Protocol):
    """What is used of the herald."""

    def status(self) -> Sequence[wire.ChannelState]: ...

    def hear(self, states: Sequence[wire.ChannelState]) -> None:
        """How they fare at the replica that leads."""
        ...

    async def retry(self, name: str) -> bool: ...


class World(NamedTuple):
    """What a replica works with. Each `ask_` runs what blocks in a thread of its own: none waits for another's answer.

    `told`: the number of the last transition in the database when the service was restored from it. `stored_within`:
    for how many seconds a replica keeps what agents say before it stores it.
    """

    truth: Truth
    ask_truth: Call
    history: History
    ask_history: Call
    table: Table
    ask_table: Call
    lease: Lease
    ask_lease: Call
    bus: Line
    channels: Channels
    told: int
    stored_within: float
    steady: Callable[[], float]
