"""What the agent spares when reading costs more CPU than it may use. PURE: CPU and time are arguments.

First the slow reads become fewer (process tables, dear on a large node: what they tell changes slowly), then the looks
between samples as well. There are none left only once the slow reads have given what they can and the sources that are
neither accelerators nor the host are read more seldom too: looks alone see what fills a card within a second. At last
those sources give the rest. Device and host memory are read at every interval, whatever it costs: they are what the
agent is for.

What is used is judged from one slow read to the next. Of a shorter time, the one with the slow read in it would cost as
much as before, however seldom that is, and all else would be spared in its place.
"""

from typing import NamedTuple

WINDOW_SECONDS = 10.0  # as long as the slow reads are apart where none is spared
CALM_WINDOWS = 6  # so many in a row below this share of the budget before a step is taken back
CALM_RATIO = 0.6


class Spared(NamedTuple):
    """How many times longer each pause is than it was asked for."""

    looks: int = 1
    slow_reads: int = 1
    other_sources: int = 1


# Each step takes from what costs least to go without. With looks at a quarter of their pace a memory is looked at only
# while it could soon be full: at the usual pace the next sample comes first.
STEPS = (
    Spared(),
    Spared(slow_reads=2),
    Spared(looks=2, slow_reads=2),
    Spared(looks=2, slow_reads=4),
    Spared(looks=4, slow_reads=4),
    Spared(looks=4, slow_reads=6, other_sources=2),
    Spared(looks=1000, slow_reads=6, other_sources=2),
    Spared(looks=1000, slow_reads=6, other_sources=5),
    Spared(looks=1000, slow_reads=6, other_sources=10),
)


class Budget:
    """`ratio`: of one core, over a minute; 0 is no limit. `now` is by a clock that never jumps."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio
        self._step = 0
        self._calm = 0
        self._seen_at: float | None = None
        self._began: tuple[float, float] | None = None  # now and CPU seconds, of what is yet to be judged

    @property
    def spared(self) -> Spared:
        return STEPS[self._step]

    def is_due(self, now: float) -> bool:
        """Whether `see` would learn anything now."""
        return self._ratio > 0 and (self._seen_at is None or now - self._seen_at >= WINDOW_SECONDS)

    def see(self, cpu_seconds: float, now: float) -> bool:
        """Take in the CPU that this process has used since it started. True: what is spared has changed.

        What came before the first call, the start, does not count.
        """
        if not self.is_due(now):
            return False
        self._seen_at = now
        if self._began is None:
            self._began = (now, cpu_seconds)
            return False
        passed, used = now - self._began[0], cpu_seconds - self._began[1]
        whole = WINDOW_SECONDS * self.spared.slow_reads
        if passed < whole and used <= self._ratio * whole:
            return False
        self._began = (now, cpu_seconds)
        return self._judge(used / passed)

    def _judge(self, used_ratio: float) -> bool:
        before = self._step
        if used_ratio > self._ratio:
            self._step, self._calm = min(self._step + 1, len(STEPS) - 1), 0
        else:
            self._calm = self._calm + self.spared.slow_reads if used_ratio < CALM_RATIO * self._ratio else 0
        if self._calm >= CALM_WINDOWS:
            self._step, self._calm = max(0, self._step - 1), 0
        return self._step != before

    def sentence(self) -> str | None:
        """What is spared and why, for people; None while nothing is."""
        if not self._step:
            return None
        spared, what = self.spared, list[str]()
        if spared.slow_reads > 1:
            what.append(f"processes are listed {spared.slow_reads} times more seldom")
        if spared.looks == STEPS[-1].looks:
            what.append("no looks between samples")
        elif spared.looks > 1:
            what.append(f"looks between samples are {spared.looks} times more seldom")
        if spared.other_sources > 1:
            what.append(f"logs, probes and engines are read at one sample of {spared.other_sources}")
        return (
            f"reading takes more than the agent's CPU budget of {100 * self._ratio:g} % of a core: {', '.join(what)}; "
            "raise it with --cpu-budget"
        )
