"""What was read of a run, as the messages that an agent would have sent, and the trace that they make."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil
from statistics import median

import msgspec
from msgspec import Struct

from oomwatch import __version__, wire
from oomwatch.trace import Line

# Inputs without a date begin here: a whole number of ten-minute blocks, so that the same input gives the same result.
BEGINNING = 1_200_000_000.0
# The engine takes its grid up again ten minutes back after a longer standstill (engine.GRID_POINTS_MAX).
HOP_SECONDS = 300.0
HOPS_MAX = 288  # a day: what is still open after a day without a word stays so, however long it lasts
INTERVAL_SECONDS_MAX = 3600.0  # the wire's bound

Message = wire.Sample | wire.Event


class Recording(Struct, frozen=True, kw_only=True):
    """One node over time. Messages are in order of time; their sequence numbers are given when they are told."""

    node: str
    messages: Sequence[Message]
    gpus: tuple[wire.GpuFacts, ...] = ()
    host: wire.HostFacts | None = None
    run: str | None = None
    interval_seconds: float | None = None  # None: what is usual between its samples
    began_at: float | None = None  # None: with the first message
    ended_at: float | None = None
    dated: bool = False  # whether its times are those of a clock


def gpu_facts(gpu: str, total_bytes: int, name: str = "GPU", *, reserved_bytes: int = 0) -> wire.GpuFacts:
    """A card of which little is known."""
    return wire.GpuFacts(
        gpu=gpu, uuid=f"backtest-{gpu}", name=name, total_bytes=total_bytes, reserved_bytes=reserved_bytes
    )


def trace_of(recording: Recording) -> Iterator[Line]:
    """The recording as a trace. Time passes from message to message, and the gaps between them are nobody's silence."""
    messages = recording.messages
    if not messages and recording.began_at is None:
        return
    now = recording.began_at if recording.began_at is not None else messages[0].at
    yield Line(now=now, node=recording.node, message=_hello(recording, now))
    for seq, message in enumerate(messages, start=1):
        yield from _pass(now, message.at)
        now = max(now, message.at)
        yield Line(now=now, node=recording.node, message=msgspec.structs.replace(message, seq=seq))
    yield from _pass(now, max(now, recording.ended_at or now))


def _hello(recording: Recording, now: float) -> wire.Hello:
    return wire.Hello(
        protocol=wire.PROTOCOL_VERSION,
        agent_version=__version__,
        node=recording.node,
        session="backtest",
        sent_at=now,
        interval_seconds=recording.interval_seconds or usual_interval(recording.messages),
        facts=wire.NodeFacts(gpus=recording.gpus, host=recording.host),
        run=recording.run,
    )


def usual_interval(messages: Sequence[Message]) -> float:
    """The median time between two samples, in seconds; 1 where there are not two."""
    times = [message.at for message in messages if isinstance(message, wire.Sample)]
    gaps = [gap for before, later in pairwise(times) if (gap := later - before) > 0]
    return min(max(median(gaps), 0.001), INTERVAL_SECONDS_MAX) if gaps else 1.0


def _pass(now: float, until: float) -> Iterator[Line]:
    if until <= now:
        return
    yield Line(excused=until - now)
    hops = min(ceil((until - now) / HOP_SECONDS) - 1, HOPS_MAX)
    for hop in range(1, hops + 1):
        yield Line(advance=now + hop * HOP_SECONDS)
    yield Line(advance=until)


def merged(recordings: Sequence[Recording], node: str) -> Recording:
    """Several recordings of one run as one. Those without a date begin when the first that has one does."""
    dated = [one for one in recordings if one.dated]
    start = min((_began(one) for one in dated), default=BEGINNING)
    aligned = [one if one.dated else shifted(one, start - _began(one)) for one in recordings]
    messages = sorted((message for one in aligned for message in one.messages), key=lambda message: message.at)
    return Recording(
        node=node,
        messages=messages,
        gpus=tuple(facts for one in aligned for facts in one.gpus),
        host=next((one.host for one in aligned if one.host), None),
        run=next((one.run for one in aligned if one.run), None),
        began_at=min(_began(one) for one in aligned),
        ended_at=max(one.ended_at or one.messages[-1].at for one in aligned if one.messages or one.ended_at),
        dated=bool(dated),
    )


def _began(recording: Recording) -> float:
    return recording.began_at if recording.began_at is not None else recording.messages[0].at


def shifted(recording: Recording, seconds: float) -> Recording:
    """The same, so much later."""
    if not seconds:
        return recording
    moved = [msgspec.structs.replace(message, at=message.at + seconds) for message in recording.messages]
    ends = {name: at + seconds for name in ("began_at", "ended_at") if (at := getattr(recording, name)) is not None}
    return msgspec.structs.replace(recording, messages=moved, **ends)
