"""What the service hands over in one go: messages of agents, in the order in which they were received."""

from msgspec import Struct

from oomwatch import wire


class Entry(Struct, frozen=True, kw_only=True):
    """One message. `received_at` is by the server's clock; the message's own times are already corrected for skew."""

    node: str
    session: str
    received_at: float
    message: wire.AgentMessage


class Batch(Struct, frozen=True, kw_only=True):
    """Entries of any number of nodes; those of one session are in the order of their sequence numbers."""

    entries: tuple[Entry, ...]
