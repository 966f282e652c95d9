"""How often a run has started, and how often it has worked again.

What was judged of one start says nothing of the next. A start is seen by its first step (core/steps.py) or, after a
failure, by its configuration, which comes minutes earlier. A run works again once that start has finished a step. One
that dies before it does has failed once, however often it is started: unless it is configured anew, for then somebody
has tried something else.
"""

from typing import Literal, NamedTuple

# What of a run ends an alert: that it starts again or, for a failure, that it works again. None: the run has no say.
RunNews = Literal["starts", "works"]
LAST_STEPS = 1  # so many steps may still be told after the failure that they end with


class Lives(NamedTuple):
    """How often so far."""

    starts: int = 0
    works: int = 0


class LifeCount:
    """One run's."""

    def __init__(self) -> None:
        self.now = Lives()
        self.is_starting = False  # it was started again, and has not finished a step
        self.started_at = self.worked_at = float("-inf")  # again
        self._stepped = False  # since it started
        self._steps_since_failure: int | None = None  # None: it has not failed

    @property
    def has_failed(self) -> bool:
        """Whether it ran out of memory, and was not seen to go on."""
        return self._steps_since_failure is not None and self._steps_since_failure <= LAST_STEPS

    def fail(self) -> None:
        """It ran out of memory. Not every run dies of it."""
        self._steps_since_failure = 0

    def configure(self, at: float, *, anew: bool) -> None:
        """It tells its configuration; `anew`: another one than before."""
        if not self.has_failed:
            return
        if self._stepped:
            self._start(at)
            self.is_starting = True
        if anew:
            self._work(at)

    def finish_step(self, at: float, *, resumed: bool) -> None:
        """`resumed`: it is the first one of a start."""
        if resumed and not self.is_starting:
            self._start(at)
        if resumed or self.is_starting:
            self._work(at)
            self._steps_since_failure = None
        self.is_starting, self._stepped = False, True
        if self._steps_since_failure is not None:
            self._steps_since_failure += 1

    def before(self, at: float) -> Lives:
        """How often it had been at a time, as far as that is known: of each, the last one counts."""
        return Lives(self.now.starts - (self.started_at > at), self.now.works - (self.worked_at > at))

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self.started_at += seconds
        self.worked_at += seconds

    def _start(self, at: float) -> None:
        self.now = self.now._replace(starts=self.now.starts + 1)
        self.started_at, self._stepped = at, False

    def _work(self, at: float) -> None:
        self.now = self.now._replace(works=self.now.works + 1)
        self.worked_at = at
