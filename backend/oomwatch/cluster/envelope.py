"""PURE: what replicas send each other over NATS, as bytes.

A replica that is one version older or newer is a colleague: fields that are not known are passed over, and what is of
an unknown type, or carries a message that is, gives None, to be counted.
"""

from typing import TypeAlias

import msgspec
from msgspec import Struct, msgpack

from oomwatch import wire


class _Envelope(Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="type"):
    replica: str  # who sends it


class Said(_Envelope, frozen=True, kw_only=True, tag="said"):
    """What an agent said at its door: times on the door's clock, runs by their names. `seq` is 0 for a hello.

    `claimed_at`: by what replicas tell which of two doors is the later one (ownership.Doors).
    """

    node: str
    session: str
    seq: int
    received_at: float
    claimed_at: float
    interval_seconds: float
    skew_seconds: float = 0.0
    message: msgspec.Raw  # a wire.AgentMessage


class Left(_Envelope, frozen=True, kw_only=True, tag="left"):
    """An agent's connection has ended."""

    node: str
    session: str


class Pulse(_Envelope, frozen=True, kw_only=True, tag="pulse"):
    """I am here. `leads`: since when it holds the lease, in Unix seconds; None: it does not."""

    sent_at: float
    started_at: float
    address: str = ""
    leads: float | None = None
    ails: bool = False  # it cannot write to the database
    channels: tuple[wire.ChannelState, ...] = ()  # as they fare at the leader


class Gone(_Envelope, frozen=True, kw_only=True, tag="gone"):
    """I stop, on purpose."""


class Stored(_Envelope, frozen=True, kw_only=True, tag="stored"):
    """There is something new in the database: transitions, silences, or nodes that are gone for good."""


class Unstored(_Envelope, frozen=True, kw_only=True, tag="unstored"):
    """Transitions that people were told, and the database could not be given yet."""

    transitions: tuple[wire.Transition, ...]


class Asked(_Envelope, frozen=True, kw_only=True, tag="asked"):
    """Whoever has this node's agent is to ask it for something."""

    node: str
    request: wire.ActRequest


class Retried(_Envelope, frozen=True, kw_only=True, tag="retried"):
    """A person wants a channel to be told again what it has refused: the leader's to do."""

    channel: str


Envelope: TypeAlias = Said | Left | Pulse | Gone | Stored | Unstored | Asked | Retried


class MalformedEnvelopeError(ValueError):
    """Bytes that are no envelope."""


class _Peek(Struct):
    type: str
    body: dict[str, msgspec.Raw] | None = None


_TYPES = frozenset(str(member.__struct_config__.tag) for member in Envelope.__args__)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_encoder = msgpack.Encoder()
_decoder: msgpack.Decoder[Envelope] = msgpack.Decoder(Envelope)
_message_decoder: msgpack.Decoder[wire.AgentMessage] = msgpack.Decoder(wire.AgentMessage)
_peek_decoder = msgpack.Decoder(_Peek)
_text_decoder = msgpack.Decoder(str)


def encode(envelope: Envelope) -> bytes:
    """MessagePack: a quarter less than JSON, and read in half the time."""
    return _encoder.encode(envelope)


def raw(message: wire.AgentMessage) -> msgspec.Raw:
    """A message for `Said`."""
    return msgspec.Raw(_encoder.encode(message))


def decode(payload: bytes) -> Envelope | None:
    """None: of a type that a newer replica knows. Raises MalformedEnvelopeError."""
    try:
        return _decoder.decode(payload)
    except _UNREADABLE as error:
        if _peeked(payload, error).type not in _TYPES:
            return None
        raise MalformedEnvelopeError(str(error)) from error


def message_in(said: Said) -> wire.AgentMessage | None:
    """What the agent said; None: a newer replica knows what it means. Raises MalformedEnvelopeError."""
    try:
        return _message_decoder.decode(said.message)
    except _UNREADABLE as error:
        peek = _peeked(bytes(said.message), error)
        kind = (peek.body or {}).get("kind") if peek.type == "event" else None
        if peek.type not in wire.AGENT_TYPES or (kind and _text_decoder.decode(kind) not in wire.EVENT_KINDS):
            return None
        raise MalformedEnvelopeError(str(error)) from error


def _peeked(payload: bytes, error: Exception) -> _Peek:
    try:
        return _peek_decoder.decode(payload)
    except _UNREADABLE:
        raise MalformedEnvelopeError(str(error)) from error
