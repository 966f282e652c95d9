"""Asks every source once an interval and makes wire messages of what they answer.

    ask all -> wait a moment -> one Sample (GPUs, host, engines, torch) and the Events that logs and counters gave

A source that does not answer in time is left alone until it does: its reading comes with a later sample, and if it
takes very long the source is called hung and its GPUs `no_data`. A source that is missing or fails is tried again,
later and later. None of that touches the other sources.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

import msgspec

from oomwatch import wire
from oomwatch_agent.crew import Answer, Ask, Crew
from oomwatch_agent.dedup import Deduplicator
from oomwatch_agent.limits import Limits
from oomwatch_agent.looker import Looker
from oomwatch_agent.sights import gpus_with_peaks, host_with_peaks, of_sample
from oomwatch_agent.source import Found, Reading, Source, SourceMissingError
from oomwatch_agent.who.census import Census
from oomwatch_agent.who.environ import Environments
from oomwatch_agent.who.identify import Environment, Identifier

MISSING_RETRY_SECONDS = 30.0
FAILED_RETRY_FIRST_SECONDS = 1.0
FAILED_RETRY_LONGEST_SECONDS = 60.0
HUNG_AFTER_SECONDS = 5.0  # NVML answers within milliseconds; nvidia-smi on a busy node may take two or three seconds
PATIENCE_RATIO = 0.25  # of the wait: one that takes longer does not hold up the others
QUICK_READS = 30  # after so many, one that was slow (a program, such as nvidia-smi) is taken for quick again
OPEN_HUNG_AFTER_SECONDS = 30.0  # without persistence mode the driver takes seconds a card to start

BUDGET = "cpu budget"  # what the agent says of itself among its sources, while it spares
LIMITS = "limits of the protocol"  # and while something is left out

logger = logging.getLogger(__name__)


class Collected(msgspec.Struct, frozen=True):
    """The messages of one round, not yet numbered."""

    sample: wire.Sample
    events: tuple[wire.Event, ...]


class _Slot:
    """What the sampler knows of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.state: wire.SourceState = "waiting"
        self.detail: str | None = None
        self.facts = wire.NodeFacts()
        self.opened = self.closed = False
        self.speaks = False  # its last answer was a reading: what it says of itself holds
        self.asked_at: float | None = None  # None: it is not busy
        self.was_slow = False  # at its last reading
        self.reads_since_slow = QUICK_READS  # twice in a row: once it is by chance
        self.retry_at = 0.0
        self.failures = 0  # in a row
        self.reopen = False
        self.failed_with: set[type[Exception]] = set()  # kinds of failure whose traceback is in the log

    @property
    def is_quick(self) -> bool:
        return self.reads_since_slow >= QUICK_READS

    def note(self, *, is_slow: bool) -> None:
        """How long it took to read."""
        self.reads_since_slow = 0 if is_slow and self.was_slow else self.reads_since_slow + 1
        self.was_slow = is_slow

    @property
    def is_vital(self) -> bool:
        """Whether it tells of memory itself; nobody knows of one that was never opened."""
        return not self.opened or bool(self.facts.gpus) or self.facts.host is not None

    def listen(self) -> None:
        """It answered: its state is what it says of itself, and ok where it says nothing."""
        own = next((told for told in self.facts.sources if told.name == self.source.name), None)
        self.turn(own.state if own else "ok", own.detail if own else None, speaks=True)

    def turn(self, state: wire.SourceState, detail: str | None, *, speaks: bool = False) -> None:
        """Take a state and, if it is news, tell the log."""
        self.speaks = speaks
        if (state, detail) == (self.state, self.detail):
            return
        self.state, self.detail = state, detail
        level = logging.INFO if state in ("ok", "waiting") else logging.WARNING
        logger.log(level, "source %s: %s%s", self.source.name, state, f" - {detail}" if detail else "")

    def source_facts(self) -> tuple[wire.SourceFacts, ...]:
        """What the source says of itself while it works; what the sampler knows of it otherwise."""
        if self.speaks and self.facts.sources:
            return self.facts.sources
        return (wire.SourceFacts(name=self.source.name[: wire.NAME_CHARS_MAX], state=self.state, detail=self.detail),)


class Sampler:
    """Owns the sources. Used by one thread at a time, which never waits for a source longer than it means to."""

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        run: str | None = None,
        answer_within_seconds: float = 0.4,
        clock: Callable[[], float] = time.monotonic,
        environment: Environment | None = None,
        looker: Looker | None = None,
    ) -> None:
        self._run = run
        self._answer_within_seconds = answer_within_seconds
        self._clock = clock
        self._environment = environment or Environments()
        self._slots = [_Slot(source) for source in sources]
        self._crew = Crew(sources, clock=clock)
        self._looker = looker
        self._lock = threading.Lock()  # of all that is known here, for who asks or puts a sample together
        self._turn: object | None = None  # of the sample that is being collected
        self._others_every, self._round = 1, 0
        self._limits = Limits()
        self._sparing: str | None = None  # why something is read more seldom than was asked
        self._census = Census(run)
        self._identifier = Identifier(self._census)
        self._deduplicator = Deduplicator()
        self._merged_of: object = None  # what the facts were made of
        self.facts = self._merged_facts()

    def collect(self, at: float, *, slow: bool, within_seconds: float | None = None) -> Collected:
        """`collecting`, by a thread that has nothing else to do than to wait."""
        steps = self.collecting(at, slow=slow, within_seconds=within_seconds)
        try:
            while True:
                self._crew.wait(next(steps))
        except StopIteration as end:
            collected: Collected = end.value
            return collected

    def when_answered(self, call: Callable[[], None]) -> None:
        """Call this, from another thread, when those who were asked have answered."""
        self._crew.listener = call

    def collecting(
        self, at: float, *, slow: bool, within_seconds: float | None = None
    ) -> Generator[float, None, Collected]:
        """Ask all, wait a moment (this time `within_seconds`), say what came. `at`: Unix seconds of this sample.

        Yields where there is nothing to do: the seconds after which to go on, or sooner, once there are answers.
        """
        with self._lock:
            now, turn = self._clock(), object()
            self._turn = turn
            self._crew.ask(self._asks(now, slow=slow))
        answered = yield from self._gathering(within_seconds)
        with self._lock:
            self._end_turn(turn)
            return self._collected(answered, at, now)

    @property
    def is_calm(self) -> bool:
        """Whether every source that was asked has answered, and none is one that takes long: who reads waits for it."""
        return all(slot.asked_at is None and slot.is_quick for slot in self._slots)

    def collect_here(self, at: float) -> Collected | None:
        """By a thread that may hang: it reads the sources itself, at less cost than to have them read.

        None: another thread is collecting, or has begun to, since this one was stuck; or a source takes long.
        """
        with self._lock:
            if self._turn is not None or any(slot.asked_at is None and not slot.is_quick for slot in self._slots):
                return None
            now, turn = self._clock(), object()
            self._turn = turn
            asks = self._asks(now, slow=False)
        self._crew.read_here(asks)
        with self._lock:
            if not self._end_turn(turn):
                return None
            return self._collected(list(self._taken()), at, now)

    def _end_turn(self, turn: object) -> bool:
        was_mine = self._turn is turn
        if was_mine:
            self._turn = None
        return was_mine

    def _collected(self, answered: Iterable[tuple[int, Reading]], at: float, now: float) -> Collected:
        # In the order of the sources and not of their answers: of two that tell the same, the first is kept.
        readings = [reading for _, reading in sorted(answered, key=lambda answer: answer[0])]
        self._notice_the_hung(now)
        self._refresh_facts()
        self._census.see((sample for reading in readings for sample in reading.gpus), now)
        self._census.hear((identity for reading in readings for identity in reading.identities), now)
        events = tuple(self._events(readings, at, now))  # before the rest: they name runs
        gpus = tuple(self._gpus(readings))
        host = next((self._census.named_host(reading.host) for reading in reversed(readings) if reading.host), None)
        gpus, host = self._with_peaks(gpus, host)
        engines = tuple(self._engines(readings))
        if engines:  # most samples tell of none
            engines = self._limits.cut("engines", engines, wire.ENGINES_MAX)
        torch = self._limits.cut("processes with a probe", tuple(self._torch(readings)), wire.TORCH_MAX)
        return Collected(wire.Sample(seq=0, at=at, gpus=gpus, host=host, engines=engines, torch=torch), events)

    def spare(self, other_sources_every: int, why: str | None) -> None:
        """From now on read what is neither accelerators nor the host at every so-many-th time only; `why` is told."""
        self._others_every, self._sparing = other_sources_every, why

    def close(self, within_seconds: float = 1.0) -> None:
        """Close every source that is not stuck."""
        if self._looker is not None:
            self._looker.close()
        deadline = time.monotonic() + within_seconds
        self._ask_to_close()
        while self._is_waited_for() and time.monotonic() < deadline:
            self._crew.wait(deadline - time.monotonic())
            for answer in self._crew.take():
                self._slots[answer.index].asked_at = None
            self._ask_to_close()

    def _ask_to_close(self) -> None:
        free = [index for index, slot in enumerate(self._slots) if slot.asked_at is None and not slot.closed]
        for index in free:
            self._slots[index].asked_at, self._slots[index].closed = self._clock(), True
        self._crew.ask([Ask(index=index, close=True) for index in free])
        self._crew.spread()

    # ------------------------------------------------------------ asking

    def _asks(self, now: float, *, slow: bool) -> list[Ask]:
        asks = []
        self._round += 1
        for index, slot in enumerate(self._slots):
            spared = self._round % self._others_every and not slot.is_vital
            if slot.asked_at is None and now >= slot.retry_at and not spared:
                slot.asked_at = now
                asks.append(Ask(index=index, slow=slow, reopen=slot.reopen))
        return asks

    def _gathering(self, within_seconds: float | None) -> Generator[float, None, list[tuple[int, Reading]]]:
        """The readings that arrive in time: those asked for now, and late ones of earlier rounds."""
        within = self._answer_within_seconds if within_seconds is None else within_seconds
        started_at, found = time.monotonic(), list(self._taken())
        for patience in (PATIENCE_RATIO * within, within):
            while self._is_waited_for() and (left := started_at + patience - time.monotonic()) > 0:
                yield left
                found.extend(self._taken())
            self._crew.spread()
        found.extend(self._taken())  # only hung sources are still out: one may have come back
        return found

    def _taken(self) -> Iterator[tuple[int, Reading]]:
        return (reading for answer in self._crew.take() for reading in self._take(answer))

    def _is_waited_for(self) -> bool:
        return any(slot.asked_at is not None and slot.state != "hung" for slot in self._slots)

    def _take(self, answer: Answer) -> Iterator[tuple[int, Reading]]:
        slot = self._slots[answer.index]
        slot.asked_at = None
        if answer.facts is not None:  # it was opened, which may take its time
            slot.opened, slot.facts = True, answer.facts
        elif not isinstance(answer.error, SourceMissingError):  # which is to be opened, too
            slot.note(is_slow=answer.seconds > PATIENCE_RATIO * self._answer_within_seconds)
        if answer.error is not None:
            self._take_error(slot, answer.error)
        elif answer.reading is not None:
            slot.failures, slot.reopen = 0, False
            told = answer.reading.facts
            slot.facts = told or slot.facts
            if told is not None or not slot.speaks:  # else it says of itself what it said
                slot.listen()
            yield answer.index, answer.reading

    def _take_error(self, slot: _Slot, error: Exception) -> None:
        if isinstance(error, SourceMissingError):
            slot.opened = False
            slot.retry_at = self._clock() + MISSING_RETRY_SECONDS
            slot.turn("missing", str(error)[: wire.TEXT_CHARS_MAX])
            return
        # The first failure may be one bad read; from the second on the source is opened afresh.
        slot.failures += 1
        slot.reopen = slot.failures > 1
        wait = min(FAILED_RETRY_LONGEST_SECONDS, FAILED_RETRY_FIRST_SECONDS * 2 ** min(slot.failures - 1, 10))
        slot.retry_at = self._clock() + wait
        if type(error) not in slot.failed_with:
            slot.failed_with.add(type(error))
            logger.warning("source %s failed in an unforeseen way", slot.source.name, exc_info=error)
        slot.turn("failed", f"{type(error).__name__}: {error}"[: wire.TEXT_CHARS_MAX])

    def _notice_the_hung(self, now: float) -> None:
        for slot in self._slots:
            limit = HUNG_AFTER_SECONDS if slot.opened else OPEN_HUNG_AFTER_SECONDS
            if slot.asked_at is not None and now - slot.asked_at >= limit:
                slot.turn("hung", f"no answer for {limit:g} s; it is asked again once it has answered")

    # ------------------------------------------------------------ merging

    def _refresh_facts(self) -> None:
        signs = [(slot.facts, slot.speaks, slot.state, slot.detail) for slot in self._slots]
        said = self._sparing, self._limits.sentence()
        if (signs, said) == self._merged_of:  # as at most samples; of one and the same object that is told at once
            return
        self._merged_of = signs, said
        facts = self._merged_facts()
        if facts != self.facts:
            self.facts = facts
            self._identifier.know(facts)

    def _merged_facts(self) -> wire.NodeFacts:
        gpus = {gpu.gpu: gpu for slot in reversed(self._slots) for gpu in slot.facts.gpus}
        ordered = dict.fromkeys(gpu.gpu for slot in self._slots for gpu in slot.facts.gpus)
        told = (source for slot in self._slots for source in slot.source_facts())
        return wire.NodeFacts(
            gpus=self._limits.cut("GPUs", tuple(gpus[label] for label in ordered), wire.GPUS_MAX),
            host=next((slot.facts.host for slot in self._slots if slot.facts.host is not None), None),
            sources=(*self._said_of_itself(), *told)[: wire.SOURCES_MAX],
        )

    def _said_of_itself(self) -> tuple[wire.SourceFacts, ...]:
        told: tuple[tuple[str, wire.SourceState, str | None], ...] = (
            (BUDGET, "waiting", self._sparing),
            (LIMITS, "failed", self._limits.sentence()),
        )
        return tuple(
            wire.SourceFacts(name=name, state=state, detail=detail[: wire.TEXT_CHARS_MAX])
            for name, state, detail in told
            if detail is not None
        )

    def _gpus(self, readings: Iterable[Reading]) -> Iterator[wire.GpuSample]:
        """One sample a GPU: as read, or `no_data` where its source is stuck, failing or gone."""
        read = {sample.gpu: sample for reading in readings for sample in reading.gpus}
        silent = {gpu.gpu for slot in self._slots if slot.state in _SILENT for gpu in slot.facts.gpus}
        for gpu in self.facts.gpus:
            if gpu.gpu in read:
                yield self._census.named_gpu(read[gpu.gpu])
            elif gpu.gpu in silent:
                yield wire.GpuSample(gpu=gpu.gpu, status="no_data")

    def _with_peaks(
        self, gpus: tuple[wire.GpuSample, ...], host: wire.HostSample | None
    ) -> tuple[tuple[wire.GpuSample, ...], wire.HostSample | None]:
        if self._looker is None:
            return gpus, host
        peaks, now = self._looker.told(of_sample(gpus, host, self.facts)), self._clock()
        return gpus_with_peaks(gpus, peaks, now), host_with_peaks(host, peaks, now)

    def _engines(self, readings: Iterable[Reading]) -> Iterator[wire.EngineSample]:
        for engine in (engine for reading in readings for engine in reading.engines):
            yield msgspec.structs.replace(engine, run=self._census.named(engine.run))

    def _torch(self, readings: Iterable[Reading]) -> Iterator[wire.TorchSample]:
        for sample in (sample for reading in readings for sample in reading.torch):
            yield self._identifier.place_torch(msgspec.structs.replace(sample, run=sample.run or self._run))

    def _events(self, readings: Iterable[Reading], at: float, now: float) -> Iterator[wire.Event]:
        for found in (found for reading in readings for found in reading.found):
            if self._deduplicator.fresh(found, now):
                yield self._event(self._identifier.place(found, now, self._environment), at)

    def _event(self, found: Found, at: float) -> wire.Event:
        return wire.Event(
            seq=0,
            at=at if found.at is None else found.at,
            body=found.body,
            run=self._run or found.run,
            origin=found.origin,
            backlog=found.backlog,
        )


_SILENT = frozenset({"hung", "failed", "missing"})
