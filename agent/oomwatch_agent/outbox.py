"""What the agent has said and the server has not yet stored. PURE: no clock, no I/O.

The outbox gives every sample, event and bye its sequence number and keeps the encoded frame until it is acknowledged,
so that a broken network or a restarted server loses nothing (docs/reference/wire-protocol.md). It is bounded in age, in
number and in bytes; what no longer fits is dropped, oldest first, and counted.
"""

from collections import deque
from typing import NamedTuple, TypeAlias

import msgspec

from oomwatch import wire

MAX_AGE_SECONDS = 600.0  # the protocol's promise

Numbered: TypeAlias = wire.Sample | wire.Event | wire.Bye


class Frame(NamedTuple):
    """One message as it goes over the wire."""

    seq: int
    made_at: float
    text: bytes


class Outbox:
    """Numbers messages from 1, and keeps them until the server has stored them."""

    def __init__(
        self,
        *,
        max_age_seconds: float = MAX_AGE_SECONDS,
        max_frames: int = wire.OUTBOX_FRAMES_MAX,
        max_bytes: int = wire.OUTBOX_BYTES_MAX,
    ) -> None:
        self._max_age_seconds = max_age_seconds
        self._max_frames = max_frames
        self._max_bytes = max_bytes
        self._frames: deque[Frame] = deque()
        self._bytes = 0
        self.last_seq = 0
        self.acknowledged_seq = 0
        self.dropped_total = 0

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, message: Numbered, now: float) -> int:
        """Number a message and keep it; gives its number. `now`: seconds on a clock that never jumps.

        Age counts from here and not from the message's own time: an event read from an old log is not old news that
        may be dropped.
        """
        self.last_seq += 1
        frame = Frame(self.last_seq, now, wire.encode(msgspec.structs.replace(message, seq=self.last_seq)))
        self._frames.append(frame)
        self._bytes += len(frame.text)
        self._drop_what_no_longer_fits(now)
        return frame.seq

    def acknowledge(self, seq: int) -> None:
        """Forget everything up to `seq`. An old or repeated acknowledgement changes nothing."""
        self.acknowledged_seq = max(self.acknowledged_seq, min(seq, self.last_seq))
        while self._frames and self._frames[0].seq <= seq:
            self._forget_oldest()

    def after(self, seq: int, limit: int) -> list[Frame]:
        """The kept frames above `seq`, oldest first, `limit` at most."""
        if not self._frames or limit < 1:
            return []
        # Kept numbers have no gaps (only the oldest are ever forgotten), so a position is a subtraction.
        start = max(0, seq + 1 - self._frames[0].seq)
        return [self._frames[index] for index in range(start, min(start + limit, len(self._frames)))]

    def _drop_what_no_longer_fits(self, now: float) -> None:
        while self._frames and self._no_longer_fits(now):
            self._forget_oldest()
            self.dropped_total += 1

    def _no_longer_fits(self, now: float) -> bool:
        return (
            len(self._frames) > self._max_frames
            or self._bytes > self._max_bytes
            or now - self._frames[0].made_at > self._max_age_seconds
        )

    def _forget_oldest(self) -> None:
        self._bytes -= len(self._frames.popleft().text)
