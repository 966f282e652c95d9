"""The sampler asks sources that answer, stall, fail and come back, and makes one sample whatever they do."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from oomwatch import wire
from oomwatch_agent.hang_guard import HangGuard, Round
from oomwatch_agent.looker import Looker, Paces
from oomwatch_agent.sampler import LIMITS, QUICK_READS, Collected, Sampler
from oomwatch_agent.source import Found, Identity, KnownBy, Reading, Sight, SourceMissingError

GIB = 1024**3
AT = 1_790_000_000.0
DEADLINE_SECONDS = 10.0
INTERVAL_SECONDS = 0.02  # of the looks between samples


class FakeClock:
    """Stands until a test moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeSource:
    """Two GPUs; does as it is told: answers, raises, or blocks until it is let go."""

    def __init__(self, name: str = "nvml", *, gpus: int = 2) -> None:
        self.name = name
        self.facts = wire.NodeFacts(
            gpus=tuple(
                wire.GpuFacts(gpu=str(gpu), uuid=f"GPU-{gpu}", name="H100", total_bytes=80 * GIB) for gpu in range(gpus)
            )
        )
        self.reading = Reading(gpus=tuple(wire.GpuSample(gpu=str(gpu), used_bytes=GIB) for gpu in range(gpus)))
        self.open_error: Exception | None = None
        self.read_error: Exception | None = None
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.may_open = threading.Event()
        self.may_open.set()
        self.opened = self.closed = self.reads = 0
        self.slow: list[bool] = []
        self.threads: set[int] = set()

    def open(self) -> wire.NodeFacts:
        self.opened += 1
        self.threads.add(threading.get_ident())
        assert self.may_open.wait(DEADLINE_SECONDS)
        if self.open_error is not None:
            raise self.open_error
        return self.facts

    def read(self, *, slow: bool) -> Reading:
        self.reads += 1
        self.slow.append(slow)
        self.threads.add(threading.get_ident())
        assert self.may_answer.wait(DEADLINE_SECONDS)
        if self.read_error is not None:
            raise self.read_error
        return self.reading

    def close(self) -> None:
        self.closed += 1


class FakeHost(FakeSource):
    """A host instead of GPUs."""

    def __init__(self) -> None:
        super().__init__("host", gpus=0)
        self.facts = wire.NodeFacts(host=wire.HostFacts(memory_total_bytes=100 * GIB))
        self.reading = Reading(host=wire.HostSample(memory_used_bytes=40 * GIB))


class LookingSource(FakeSource):
    """Sees its first card as full as it is told to."""

    looks_an_interval = 4

    def __init__(self) -> None:
        super().__init__()
        self.used_bytes = GIB
        self.looks = 0
        self.look_error: Exception | None = None

    def look(self) -> list[Sight]:
        self.looks += 1
        if self.look_error is not None:
            raise self.look_error
        return [Sight("0", self.used_bytes, 80 * GIB)]


class SteppingSource(FakeSource):
    """Is read in steps; its first card hangs while it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self._guard: HangGuard[str, wire.GpuSample] = HangGuard(INTERVAL_SECONDS)
        self.names: list[str] = []  # of the threads that asked the second card

    def begin(self) -> Round[str, wire.GpuSample]:
        return self._guard.begin(["0", "1"], self._ask)

    def end(self, begun: Round[str, wire.GpuSample]) -> Reading:
        answers = self._guard.end(begun)
        return Reading(gpus=tuple(answers.get(gpu) or wire.GpuSample(gpu=gpu, status="no_data") for gpu in ("0", "1")))

    def _ask(self, gpu: str) -> wire.GpuSample:
        if gpu == "0":
            assert self.may_answer.wait(DEADLINE_SECONDS)
        else:
            self.names.append(threading.current_thread().name)
        return wire.GpuSample(gpu=gpu, used_bytes=GIB)


Make = Callable[..., Sampler]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make(clock: FakeClock) -> Iterator[Make]:
    """Samplers that are closed, and whose blocked sources are let go, at the end of the test."""
    made: list[tuple[Sampler, tuple[FakeSource, ...]]] = []

    def make_one(
        *sources: FakeSource,
        run: str | None = None,
        within: float = DEADLINE_SECONDS,
        hurry: Callable[[], None] | None = None,
    ) -> Sampler:
        sampler = Sampler(
            sources,
            run=run,
            answer_within_seconds=within,
            clock=clock,
            environment=lambda _: None,
            looker=Looker(sources, Paces(INTERVAL_SECONDS, INTERVAL_SECONDS / 10), hurry) if hurry else None,
        )
        made.append((sampler, sources))
        return sampler

    yield make_one
    for sampler, sources in made:
        for source in sources:
            source.may_answer.set()
            source.may_open.set()
        sampler.close()


def _collect(sampler: Sampler, *, slow: bool = False) -> Collected:
    return sampler.collect(AT, slow=slow)


def _collect_until(sampler: Sampler, done: Callable[[Collected], bool]) -> Collected:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not done(collected := _collect(sampler)):
        assert time.monotonic() < deadline
    return collected


def _states(sampler: Sampler) -> dict[str, str]:
    return {source.name: source.state for source in sampler.facts.sources}


def _detail(sampler: Sampler) -> str:
    return sampler.facts.sources[0].detail or ""


def _statuses(collected: Collected) -> dict[str, str]:
    return {gpu.gpu: gpu.status for gpu in collected.sample.gpus}


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.002)


# ------------------------------------------------------- between two readings


def test_a_look_that_finds_a_steep_rise_hurries_the_sample(make: Make) -> None:
    hurried = threading.Event()
    source = LookingSource()
    sampler = make(source, FakeHost(), hurry=hurried.set)
    _collect(sampler)
    _until(lambda: source.looks > 2)
    assert not hurried.is_set()
    source.used_bytes = 6 * GIB
    assert hurried.wait(DEADLINE_SECONDS)


def test_what_only_a_look_saw_goes_along_with_the_next_sample_and_with_no_other(make: Make) -> None:
    hurried = threading.Event()
    source = LookingSource()
    sampler = make(source, hurry=hurried.set)
    assert _collect(sampler).sample.gpus[0].used_peak_bytes is None
    source.used_bytes = 70 * GIB
    assert hurried.wait(DEADLINE_SECONDS)
    source.used_bytes = GIB
    looks = source.looks
    _until(lambda: source.looks > looks + 1)
    first, second = _collect(sampler).sample, _collect(sampler).sample
    assert [gpu.used_peak_bytes for gpu in first.gpus] == [70 * GIB, None]
    assert 0.0 <= (first.gpus[0].used_peak_seconds_ago or 0.0) < DEADLINE_SECONDS
    assert [gpu.used_bytes for gpu in first.gpus] == [GIB, GIB], "the sample itself stays what was read"
    assert second.gpus[0].used_peak_bytes is None


def test_a_look_that_fails_costs_nothing(make: Make) -> None:
    source = LookingSource()
    source.look_error = OSError("the driver")
    sampler = make(source, hurry=lambda: None)
    _collect(sampler)
    _until(lambda: source.looks > 2)
    assert _statuses(_collect(sampler)) == {"0": "ok", "1": "ok"}
    assert _states(sampler) == {"nvml": "ok"}


# ---------------------------------------------------------------- all is well


def test_the_metrics_of_every_engine_are_in_the_sample(make: Make) -> None:
    engines = FakeSource("engines", gpus=0)
    engines.reading = Reading(engines=(wire.EngineSample(engine="vllm", address="127.0.0.1:8000"),))
    more = FakeSource("more engines", gpus=0)
    more.reading = Reading(engines=(wire.EngineSample(engine="sglang", address="127.0.0.1:30000"),))
    sample = _collect(make(FakeSource(), engines, more)).sample
    assert [engine.engine for engine in sample.engines] == ["vllm", "sglang"]


def test_what_a_message_has_no_room_for_is_left_out_and_said(make: Make) -> None:
    """A server refuses a sample with more: then nothing of the node would be seen."""
    probes = FakeSource("probe", gpus=0)
    probes.reading = Reading(torch=tuple(wire.TorchSample(pid=pid + 1) for pid in range(wire.TORCH_MAX + 2)))
    engines = FakeSource("engines", gpus=0)
    page = wire.EngineSample(engine="vllm", address="127.0.0.1:8000")
    engines.reading = Reading(engines=(page,) * (wire.ENGINES_MAX + 1))
    sampler = make(FakeSource(gpus=wire.GPUS_MAX + 3), probes, engines)
    sample = _collect(sampler).sample
    assert (len(sample.gpus), len(sample.torch), len(sample.engines)) == (1024, 4096, 1024)
    assert wire.decode_agent(wire.encode(sample)) == sample
    assert len(sampler.facts.gpus) == wire.GPUS_MAX
    engines.reading = Reading()  # as between two slow reads
    _collect(sampler)
    assert sampler.facts.sources[0] == wire.SourceFacts(
        name=LIMITS,
        state="failed",
        detail="a message has no room for 3 of 1,027 GPUs and 1 of 1,025 engines and 2 of 4,098 processes with a "
        "probe: the last ones are not watched",
    )
    engines.reading = Reading(engines=(page,))
    probes.reading = Reading()
    _collect(sampler)
    _collect(sampler)
    assert "for 3 of 1,027 GPUs:" in (sampler.facts.sources[0].detail or "")


def test_readings_of_all_sources_make_one_sample(make: Make) -> None:
    sampler = make(FakeSource(), FakeHost())
    sample = _collect(sampler).sample
    assert [(gpu.gpu, gpu.used_bytes) for gpu in sample.gpus] == [("0", GIB), ("1", GIB)]
    assert (sample.host, sample.at) == (wire.HostSample(memory_used_bytes=40 * GIB), AT)
    assert _states(sampler) == {"nvml": "ok", "host": "ok"}


def test_the_facts_of_all_sources_are_merged(make: Make) -> None:
    sampler = make(FakeSource(), FakeHost())
    assert not sampler.facts.gpus
    assert _states(sampler) == {"nvml": "waiting", "host": "waiting"}
    _collect(sampler)
    assert [gpu.gpu for gpu in sampler.facts.gpus] == ["0", "1"]
    assert sampler.facts.host == wire.HostFacts(memory_total_bytes=100 * GIB)


def test_facts_stay_the_same_object_while_nothing_changes(make: Make) -> None:
    sampler = make(FakeSource(), FakeHost())
    _collect(sampler)
    facts = sampler.facts
    _collect(sampler)
    assert sampler.facts is facts


def test_new_facts_in_a_reading_replace_the_old(make: Make) -> None:
    source = FakeSource(gpus=2)
    sampler = make(source)
    _collect(sampler)
    source.reading = Reading(gpus=source.reading.gpus[:1], facts=wire.NodeFacts(gpus=source.facts.gpus[:1]))
    assert _statuses(_collect(sampler)) == {"0": "ok"}
    assert [gpu.gpu for gpu in sampler.facts.gpus] == ["0"]


def test_what_a_source_says_of_itself_is_told_while_it_works(make: Make) -> None:
    source = FakeSource("ray")
    said = (wire.SourceFacts(name="ray session_x", state="waiting", detail="no job yet"),)
    source.facts = wire.NodeFacts(sources=said)
    sampler = make(source)
    _collect(sampler)
    assert sampler.facts.sources == said


def test_what_a_source_says_of_itself_is_logged_when_it_changes(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="oomwatch_agent")
    source = FakeSource("log a.log", gpus=0)
    sampler = make(source)
    states: tuple[wire.SourceState, ...] = ("waiting", "waiting", "ok", "ok")
    for state in states:
        said = wire.SourceFacts(name="log a.log", state=state, detail=f"{state} it is")
        source.reading = Reading(facts=wire.NodeFacts(sources=(said,)))
        _collect(sampler)
    assert [record.message for record in caplog.records] == [
        "source log a.log: waiting - waiting it is",
        "source log a.log: ok - ok it is",
    ]


def test_a_source_is_opened_once_and_never_used_by_the_thread_that_waits(make: Make) -> None:
    source = FakeSource()
    sampler = make(source)
    for slow in (True, False, False):
        _collect(sampler, slow=slow)
    assert (source.opened, source.slow) == (1, [True, False, False])
    assert threading.get_ident() not in source.threads


def test_while_all_answer_one_thread_reads_them_all(make: Make) -> None:
    sources = FakeSource(), FakeHost()
    _collect(make(*sources))
    assert sources[0].threads == sources[1].threads
    assert len(sources[0].threads) == 1


def test_what_waits_behind_a_source_that_does_not_answer_is_read_by_another_thread(make: Make) -> None:
    stuck, host = FakeSource(), FakeHost()
    stuck.may_answer.clear()
    collected = _collect(make(stuck, host, within=2.0))
    assert collected.sample.host is not None
    assert not stuck.threads & host.threads


def test_a_source_that_is_read_in_steps_takes_no_thread_more_while_all_is_well(make: Make) -> None:
    source, host = SteppingSource(), FakeHost()
    sampler = make(source, host)
    assert all(_statuses(_collect(sampler)) == {"0": "ok", "1": "ok"} for _ in range(3))
    assert set(source.names) == {"oomwatch sources"}
    assert source.reads == 0


def test_where_a_part_of_it_hangs_another_thread_ends_what_was_begun(make: Make) -> None:
    source, host = SteppingSource(), FakeHost()
    sampler = make(source, host, within=INTERVAL_SECONDS)
    _collect_until(sampler, lambda collected: _statuses(collected) == {"0": "ok", "1": "ok"})
    source.may_answer.clear()
    _collect_until(sampler, lambda collected: _statuses(collected) == {"0": "no_data", "1": "ok"})
    assert _collect(sampler).sample.host is not None
    source.may_answer.set()
    _collect_until(sampler, lambda collected: _statuses(collected) == {"0": "ok", "1": "ok"})


def test_a_thread_that_may_hang_reads_the_sources_itself(make: Make) -> None:
    source, host = FakeSource(), FakeHost()
    sampler = make(source, host)
    collected = sampler.collect_here(AT)
    assert collected is not None
    assert _statuses(collected) == {"0": "ok", "1": "ok"}
    assert collected.sample.host is not None
    assert source.threads == host.threads == {threading.get_ident()}


def test_while_it_hangs_another_one_collects_and_what_it_read_comes_later(make: Make) -> None:
    source, host = FakeSource(), FakeHost()
    sampler = make(source, host, within=0.05)
    _collect(sampler)
    source.may_answer.clear()
    reads, late = source.reads, list[Collected | None]()
    thread = threading.Thread(target=lambda: late.append(sampler.collect_here(AT)))
    thread.start()
    _until(lambda: source.reads > reads)
    assert sampler.collect_here(AT) is None, "one is at it"
    collected = _collect(sampler)
    assert (collected.sample.gpus, collected.sample.host is not None) == ((), True)
    source.may_answer.set()
    thread.join(DEADLINE_SECONDS)
    assert late == [None]
    _collect_until(sampler, lambda collected: _statuses(collected) == {"0": "ok", "1": "ok"})


def test_closing_closes_every_source(make: Make) -> None:
    sources = FakeSource(), FakeHost()
    sampler = make(*sources)
    _collect(sampler)
    sampler.close(within_seconds=DEADLINE_SECONDS)
    assert [source.closed for source in sources] == [1, 1]


# ---------------------------------------------------------------- sources that do not answer


def test_a_source_that_does_not_answer_costs_only_its_own_reading(make: Make) -> None:
    stuck, host = FakeSource(), FakeHost()
    stuck.may_answer.clear()
    sampler = make(stuck, host, within=0.05)
    collected = _collect_until(sampler, lambda collected: collected.sample.host is not None)
    assert collected.sample.gpus == ()


def test_a_late_reading_comes_with_a_later_sample(make: Make) -> None:
    source = FakeSource()
    sampler = make(source, within=0.05)
    _collect_until(sampler, lambda collected: bool(collected.sample.gpus))
    source.may_answer.clear()
    assert _statuses(_collect(sampler)) == {}, "not yet called hung: nothing is said of its GPUs"
    source.may_answer.set()
    _collect_until(sampler, lambda collected: _statuses(collected) == {"0": "ok", "1": "ok"})


def test_after_five_seconds_it_is_hung_and_its_gpus_give_no_data(make: Make, clock: FakeClock) -> None:
    source = FakeSource()
    sampler = make(source, within=0.05)
    _collect_until(sampler, lambda collected: bool(collected.sample.gpus))
    source.may_answer.clear()
    _collect(sampler)
    clock.now += 5.0
    assert _statuses(_collect(sampler)) == {"0": "no_data", "1": "no_data"}
    assert _states(sampler) == {"nvml": "hung"}
    assert "5 s" in _detail(sampler)


def test_opening_may_take_longer_than_reading(make: Make, clock: FakeClock) -> None:
    source = FakeSource()
    source.may_open.clear()
    sampler = make(source, within=0.05)
    _collect(sampler)
    clock.now += 20.0
    _collect(sampler)
    assert _states(sampler) == {"nvml": "waiting"}
    clock.now += 20.0
    _collect(sampler)
    assert _states(sampler) == {"nvml": "hung"}


def test_a_hung_source_is_not_asked_again_until_it_comes_back(make: Make, clock: FakeClock) -> None:
    source = FakeSource()
    sampler = make(source, within=0.05)
    _collect_until(sampler, lambda collected: bool(collected.sample.gpus))
    source.may_answer.clear()
    reads = source.reads
    for _ in range(10):
        _collect(sampler)
        clock.now += 1.0
    assert source.reads <= reads + 1
    source.may_answer.set()
    _collect_until(sampler, lambda collected: _statuses(collected) == {"0": "ok", "1": "ok"})
    assert _states(sampler) == {"nvml": "ok"}


def test_a_hung_source_delays_nobody(make: Make, clock: FakeClock) -> None:
    stuck, host = FakeSource(), FakeHost()
    stuck.may_answer.clear()
    sampler = make(stuck, host, within=0.05)
    _collect(sampler)
    clock.now += 60.0
    _collect_until(sampler, lambda _: _states(sampler)["nvml"] == "hung")
    sampler._answer_within_seconds = DEADLINE_SECONDS
    started_at = time.monotonic()
    assert _collect(sampler).sample.host is not None
    assert time.monotonic() - started_at < DEADLINE_SECONDS / 2


def test_closing_does_not_wait_for_a_hung_source(make: Make, clock: FakeClock) -> None:
    stuck = FakeSource()
    stuck.may_answer.clear()
    sampler = make(stuck, within=0.05)
    _collect(sampler)
    clock.now += 60.0
    _collect(sampler)
    started_at = time.monotonic()
    sampler.close(within_seconds=DEADLINE_SECONDS)
    assert time.monotonic() - started_at < DEADLINE_SECONDS / 2


# ---------------------------------------------------------------- sources that are missing or fail


def test_a_missing_source_says_why_and_is_tried_again_after_thirty_seconds(make: Make, clock: FakeClock) -> None:
    source = FakeSource()
    source.open_error = SourceMissingError("no NVIDIA driver; install one")
    sampler = make(source, FakeHost())
    _collect(sampler)
    assert _states(sampler) == {"nvml": "missing", "host": "ok"}
    assert _detail(sampler) == "no NVIDIA driver; install one"
    clock.now += 29.0
    _collect(sampler)
    assert source.opened == 1
    source.open_error = None
    clock.now += 1.0
    assert _statuses(_collect(sampler)) == {"0": "ok", "1": "ok"}


def test_a_source_that_goes_missing_leaves_its_gpus_without_data(make: Make) -> None:
    source = FakeSource()
    sampler = make(source)
    _collect(sampler)
    source.read_error = SourceMissingError("the driver was unloaded")
    assert _statuses(_collect(sampler)) == {"0": "no_data", "1": "no_data"}


class _SearchedFor(FakeSource):
    """Is not here, and it takes long to find that out."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__("ray", gpus=0)
        self._clock = clock

    def open(self) -> wire.NodeFacts:
        self._clock.now += DEADLINE_SECONDS
        raise SourceMissingError("no Ray session on this node")


def test_a_source_that_is_missing_is_none_that_takes_long_to_read(make: Make, clock: FakeClock) -> None:
    """It is looked for twice a minute: to be quick thirty times it would take a quarter of an hour."""
    sampler = make(_SearchedFor(clock), FakeHost())
    _collect(sampler)
    assert sampler.is_calm


class _Lagging(FakeSource):
    """Takes some seconds of the clock to read."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock
        self.seconds = 0.0

    def read(self, *, slow: bool) -> Reading:
        self._clock.now += self.seconds
        return super().read(slow=slow)


def test_a_reading_that_takes_long_is_chance_and_two_in_a_row_are_not(make: Make, clock: FakeClock) -> None:
    source = _Lagging(clock)
    sampler = make(source, FakeHost())
    _collect(sampler)
    for seconds in (DEADLINE_SECONDS, 0.0, DEADLINE_SECONDS):
        source.seconds = seconds
        _collect(sampler)
        assert sampler.is_calm
    _collect(sampler)
    assert not sampler.is_calm
    assert sampler.collect_here(AT) is None
    source.seconds = 0.0
    for _ in range(QUICK_READS - 1):
        _collect(sampler)
    assert not sampler.is_calm
    _collect(sampler)
    assert sampler.is_calm


def test_who_is_read_after_a_slow_one_is_not_taken_for_slow(make: Make, clock: FakeClock) -> None:
    slow, card = _Lagging(clock), FakeSource("amd", gpus=1)
    sampler = make(slow, card, within=0.05)
    _collect(sampler)
    slow.seconds = DEADLINE_SECONDS
    for _ in range(3):
        _collect(sampler)
    slow.seconds = 0.0
    slow.may_answer.clear()  # of those that can be asked, the card is left
    _collect(sampler)
    assert sampler.collect_here(AT) is not None, "whoever reads waits for it"


def test_an_unforeseen_failure_is_told_with_its_traceback_once(
    make: Make, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    nvml = FakeSource()
    nvml.read_error = ZeroDivisionError("a defect")
    sampler = make(nvml)
    for _ in range(3):
        _collect(sampler)
        clock.now += 120
    with_traceback = [record for record in caplog.records if record.exc_info]
    assert [record.levelname for record in with_traceback] == ["WARNING"]
    assert "nvml" in with_traceback[0].getMessage()


def test_a_failing_source_says_what_happened_and_does_not_stop_the_others(make: Make) -> None:
    source = FakeSource()
    sampler = make(source, FakeHost())
    _collect(sampler)
    source.read_error = ZeroDivisionError("division by zero")
    collected = _collect(sampler)
    assert _statuses(collected) == {"0": "no_data", "1": "no_data"}
    assert collected.sample.host is not None
    assert _states(sampler) == {"nvml": "failed", "host": "ok"}
    assert _detail(sampler) == "ZeroDivisionError: division by zero"


def test_a_failing_source_is_tried_again_with_growing_pauses(make: Make, clock: FakeClock) -> None:
    source = FakeSource()
    source.read_error = OSError("broken")
    sampler = make(source)
    tried_at: list[float] = []
    for second in range(200):
        reads = source.reads
        _collect(sampler)
        tried_at += [second] if source.reads > reads else []
        clock.now += 1.0
    assert tried_at == [0, 1, 3, 7, 15, 31, 63, 123, 183]


def test_a_source_is_opened_afresh_from_the_second_failure_on(make: Make, clock: FakeClock) -> None:
    source = FakeSource()
    sampler = make(source)
    _collect(sampler)
    source.read_error = OSError("broken")
    for _ in range(2):
        _collect(sampler)
        clock.now += 60.0
    assert (source.opened, source.closed) == (1, 0), "one bad read is not worth losing the place in a log"
    _collect(sampler)
    assert (source.opened, source.closed) == (2, 1)


def test_a_recovered_source_is_ok_again(make: Make, clock: FakeClock) -> None:
    source = FakeSource()
    source.read_error = OSError("broken")
    sampler = make(source)
    _collect(sampler)
    source.read_error = None
    clock.now += 60.0
    assert _statuses(_collect(sampler)) == {"0": "ok", "1": "ok"}
    assert (_states(sampler), _detail(sampler)) == ({"nvml": "ok"}, "")


def test_each_state_is_logged_once(make: Make, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    source = FakeSource()
    source.open_error = SourceMissingError("no NVIDIA driver; install one")
    sampler = make(source)
    for _ in range(5):
        _collect(sampler)
        clock.now += 60.0
    assert [record.message for record in caplog.records] == ["source nvml: missing - no NVIDIA driver; install one"]


# ---------------------------------------------------------------- events


def _event_source(*found: Found, name: str = "ray") -> FakeSource:
    source = FakeSource(name, gpus=0)
    source.reading = Reading(found=found)
    return source


def _found(pid: int | None = None, **more: object) -> Found:
    body = wire.TorchMemory(reserved_bytes=GIB)
    return Found(body=body, origin=wire.Origin(source="driver.log", pid=pid), **more)  # type: ignore[arg-type]


def test_an_event_carries_what_the_source_knew(make: Make) -> None:
    sampler = make(_event_source(_found(run="qwen", backlog=True, at=AT - 3600)))
    (event,) = _collect(sampler).events
    assert (event.run, event.backlog, event.at) == ("qwen", True, AT - 3600)
    assert event.origin == wire.Origin(source="driver.log")


def test_an_event_without_time_and_run_gets_those_of_the_agent(make: Make) -> None:
    sampler = make(_event_source(_found()), run="told by --run")
    (event,) = _collect(sampler).events
    assert (event.run, event.at) == ("told by --run", AT)


def test_an_event_is_placed_on_its_process_gpu(make: Make) -> None:
    gpus = FakeSource()
    table = (wire.GpuProcess(pid=4711, used_bytes=GIB),)
    gpus.reading = Reading(gpus=(wire.GpuSample(gpu="0"), wire.GpuSample(gpu="1", processes=table)))
    sampler = make(gpus, _event_source(_found(pid=4711, run="qwen")))
    (event,) = _collect(sampler).events
    assert isinstance(event.body, wire.TorchMemory)
    assert event.body.gpu == "1"
    later = _collect(sampler).sample.gpus[1].processes
    assert later is not None
    assert later[0].run == "qwen", "and the process is known to belong to the run"


def test_everything_of_one_process_bears_the_name_of_its_run_at_once(make: Make) -> None:
    """A Slurm job that trains what its configuration calls demo/qwen: the driver's log says so in this very round."""
    table = (wire.GpuProcess(pid=4711, used_bytes=GIB, run="grpo-12"),)
    gpus = FakeSource()
    gpus.reading = Reading(
        gpus=(wire.GpuSample(gpu="0", processes=table),),
        identities=(Identity(pid=4711, run="grpo-12", run_by=KnownBy.BATCH_JOB, rank=3, role="actor"),),
        torch=(wire.TorchSample(pid=4711, run="grpo-12"),),
        engines=(wire.EngineSample(engine="vllm", address="127.0.0.1:8000", run="grpo-12"),),
    )
    host = FakeHost()
    biggest = wire.HostProcess(pid=4711, name="ray::WorkerDict", rss_bytes=GIB, run="grpo-12")
    host.reading = Reading(host=wire.HostSample(processes=(biggest,)))
    collected = _collect(make(gpus, host, _event_source(_found(4711, run="demo/qwen"))))
    sample = collected.sample
    assert sample.host is not None
    (process,) = sample.gpus[0].processes or ()
    assert (process.rank, process.role) == (3, "actor")
    runs = [process.run, *(one.run for one in sample.host.processes or ()), *(one.run for one in collected.events)]
    runs += [*(one.run for one in sample.torch), *(one.run for one in sample.engines)]
    assert runs == ["demo/qwen"] * 5
    assert [event.origin.rank for event in collected.events if event.origin] == [3]


def test_what_a_person_named_is_called_so_everywhere(make: Make) -> None:
    gpus = FakeSource()
    table = (wire.GpuProcess(pid=4711, run="grpo-12"), wire.GpuProcess(pid=4712))
    gpus.reading = Reading(gpus=(wire.GpuSample(gpu="0", processes=table),))
    collected = _collect(make(gpus, _event_source(_found(4711, run="demo/qwen")), run="mine"))
    assert [process.run for process in collected.sample.gpus[0].processes or ()] == ["mine", None]
    assert [event.run for event in collected.events] == ["mine"]


def test_what_two_sources_tell_alike_is_one_event(make: Make) -> None:
    step = wire.Step(step=7, step_seconds=94.1, rollout_seconds=30.0, tokens_total=666_555)

    def told_by(source: str) -> FakeSource:
        return _event_source(Found(body=step, origin=wire.Origin(source=source)), name=source)

    sampler = make(told_by("worker-1.out"), told_by("driver.log"))
    assert [event.origin for event in _collect(sampler).events] == [wire.Origin(source="worker-1.out")]
