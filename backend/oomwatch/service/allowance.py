"""What one node's agent may say: how fast, and how many names. It outlives connections and sessions. PURE.

An honest agent never comes near. One that lies, or has a defect, is slowed down, and what names too much is refused, so
that it can fill neither the memory, nor the database, nor Prometheus.
"""

from collections.abc import Callable, Collection

from oomwatch import wire

# What an agent may have saved up while nobody listened (oomwatch_agent.outbox), and what it may say for ever: ten
# samples a second of sixteen GPUs are 150 KiB, a trainer's log is some lines a second.
FRAMES_SAVED, FRAMES_PER_SECOND = 100_000, 100.0
BYTES_SAVED, BYTES_PER_SECOND = 48 * 2**20, 512 * 2**10

# Names within a day. A GPU counts once for each partition that it is cut into, a run once for each Ray job.
RUNS_MAX = 1024
GPUS_MAX = 2 * wire.GPUS_MAX
ENGINES_MAX = 2 * wire.ENGINES_MAX
RUNS_OF_ALL_MAX = 16_384
DAY_SECONDS = 86_400.0
LATELY_SECONDS = 3600.0

STAND_IN = "job "  # what a name that stands for a run has in it: "SESSION job NUMBER"


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


class Vocabulary:
    """Names that were used within a day, and no more than so many. Times as of Bucket."""

    def __init__(self, at_most: int) -> None:
        self.at_most = at_most
        self._used_at: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._used_at)

    def takes(self, names: Collection[str], now: float) -> bool:
        """Whether there is room for all of them. They count as used."""
        new = sum(name not in self._used_at for name in names)
        if len(self._used_at) + new > self.at_most:
            self._used_at = {name: at for name, at in self._used_at.items() if now - at < DAY_SECONDS}
            new = sum(name not in self._used_at for name in names)
        if new and len(self._used_at) + new > self.at_most:
            return False
        for name in names:
            self._used_at[name] = now
        return True


class Allowance:
    """One node's. `runs_of_all` is that of all nodes together, `steady` a clock that never jumps."""

    def __init__(self, runs_of_all: Vocabulary, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._frames = Bucket(FRAMES_SAVED, FRAMES_PER_SECOND)
        self._bytes = Bucket(BYTES_SAVED, BYTES_PER_SECOND)
        self._runs_of_all = runs_of_all
        self._runs = Vocabulary(RUNS_MAX)
        self._gpus = Vocabulary(GPUS_MAX)
        self._cards = Vocabulary(GPUS_MAX)
        self._engines = Vocabulary(ENGINES_MAX)
        self._lately: set[str | None] = {None}  # GPUs and runs that samples named within the hour: nearly always all
        self._lately_since = 0.0

    def charge(self, frame_bytes: int) -> float:
        """A frame came: for so many seconds the next one is not to be read."""
        now = self._steady()
        return max(self._frames.take(1, now), self._bytes.take(frame_bytes, now))

    def owed_seconds(self) -> float:
        """The same, where nothing came."""
        now = self._steady()
        return max(self._frames.owed_seconds(now), self._bytes.owed_seconds(now))

    def objection(self, message: wire.AgentMessage) -> str | None:
        """Why a message is not taken: it makes up names. None where all is well."""
        body = message.body if isinstance(message, wire.Event) else None
        if isinstance(body, wire.RunNamed) and STAND_IN not in body.provisional:
            return f'"{body.provisional}" stands for no run: it is the name of one'
        now = self._steady()
        if isinstance(message, wire.Sample) and self._is_as_ever(message, now):
            return None
        for vocabulary, names, what in (
            (self._runs, runs_in(message), "runs"),
            (self._runs_of_all, runs_in(message), "runs, of all nodes together"),
            (self._gpus, gpus_in(message), "GPUs"),
            (self._cards, cards_in(message), "descriptions of GPUs"),
            (self._engines, engines_in(message), "rollout engines"),
        ):
            if names and not vocabulary.takes(names, now):
                return f"there are more than {vocabulary.at_most} {what} within a day; someone makes up names"
        if isinstance(message, wire.Sample):
            self._lately |= gpus_in(message) | runs_in(message)
        return None

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


def runs_in(message: wire.AgentMessage) -> set[str]:
    """Every run that a message names."""
    if isinstance(message, wire.Sample):
        told = [one.run for gpu in message.gpus for one in gpu.processes or ()]
        told += [one.run for one in message.torch] + [one.run for one in message.engines]
        told += [one.run for one in (message.host.processes if message.host else None) or ()]
        return {run for run in told if run is not None}
    if isinstance(message, wire.Event):
        provisional = message.body.provisional if isinstance(message.body, wire.RunNamed) else None
        return {run for run in (message.run, provisional) if run is not None}
    return {message.run} if isinstance(message, wire.Hello) and message.run is not None else set()


def gpus_in(message: wire.AgentMessage) -> set[str]:
    """Every label of a GPU."""
    if isinstance(message, wire.Sample):
        return {gpu.gpu for gpu in message.gpus} | {one.gpu for one in message.torch if one.gpu is not None}
    if isinstance(message, wire.Event):
        label = getattr(message.body, "gpu", None)
        return {label} if label is not None else set()
    return {gpu.gpu for gpu in message.facts.gpus} if isinstance(message, wire.Hello) else set()


def cards_in(message: wire.AgentMessage) -> set[str]:
    """What is a label of its own in Prometheus: GPUs, each with what it is."""
    if not isinstance(message, wire.Hello):
        return set()
    return {f"{gpu.gpu}\n{gpu.uuid}\n{gpu.name}\n{gpu.driver_version}" for gpu in message.facts.gpus}


def engines_in(message: wire.AgentMessage) -> set[str]:
    """Every rollout engine."""
    if not isinstance(message, wire.Sample):
        return set()
    return {f"{one.engine} {one.address}" for one in message.engines}
