"""What browsers are told of a run beside its steps: phases, signals, configuration, and which GPUs it is on."""

import msgspec
from tests.server.house import GIB, START, House, hello, sample

from oomwatch import wire

TIMES = {"rollout": 30.0, "old_log_prob": 8.0, "update_actor": 44.0}
STEP_SECONDS = sum(TIMES.values())


def step(number: int) -> wire.Step:
    return wire.Step(step=number, step_seconds=STEP_SECONDS, rollout_seconds=30.0, phase_seconds=TIMES)


def house_with(*told: tuple[float, wire.EventBody]) -> House:
    """A house whose agent has said these, at so many seconds from START; nothing is shown before the first beat."""
    house = House()
    session, _ = house.connect()
    for seq, (seconds, body) in enumerate(told, start=1):
        house.pass_until(START + seconds)
        house.service.reception.take(session, wire.Event(seq=seq, at=START + seconds, run="r", body=body))
    return house


def spans(run: wire.Run) -> list[tuple[float, float | None, str, str]]:
    return [
        (span.start_at - START, span.end_at and span.end_at - START, span.phase, span.known_by) for span in run.phases
    ]


def run_of(house: House) -> wire.Run:
    (run,) = house.service.snapshot().runs
    return run


def test_a_step_line_tells_the_phases_of_its_step_afterwards() -> None:
    assert spans(run_of(house_with((100, step(1))))) == [
        (18, 48, "rollout", "step line"),
        (48, 56, "old_log_prob", "step line"),
        (56, 100, "update_actor", "step line"),
    ]


def test_a_phase_that_has_only_begun_has_no_end() -> None:
    house = house_with((100, wire.EngineWake()))
    assert spans(run_of(house)) == [(100, None, "rollout", "mark")]


def test_a_mark_that_begins_or_ends_a_phase_is_shown_and_one_within_it_is_not() -> None:
    house = house_with((100, wire.EngineWake()))
    house.wait(1)
    first = house.browsers.of(wire.RunChanged)
    assert [spans(message.run) for message in first] == [[(100, None, "rollout", "mark")]]
    (session,) = house.service.roster
    house.pass_until(START + 110)
    house.service.reception.take(session, wire.Event(seq=2, at=START + 110, run="r", body=wire.EngineWake()))
    house.wait(1)
    assert len(house.browsers.of(wire.RunChanged)) == 1
    house.pass_until(START + 130)
    house.service.reception.take(session, wire.Event(seq=3, at=START + 130, run="r", body=wire.EngineSleep()))
    house.wait(1)
    assert spans(house.browsers.of(wire.RunChanged)[-1].run) == [(100, 130, "rollout", "mark")]


def test_a_page_that_opens_is_told_ten_minutes_of_phases_and_a_change_the_last_two_steps() -> None:
    house = house_with(*((number * STEP_SECONDS, step(number)) for number in range(1, 21)))
    opened = run_of(house)
    assert {span.step for span in opened.phases} == set(range(13, 21))  # 8 steps of 82 s
    (changed,) = house.browsers.of(wire.RunChanged)
    assert {span.step for span in changed.run.phases} == {19, 20}
    assert changed.run.phases[0] in opened.phases


def test_two_steps_are_told_where_they_are_longer_than_ten_minutes() -> None:
    slow = wire.Step(step=1, step_seconds=900.0, phase_seconds={"rollout": 600.0, "update_actor": 300.0})
    house = house_with((1000, slow), (1900, msgspec.structs.replace(slow, step=2)))
    assert {span.step for span in run_of(house).phases} == {1, 2}


def test_every_signal_says_its_source_or_in_words_why_it_is_missing() -> None:
    house = house_with((100, step(1)))
    coverage = {one.signal: one for one in run_of(house).coverage}
    assert (coverage["step_line"].count, coverage["step_line"].problem) == (1, None)
    assert coverage["step_line"].texts == {}
    missing = coverage["config"]
    assert (missing.source, missing.problem) == (None, "no_config")
    assert set(missing.texts) == {"en", "zh"}
    assert "configuration was not seen" in missing.texts["en"]


def test_a_signal_that_went_missing_says_since_which_step() -> None:
    bare = wire.Step(step=2, step_seconds=82.0, phase_seconds=TIMES)
    coverage = {one.signal: one for one in run_of(house_with((100, step(1)), (182, bare))).coverage}
    assert coverage["rollout_seconds"].texts["en"] == "missing since step 2"
    assert coverage["rollout_seconds"].texts["zh"] == "自第 2 步起缺失"


def test_a_configuration_is_shown_when_it_arrives() -> None:
    house = house_with((1, wire.Config(values={"actor_rollout_ref.rollout.n": 5})))
    house.wait(1)
    (changed,) = house.browsers.of(wire.RunChanged)
    assert changed.run.config == {"actor_rollout_ref.rollout.n": 5}


def test_the_gpus_of_a_node_with_two_runs_are_told_apart_by_their_processes() -> None:
    house = House()
    session, _ = house.connect(hello(gpus=3, run="one"))
    house.service.reception.take(session, wire.Event(seq=1, at=START, run="two", body=step(1)))
    house.wait(1)
    cards = tuple(
        wire.GpuSample(gpu=str(index), used_bytes=GIB, processes=(wire.GpuProcess(pid=9, run=run),))
        for index, run in enumerate(("one", "two", None))
    )
    house.service.reception.take(session, wire.Sample(seq=2, at=START + 1, gpus=cards))
    house.wait(1)
    node = house.browsers.of(wire.NodeChanged)[-1].node
    assert node.gpu_runs == ("one", "two", None)


def test_no_process_is_told_apart_from_processes_that_were_not_read() -> None:
    house = House()
    session, _ = house.connect(hello(gpus=2))
    cards = (
        wire.GpuSample(gpu="0", used_bytes=GIB, processes=()),
        wire.GpuSample(gpu="1", used_bytes=GIB),
    )
    house.service.reception.take(session, wire.Sample(seq=1, at=START, gpus=cards, host=wire.HostSample(processes=())))
    (node,) = house.service.snapshot().nodes
    assert node.sample is not None
    assert node.sample.host is not None
    assert [gpu.processes for gpu in node.sample.gpus] == [(), None]
    assert node.sample.host.processes == ()


def test_a_tick_has_what_the_probes_say_of_each_gpu_and_nothing_where_there_is_none() -> None:
    house = House()
    session, _ = house.connect(hello(gpus=2))
    house.service.reception.take(session, sample(1, 40, START + 1, gpus=2))
    house.wait(1)
    torch = (
        wire.TorchSample(pid=1, gpu="1", reserved_bytes=30 * GIB),
        wire.TorchSample(pid=2, gpu="1", reserved_bytes=10 * GIB),
    )
    probed = msgspec.structs.replace(sample(2, 40, START + 2, gpus=2), torch=torch)
    house.service.reception.take(session, probed)
    house.wait(1)
    before, after = (tick.nodes[0].torch_reserved_mib for tick in house.browsers.of(wire.Tick) if tick.nodes)
    assert (before, after) == (None, (None, 40 * 1024))
    (node,) = house.service.snapshot().nodes
    assert node.sample is not None
    assert node.sample.torch == torch


def test_an_engine_that_was_not_heard_for_a_minute_is_no_longer_shown() -> None:
    house = House()
    session, _ = house.connect()
    engine = wire.EngineSample(engine="vllm", address="127.0.0.1:8000", kv_used_ratio=0.5)
    house.service.reception.take(session, msgspec.structs.replace(sample(1, 40), engines=(engine,)))
    for seconds, shown in ((60, (engine,)), (61, ())):
        house.pass_until(START + seconds)
        house.service.reception.take(session, sample(1 + seconds, 40, START + seconds))
        (node,) = house.service.snapshot().nodes
        assert node.sample is not None
        assert node.sample.engines == shown
