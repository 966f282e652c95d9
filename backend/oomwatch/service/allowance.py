"""What one node's agent may say: how fast, and how many names. It outlives connections and sessions. PURE.

An honest agent never comes near. One that lies, or has a defect, is slowed down, and what names too much is refused, so
that it can fill neither the memory, nor the database, nor Prometheus. A sample that names too many runs is taken
without their names, and one that names too many engines without those: the cards are as full as it says.
"""

from typing import TypeVar, cast

import msgspec

from oomwatch import wire
from oomwatch.core.names import renamed
from oomwatch.service.vocabulary import (
    ENGINES_MAX,
    GPUS_MAX,
    RUNS_MAX,
    Runs,
    Vocabulary,
    cards_in,
    engines_in,
    gpus_in,
    name_of,
    runs_in,
)

# What an agent may have saved up while nobody listened, with half as many bytes to spare, and what it may say for ever:
# ten samples a second of sixteen GPUs are 150 KiB, a trainer's log is some lines a second.
FRAMES_SAVED, FRAMES_PER_SECOND = wire.OUTBOX_FRAMES_MAX, 100.0
BYTES_SAVED, BYTES_PER_SECOND = wire.OUTBOX_BYTES_MAX * 3 // 2, 512 * 2**10

LATELY_SECONDS = 3600.0

_Message = TypeVar("_Message", bound=wire.AgentMessage)


class MadeUpError(Exception):
    """A message is not believed, and why."""


class Bucket:
    """So much at once, and so much a second from then on. Times are of a clock that never jumps."""

    def __init__(self, saved: float, per_second: float) -> None:
        self._full_seconds = saved / per_second
        self._per_second = per_second
        self._paid_until = float("-inf")

    def take(self, amount: float, now: float) -> float:
        """Take so much; gives the seconds after which there would have been enough."""
        self._paid_until = max(self._paid_until, now) + amount / self._per_second
        return self.owed_seconds(now)

    def owed_seconds(self, now: float) -> float:
        """For how long nothing more is to be taken."""
        return max(0.0, self._paid_until - now - self._full_seconds)


class Allowance:
    """One node's. `runs_of_all` is that of all nodes together. `now`: on a clock that never jumps."""

    def __init__(self, runs_of_all: Vocabulary) -> None:
        self._frames = Bucket(FRAMES_SAVED, FRAMES_PER_SECOND)
        self._bytes = Bucket(BYTES_SAVED, BYTES_PER_SECOND)
        self._runs = Runs(runs_of_all)
        self._gpus = Vocabulary(GPUS_MAX)
        self._cards = Vocabulary(GPUS_MAX)
        self._engines = Vocabulary(ENGINES_MAX)
        self._lately: set[str | None] = {None}  # GPUs and runs that samples named within the hour: nearly always all
        self._lately_since = 0.0

    def charge(self, frame_bytes: int, now: float) -> float:
        """A frame came: for so many seconds the next one is not to be read."""
        return max(self._frames.take(1, now), self._bytes.take(frame_bytes, now))

    def owed_seconds(self, now: float) -> float:
        """The same, where nothing came."""
        return max(self._frames.owed_seconds(now), self._bytes.owed_seconds(now))

    def believed(self, message: _Message, now: float) -> _Message:
        """The message, a sample or hello without runs and engines that there is no room for. Raises MadeUpError."""
        if isinstance(message, wire.Sample):
            return message if self._is_as_ever(message, now) else cast("_Message", self._sample(message, now))
        self._check_names(message, now)
        surplus = self._runs.surplus(runs_in(message), now)
        if not surplus:
            return message
        if isinstance(message, wire.Hello):
            return msgspec.structs.replace(message, run=None)
        raise MadeUpError(f"there is no room for another run; {RUNS_MAX} within a day are enough")

    def _sample(self, sample: wire.Sample, now: float) -> wire.Sample:
        sample = self._without_surplus_engines(sample, now)
        self._check_names(sample, now)
        surplus = self._runs.surplus(runs_in(sample), now)
        taken = renamed(sample, dict.fromkeys(surplus)) if surplus else sample
        self._lately |= gpus_in(taken) | runs_in(taken)
        return taken

    def _without_surplus_engines(self, sample: wire.Sample, now: float) -> wire.Sample:
        """Engines that come up on new ports all day leave no room for more, and the sample is none the less true."""
        if not sample.engines or self._engines.fits(engines_in(sample), now):
            return sample
        room = [one for one in sample.engines if self._engines.takes((name_of(one),), now)]
        return msgspec.structs.replace(sample, engines=tuple(room))

    def _check_names(self, message: wire.AgentMessage, now: float) -> None:
        body = message.body if isinstance(message, wire.Event) else None
        if isinstance(body, wire.RunNamed) and wire.STAND_IN not in body.provisional:
            raise MadeUpError(f'"{body.provisional}" stands for no run: it is the name of one')
        for vocabulary, names, what in (
            (self._gpus, gpus_in(message), "GPUs"),
            (self._cards, cards_in(message), "descriptions of GPUs"),
            (self._engines, engines_in(message), "rollout engines"),
        ):
            if names and not vocabulary.takes(names, now):
                raise MadeUpError(
                    f"there are more than {vocabulary.at_most} {what} within a day; someone makes up names"
                )

    def _is_as_ever(self, sample: wire.Sample, now: float) -> bool:
        """Whether it names nothing that was not looked at within the hour. Every reading comes by here."""
        if now - self._lately_since > LATELY_SECONDS:
            self._lately, self._lately_since = {None}, now
        known = self._lately
        for gpu in sample.gpus:
            if gpu.gpu not in known:
                return False
            for process in gpu.processes or ():
                if process.run not in known:
                    return False
        for reading in sample.torch:
            if reading.run not in known or reading.gpu not in known:
                return False
        return not sample.engines and (sample.host is None or not sample.host.processes)
