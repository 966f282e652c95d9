"""The names that agents use: which ones a message has, and whether there is room for more. PURE.

Times are of a clock that never jumps.
"""

from collections.abc import Collection

from oomwatch import wire

# Names within a day. A GPU counts once for each partition that it is cut into, a run once more for each Ray job.
RUNS_MAX = 1024
GPUS_MAX = 2 * wire.GPUS_MAX
ENGINES_MAX = 2 * wire.ENGINES_MAX
RUNS_OF_ALL_MAX = 16_384
RUNS_SURE = 32  # sixteen Ray jobs a day: these a node has though others use up what there is for all
DAY_SECONDS = 86_400.0
LOOK_SECONDS = 60.0  # so often it is looked which names are of yesterday, and no more often by whoever lies


class Vocabulary:
    """Names that were used within a day, and no more than so many."""

    def __init__(self, at_most: int) -> None:
        self.at_most = at_most
        self._used_at: dict[str, float] = {}
        self._looked_at = float("-inf")

    def __len__(self) -> int:
        return len(self._used_at)

    def fits(self, names: Collection[str], now: float) -> bool:
        """Whether there is room for all of them."""
        new = sum(name not in self._used_at for name in names)
        if new and len(self) + new > self.at_most:
            self.forget(now)
            new = sum(name not in self._used_at for name in names)
        return not new or len(self) + new <= self.at_most

    def use(self, names: Collection[str], now: float) -> None:
        """They are known from now on, whether there was room or not."""
        for name in names:
            self._used_at[name] = now

    def takes(self, names: Collection[str], now: float) -> bool:
        """Whether there is room for all of them; if so, they count as used."""
        if not self.fits(names, now):
            return False
        self.use(names, now)
        return True

    def forget(self, now: float) -> None:
        """What was not used for a day."""
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._used_at = {name: at for name, at in self._used_at.items() if now - at < DAY_SECONDS}


class Runs:
    """Those that one node names, of those that all nodes do: where these are too many, who has most gets no more."""

    def __init__(self, of_all: Vocabulary, at_most: int = RUNS_MAX, sure: int = RUNS_SURE) -> None:
        self._of_all = of_all
        self._own = Vocabulary(at_most)
        self._sure = sure

    def surplus(self, names: Collection[str], now: float) -> list[str]:
        """Those that there is no room for. The others count as used."""
        return [name for name in sorted(names) if not self._takes(name, now)]

    def _takes(self, name: str, now: float) -> bool:
        one = (name,)
        if not self._own.fits(one, now) or not (self._of_all.fits(one, now) or self._has_few(now)):
            return False
        self._own.use(one, now)
        self._of_all.use(one, now)
        return True

    def _has_few(self, now: float) -> bool:
        if len(self._own) >= self._sure:
            self._own.forget(now)
        return len(self._own) < self._sure


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
    return {name_of(one) for one in message.engines}


def name_of(engine: wire.EngineSample) -> str:
    """What tells a rollout engine from the others of its node."""
    return f"{engine.engine} {engine.address}"
