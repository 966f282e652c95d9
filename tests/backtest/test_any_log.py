"""Whatever a log says, in whatever order, is laid out in time."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from oomwatch import wire
from oomwatch.backtest.logs import Log, Told
from oomwatch.backtest.recording import trace_of
from oomwatch.backtest.runlog import RunLog
from oomwatch.backtest.source import Known
from oomwatch.backtest.steptimes import placed
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet
from oomwatch.trace import give
from oomwatch_agent.logs.phases import HEADS

GIB = 2**30
PHASES = ("rollout", "reward", "old_log_prob", "ref", "update_actor", "save_checkpoint", "update_weights", "validation")

SECONDS = st.floats(0, 500)
MEMORY = st.builds(
    lambda head, used: wire.TorchMemory(
        at_point=head.at_point, phase=head.phase, ends_phase=head.ends, reserved_bytes=used, device_used_bytes=used,
        device_total_bytes=80 * GIB,
    ),
    st.sampled_from(sorted(HEADS.values())),
    st.integers(0, 80 * GIB),
)  # fmt: skip
STEPS = st.builds(
    wire.Step,
    step=st.integers(0, 50),
    step_seconds=st.none() | SECONDS,
    phase_seconds=st.dictionaries(st.sampled_from(PHASES), SECONDS),
    validation_only=st.booleans(),
    host_used_bytes=st.none() | st.integers(0, 2**40),
)
OTHERS = st.one_of(
    st.builds(wire.DeviceOom, error=st.just("torch.OutOfMemoryError"), phase=st.none() | st.sampled_from(PHASES)),
    st.builds(wire.HostOom, reporter=st.just("ray"), limit_bytes=st.none() | st.just(2**40)),
    st.builds(wire.EngineSleep, still_used_bytes=st.none() | st.integers(0, 80 * GIB)),
    st.builds(wire.EngineWake, tags=st.sampled_from([(), ("weights",), ("kv_cache",)])),
    st.builds(wire.Reshard, marker=st.just("update_weights")),
)


@st.composite
def logs(draw: st.DrawFn) -> list[Told]:
    bodies = draw(st.lists(st.one_of(MEMORY, STEPS, OTHERS), max_size=40))
    stamped = draw(st.booleans())
    pids = draw(st.lists(st.none() | st.integers(1, 3), min_size=len(bodies), max_size=len(bodies)))
    stamps = draw(st.lists(st.none() | st.floats(1e9, 1e9 + 1e5), min_size=len(bodies), max_size=len(bodies)))
    return [
        Told(body, wire.Origin(source="a.log", line=line, pid=pid), None, line, stamp if stamped else None)
        for line, (body, pid, stamp) in enumerate(zip(bodies, pids, stamps, strict=True), start=1)
    ]


@settings(max_examples=200, deadline=None)
@given(logs())
def test_events_keep_their_order_and_steps_end_when_their_durations_say(told: list[Told]) -> None:
    result = placed(told)
    assert [one for _, one in result] == told
    times = [at for at, _ in result]
    assert all(later >= before for before, later in pairwise(times))
    assert all(at >= 0 for at in times)


@settings(max_examples=100, deadline=None)
@given(logs())
def test_any_log_becomes_a_trace_that_an_engine_takes(told: list[Told]) -> None:
    recording = RunLog([Log("a.log", told)], Known()).recording("n")
    engine = Engine(RuleSet())
    last = 0.0
    for line in trace_of(recording):
        now = line.now if line.now is not None else line.advance
        if now is not None:
            assert now >= last
            last = now
        give(engine, line)
    assert not engine.defects
