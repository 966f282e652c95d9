"""How much CPU the reading of logs may take: what the rest of the agent leaves of its budget. PURE: CPU and time are
arguments.

A log that is followed costs next to nothing. One of gigabytes that was there before the agent costs a tenth of a
millisecond a step, here and where its events are sent, and would take the CPU from the training beside it for minutes.
So all that the process uses is taken from the purse, and old lines wait while it is empty. New lines are why the agent
is here: they are read at once, within a bound of their own, and old ones wait the longer.
"""

from collections.abc import Callable

RATIO = 0.9  # of the budget: with the rest of it, nothing else is spared for a log's sake
GIFT_SECONDS = 120.0  # of budget, once: to read what is there belongs to the start. 1.1 s of CPU are 80 MB of usual log
MOST_SECONDS = 5.0  # of budget, saved up or owed
POLL_SECONDS = 0.1  # of CPU in one reading of one source, whatever is in the purse
HUNGRY_POLLS = 10  # readings in which nothing old was read, after which one helping is read all the same


class Purse:
    """What there is to spend. `ratio`: the agent's budget as a share of a core; 0 is no limit. `cpu`: seconds that this
    process has used; `clock` never jumps. Used by one thread at a time; where two share it, one may read a little too
    much."""

    def __init__(self, ratio: float, *, cpu: Callable[[], float], clock: Callable[[], float]) -> None:
        self._ratio = RATIO * ratio
        self.cpu = cpu
        self._clock = clock
        self._left = 0.0  # CPU seconds; below 0: owed
        self._gift = GIFT_SECONDS * self._ratio
        self._seen: tuple[float, float] | None = None  # time and CPU when it was last filled

    @property
    def has_limit(self) -> bool:
        """Whether anything must be spared at all."""
        return self._ratio > 0

    @property
    def given_seconds(self) -> float:
        """CPU of the start's, which is no part of the budget, used until now."""
        return GIFT_SECONDS * self._ratio - self._gift

    def fill(self) -> float:
        """Take in what has come, and what was used, since it was last filled. Gives the CPU seconds of now."""
        now, cpu = self._clock(), self.cpu()
        then, cpu_then = self._seen or (now, cpu)
        self._seen = (now, cpu)
        self._left += self._ratio * (now - then) - (cpu - cpu_then)
        from_gift = min(self._gift, max(0.0, -self._left))
        self._gift -= from_gift
        most = MOST_SECONDS * self._ratio
        self._left = max(-most, min(most, self._left + from_gift))
        return cpu

    def is_spent(self, cpu: float) -> bool:
        """Whether nothing is left, with `cpu` seconds used until now."""
        filled_at = self._seen[1] if self._seen else cpu
        return cpu - filled_at >= self._left + self._gift


class Spender:
    """One source that reads logs at the cost of a purse, which others may use, too: its hunger is its own."""

    def __init__(self, purse: Purse) -> None:
        self._purse = purse
        self._began_at = 0.0  # CPU when this reading began
        self._refused = 0  # times since old lines were last read
        self.is_held_back = False  # old lines had to wait in this reading for want of CPU

    def begin(self) -> None:
        """A reading begins."""
        self._began_at = self._purse.fill()
        self.is_held_back = False

    def allows(self, *, old: bool) -> bool:
        """Whether another helping may be read: of lines that were there before the agent, or of new ones.

        Who is told no asks no more for such lines in this reading.
        """
        if not self._purse.has_limit:
            return True
        cpu = self._purse.cpu()
        in_time = cpu - self._began_at < POLL_SECONDS
        if not old:
            return in_time
        self.is_held_back = self._purse.is_spent(cpu)
        if (in_time and not self.is_held_back) or self._refused >= HUNGRY_POLLS:
            self._refused = 0
            return True
        self._refused += 1
        return False
