"""When the sources are read, and by which thread.

While all is well the thread that looks at memory reads them too: it is awake anyway, nobody has to be woken up in order
to read, or to hear that all was read, and what a sample is put together from lies in the processor's caches still. But
it may hang in any of them. So the event loop, which must not, has an alarm set for a little later, and takes the sample
itself where none has come; so it does from the start where that thread would be kept from its looks: at slow reads, and
as long as any source is late or hangs, or takes long each time, as a maker's program does: that one is asked at its
own pace.
"""

import asyncio
import contextlib
import enum
import functools
import time
from collections.abc import Callable

from oomwatch_agent.looker import Looker
from oomwatch_agent.pace import Pace
from oomwatch_agent.sampler import PATIENCE_RATIO, Collected, Sampler


class _Why(enum.Enum):
    """What woke the loop."""

    DUE = "it is time for a sample"
    LATE = "it was time for one, and none has come"
    NEWS = "a look saw what cannot wait"


class Rounds:
    """Takes samples until it is stopped, and gives each to `take_in`, in the event loop.

    All of this is for the loop, but for `hurry`.
    """

    def __init__(
        self,
        sampler: Sampler,
        looker: Looker,
        pace: Pace,
        *,
        answer_within_seconds: float,
        may_be_slow: Callable[[], bool],
        take_in: Callable[[Collected], None],
    ) -> None:
        self._sampler = sampler
        self._looker = looker
        self._pace = pace
        self._answer_within_seconds = answer_within_seconds
        self._may_be_slow = may_be_slow
        self._take_in = take_in
        self._loop = asyncio.get_running_loop()
        self._answers = asyncio.Event()  # of the sources
        self._woken = asyncio.Event()
        self._why = _Why.NEWS
        self._alarm: asyncio.TimerHandle | None = None
        self._stopped = False
        sampler.when_answered(lambda: self._in_loop(self._answers.set))

    async def begin(self, within_seconds: float) -> None:
        """The first sample: at once, and with time for the sources to open."""
        await self._take(slow=self._pace.take(time.time()), within_seconds=within_seconds)

    async def run(self) -> None:
        """Until it is stopped."""
        self._plan()
        while await self._is_woken():
            why, self._why = self._why, _Why.NEWS
            if why is _Why.NEWS:
                await self._take(slow=False)
            elif why is _Why.DUE:
                await self._take(slow=self._pace.take(time.time()))
            else:
                await self._take_over()
            self._plan()

    def stop(self) -> None:
        """No sample is taken in from now on."""
        self._stopped = True
        self._looker.expect(None)
        if self._alarm is not None:
            self._alarm.cancel()
        self._woken.set()

    def hurry(self) -> None:
        """A look saw what cannot wait. Called by the thread that looks."""
        if not self._take_here(hurried=True):
            self._in_loop(self._woken.set)

    # ------------------------------------------------------------ by the loop

    def _plan(self) -> None:
        """Until the next sample: who takes it, and when to look after it."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._stopped:
            return
        now = time.time()
        seconds = self._pace.seconds_to_next(now)
        if self._looker.is_at_work and self._sampler.is_calm and not self._pace.next_is_slow(now):
            self._looker.expect(time.monotonic() + seconds, self._take_due)
            self._alarm = self._loop.call_later(seconds + self._patience_seconds, self._wake, _Why.LATE)
        else:
            self._looker.expect(None)
            self._alarm = self._loop.call_later(seconds, self._wake, _Why.DUE)

    @property
    def _patience_seconds(self) -> float:
        return PATIENCE_RATIO * self._answer_within_seconds

    def _wake(self, why: _Why) -> None:
        self._why = why
        self._woken.set()

    async def _is_woken(self) -> bool:
        await self._woken.wait()
        self._woken.clear()
        return not self._stopped

    async def _take_over(self) -> None:
        """The thread that looks is stuck: another looks from now on, and what has answered in time is told in time."""
        self._looker.relieve()
        self._pace.take(time.time())
        await self._take(slow=False, within_seconds=self._answer_within_seconds - self._patience_seconds)

    async def _take(self, *, slow: bool, within_seconds: float | None = None) -> None:
        slow = slow and self._may_be_slow()
        steps = self._sampler.collecting(time.time(), slow=slow, within_seconds=within_seconds)
        try:
            while True:
                await self._answered(next(steps))
        except StopIteration as last:
            self._keep(last.value)

    async def _answered(self, seconds: float) -> None:
        """Until the sources have answered, at most so long. (`wait_for` would make a task each time.)"""
        over = self._loop.call_later(seconds, self._answers.set)
        await self._answers.wait()
        self._answers.clear()
        over.cancel()

    def _taken(self, collected: Collected, *, hurried: bool) -> None:
        """The thread that looks has taken a sample."""
        if not hurried:
            self._pace.take(collected.sample.at)
        self._keep(collected)
        self._plan()

    def _keep(self, collected: Collected) -> None:
        if not self._stopped:
            self._take_in(collected)

    # ------------------------------------------------------------ by any thread

    def _take_due(self) -> None:
        self._take_here(hurried=False)

    def _take_here(self, *, hurried: bool) -> bool:
        """Read the sources in this thread, which may hang in it; whether a sample came of it."""
        collected = self._sampler.collect_here(time.time())
        if collected is None:
            return False
        self._in_loop(functools.partial(self._taken, collected, hurried=hurried))
        return True

    def _in_loop(self, call: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            self._loop.call_soon_threadsafe(call)
