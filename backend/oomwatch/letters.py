"""PURE: messages to channels, as the outbox in the database keeps them for the notifier."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from oomwatch import wire

TransitionKey: TypeAlias = tuple[str, str, float, str]  # id, state, at, change: tells one transition from every other


def key_of(transition: wire.Transition) -> TransitionKey:
    return (transition.id, transition.state, transition.at, transition.change)


class Letter(NamedTuple):
    """One message to one channel, and what became of it. `id` and `channel` tell it from every other."""

    channel: str
    id: str
    incident: str
    kind: str
    made_at: float
    document: str  # the message itself, as JSON
    covers: tuple[TransitionKey, ...] = ()  # what the channel has been told once this is delivered
    state: wire.DeliveryState = "waiting"
    attempts: int = 0
    done_at: float | None = None
    error: str | None = None
    receipt: str | None = None


class Standing(NamedTuple):
    """What is remembered of a channel: since when there is one of that name, and what others were told of it."""

    channel: str
    known_since: float
    health: wire.ChannelHealth = "ok"
    error: str | None = None
    error_at: float | None = None


class Account(NamedTuple):
    """What a channel was told, for its notifier to go on after a restart. Where `told` has no incident, it is old."""

    standing: Standing
    told: Mapping[TransitionKey, str | None]  # by transition, the incident of the message
    waiting: Sequence[Letter] = ()  # oldest first
    last: Mapping[str, Letter] = {}  # by incident, its last message that was no mere update
    receipts: Mapping[str, str] = {}  # by incident, what the message gave that can be changed
