"""Looks at memory between two samples, as often as it could run full, and hurries the sample where one finds news.

One thread for all sources that can look (`source.Looking`). A look may hang in a driver like any other call: then the
thread is left behind and another takes over, which passes over what the next reading has found hung.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from oomwatch_agent.nearing import NEVER, Nearing, Peak, bounded
from oomwatch_agent.source import Looking, Sight, Source

EARLY_SECONDS = 0.02  # what a look may come early by: a sample is seldom taken to the millisecond
CLOCK_SECONDS = 0.001  # what a wait may end early by
LONG_SECONDS = 0.1  # who looks for so long is not to be relied on for anything else
STUCK_SECONDS = 2.0  # a look takes a millisecond; each successor is given twice as long as the one before


class Paces:
    """How often to look. `fastest_seconds` at or above the interval: never."""

    def __init__(self, interval_seconds: float, fastest_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self.fastest_seconds = fastest_seconds
        self.ease = 1.0  # every pause is so many times longer: what the agent's CPU budget asks for

    @property
    def never(self) -> bool:
        return self.fastest_seconds >= self.interval_seconds

    def pause(self, wanted_seconds: float, looks_an_interval: int) -> float | None:
        """The time to the next look; None: the next sample comes first."""
        slowest = self.interval_seconds / looks_an_interval
        seconds = self.ease * bounded(wanted_seconds, self.fastest_seconds, slowest)
        return seconds if seconds < self.interval_seconds else None


class _Eye:
    """A source that can look, what it saw last, and when it is to look again."""

    def __init__(self, source: Looking, now: float) -> None:
        self.source = source
        self.look = source.look
        self.looks_an_interval = source.looks_an_interval  # as of the last sample
        self.looked_at = now
        self.sights: Sequence[Sight] | None = None  # of the last look; None: what is known of them has changed since
        self.memories: Sequence[Nearing] = ()
        self.due_at = now  # of the next look; NEVER: not before the next sample
        self._still_at: float | None = None  # of the last look in which nothing had changed

    def take(self, sights: Sequence[Sight], memory_of: Callable[[str], Nearing], now: float) -> bool:
        """What a look saw; whether any of it is news. Of most looks the source gives the same object as before."""
        if sights is self.sights:
            self._still_at = now
            return False
        self.forget(self.memories)
        self.sights, self.memories = sights, [memory_of(one.memory) for one in sights]
        seen = zip(self.memories, sights, strict=True)
        news = [memory.look(one.used_bytes, one.usable_bytes, now) for memory, one in seen]
        return any(news)

    def forget(self, changed: Iterable[Nearing]) -> None:
        """Of some of these memories more or less is in use than at the last look."""
        for memory in changed:
            if memory in self.memories:
                self.sights = None
                if self._still_at is not None:
                    memory.stood_still(self._still_at)

    def plan(self, paces: Paces, told_at: float, now: float) -> None:
        """After a look, or a sample: when to look again. `told_at` is the time of the last sample."""
        wanted = NEVER
        for one in self.memories:
            if one.worst and (seconds := one.seconds_between_looks(now)) < wanted:
                wanted = seconds
        pause = paces.pause(wanted, self.looks_an_interval)
        if pause is None:
            self.due_at = NEVER
            return
        # A sample is as good as a look, and to wake just after one, to no purpose, costs as much as a look.
        due, sample_at = max(told_at, self.looked_at) + pause, told_at + paces.interval_seconds
        self.due_at = due if due < sample_at else max(due, sample_at + pause)


class Looker:
    """Knows every memory that is seen. `hurry` is called from its thread; `told` by the thread that takes samples."""

    def __init__(
        self,
        sources: Sequence[Source],
        paces: Paces,
        hurry: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._eyes = [_Eye(source, clock()) for source in sources if isinstance(source, Looking)]
        self._paces = paces
        self._hurry = hurry
        self._clock = clock
        self._lock = threading.Lock()  # of the memories
        self._memories: dict[str, Nearing] = {}
        self._told_at = clock()
        self._began_at: float | None = None  # the look that goes on
        self._patience_seconds = STUCK_SECONDS
        self._bell = threading.Lock()  # of the thread that looks: held until it is to look at the clock again
        self._wakes_at = NEVER  # by itself
        self._thread: threading.Thread | None = None
        self._errand: Callable[[], None] | None = None  # what else this thread does
        self._errand_at = NEVER

    @property
    def is_at_work(self) -> bool:
        """Whether there is a thread that looks, and no look of it takes long."""
        return self._thread is not None and not self._looks_since(LONG_SECONDS, self._clock())

    def expect(self, due_at: float | None, errand: Callable[[], None] | None = None) -> None:
        """Have this done then, by the thread that looks; after an interval again, unless it is told better by then.

        It must not raise. It may hang: then call `relieve`.
        """
        self._errand, self._errand_at = errand, NEVER if due_at is None else due_at
        if self._errand_at + CLOCK_SECONDS < self._wakes_at:
            _ring(self._bell)

    def relieve(self) -> None:
        """The thread is stuck: another one looks from now on; where it is in a look, once that has taken too long.

        The next look may hang as well, so each is given twice as long as the one before, and threads do not pile up.
        """
        self.expect(None)
        if self._thread is not None and self._began_at is None:
            self._start()

    def told(self, sights: Sequence[Sight]) -> Mapping[str, Peak]:
        """A sample tells these; gives the peaks that only looks saw. Starts the thread, and replaces a stuck one."""
        self._told_at = now = self._clock()
        with self._lock:
            seen = [(self._memories.get(one.memory) or self._memory(one.memory), one) for one in sights]
            changed = [memory for memory, one in seen if memory.used_bytes != one.used_bytes]
            for eye in self._eyes:
                eye.forget(changed)
            peaks: dict[str, Peak] = {}
            for memory, one in seen:
                peak = memory.tell(one.used_bytes, one.usable_bytes, now)
                if peak is not None:
                    peaks[one.memory] = peak
        for eye in self._eyes:
            eye.looks_an_interval = eye.source.looks_an_interval
            eye.plan(self._paces, now, now)
        self._see_to_the_thread(now)
        return peaks

    def close(self) -> None:
        """End the thread, once its look is over."""
        self._thread, self._eyes = None, []
        _ring(self._bell)

    def _memory(self, memory: str) -> Nearing:
        known = self._memories.get(memory)
        if known is None:
            known = self._memories[memory] = Nearing()
        return known

    def _see_to_the_thread(self, now: float) -> None:
        stuck = self._looks_since(self._patience_seconds, now)
        if not self._eyes or self._paces.never or (self._thread is not None and not stuck):
            return
        if stuck:
            self._patience_seconds *= 2
        self._start()

    def _looks_since(self, seconds: float, now: float) -> bool:
        """Whether the look that goes on, if any does, has taken so long."""
        began_at = self._began_at
        return began_at is not None and now - began_at >= seconds

    def _start(self) -> None:
        self._began_at = None
        before, bell = self._bell, threading.Lock()  # of its own: who was left behind must not hear it in its place
        bell.acquire()
        self._bell = bell
        self._thread = threading.Thread(target=self._work, args=(bell,), name="oomwatch looks", daemon=True)
        self._thread.start()
        _ring(before)  # who only waits, ends

    def _work(self, bell: threading.Lock) -> None:
        me = threading.current_thread()
        while self._thread is me:
            bell.acquire(timeout=self._seconds_to_next())
            if self._thread is not me:
                return
            now = self._clock()
            if self._errand_at <= now + CLOCK_SECONDS:
                self._run_errand()
                now = self._clock()
            for eye in self._eyes:
                if eye.due_at <= now + EARLY_SECONDS and self._thread is me:
                    self._look(eye, me)

    def _run_errand(self) -> None:
        errand, due_at = self._errand, self._errand_at
        if errand is not None and due_at < NEVER:  # it may have been called off in this moment
            self._errand_at = due_at + self._paces.interval_seconds
            errand()

    def _look(self, eye: _Eye, me: threading.Thread) -> None:
        eye.looked_at = self._began_at = self._clock()
        try:
            sights = eye.look()
        except Exception:  # whatever it is, the next reading meets it too
            sights = ()
        if self._thread is not me:  # this look hung, and another thread has taken over; or all is closed
            return
        self._began_at, now = None, self._clock()
        with self._lock:
            is_news = eye.take(sights, self._memory, now)
        eye.plan(self._paces, self._told_at, now)
        if is_news:
            self._hurry()

    def _seconds_to_next(self) -> float:
        """Until a look is due; where none is before the next sample, so long that the sample has come by then."""
        self._wakes_at = NEVER  # first: who changes what is read here from now on sees it, and rings
        now, due_at = self._clock(), self._errand_at
        for eye in self._eyes:
            due_at = min(due_at, eye.due_at)
        self._wakes_at = min(now + self._paces.interval_seconds, max(now, due_at))
        return self._wakes_at - now


def _ring(bell: threading.Lock) -> None:
    with contextlib.suppress(RuntimeError):  # it is ringing still, or there is no thread
        bell.release()
