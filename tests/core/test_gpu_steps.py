"""Steps as they were on one GPU: peaks and floors of phases, torch's figures, the residue, and blocks of time."""

import pytest
from tests.core.story import GIB, Story

from oomwatch import wire
from oomwatch.core.blocks import BlockWindow
from oomwatch.core.envelope import SLICES_FEW, SLICES_MAX, Envelope
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.gpusteps import GpuSteps
from oomwatch.core.likemoments import READINGS_FEW
from oomwatch.core.peaks import Figures, GpuStep
from oomwatch.core.phases import Span
from oomwatch.core.steps import StepRecord
from oomwatch.core.subject import Subject

PHASES = {"rollout": 20.0, "old_log_prob": 10.0, "update_actor": 20.0}
LEVELS_GIB = {"rollout": 60.0, "old_log_prob": 30.0, "update_actor": 45.0}


def gpu_of(story: Story, gpu: str = "0") -> GpuRecord:
    found = story.engine.fleet.gpu(Subject("gpu", "n", gpu))
    assert found is not None
    return found


def level(second: float) -> float:
    return 60.0 if second < 20 else 30.0 if second < 30 else 45.0


def train(story: Story, steps: int, *, first: int = 1, more_gib: float = 0.0) -> list[GpuStep]:
    """Steps of fifty seconds; in each, a rollout of 60 GiB, log-probabilities of 30 and an update of 45."""
    for number in range(first, first + steps):
        begun = story.now
        story.wait(50, lambda one, begun=begun: one.used(level(one.now - begun - 1) + more_gib))  # type: ignore[misc]
        story.event(wire.Step(step=number, step_seconds=50, rollout_seconds=20, phase_seconds=PHASES))
    return list(gpu_of(story).steps)


def test_a_step_has_a_peak_and_a_floor_of_each_phase() -> None:
    last = train(Story((), run="r"), 4)[-1]
    peaks = {name: round(peak / GIB) for name, peak in last.phases.peaks_by_name()}
    assert peaks == LEVELS_GIB
    assert round((last.peak_bytes or 0) / GIB) == 60
    assert round((last.floor_bytes or 0) / GIB) == 30


def test_readings_close_to_a_cut_count_for_neither_phase() -> None:
    story = Story((), run="r")
    train(story, 3)
    begun = story.now
    story.wait(50, lambda one: one.used(79.0 if one.now - begun == 21 else level(one.now - begun - 1)))
    story.event(wire.Step(step=4, step_seconds=50, rollout_seconds=20, phase_seconds=PHASES))
    last = gpu_of(story).steps[-1]
    assert last.peak_of("rollout") == 60 * GIB
    assert last.peak_of("old_log_prob") == 30 * GIB
    assert last.peak_bytes == 79 * GIB  # the step saw it, whatever phase it was in


def test_every_gpu_of_the_run_has_the_step_whose_line_one_node_read() -> None:
    story = Story((), gpus=2, run="r")
    story.hello("other", gpus=1)
    story.wait(50, lambda one: one.used(60.0).used(20.0, gpu="1").used(10.0, node="other"))
    story.event(wire.Step(step=1, step_seconds=50, rollout_seconds=20, phase_seconds=PHASES))
    other = story.engine.fleet.gpu(Subject("gpu", "other", "0"))
    assert [one.peak_bytes for one in gpu_of(story, "1").steps] == [20 * GIB]
    assert other is not None
    assert [one.peak_bytes for one in other.steps] == [10 * GIB]


def test_a_step_is_usual_once_the_run_is_warm() -> None:
    assert [one.usual for one in train(Story((), run="r"), 5)] == [False, False, False, True, True]


def test_torchs_peaks_its_slack_and_its_retries_are_of_the_step() -> None:
    story = Story((), run="r")

    def probe(reserved_gib: int, allocated_gib: int, retries: int) -> None:
        reading = wire.TorchSample(
            pid=7,
            gpu="0",
            reserved_bytes=reserved_gib * GIB,
            allocated_bytes=allocated_gib * GIB,
            alloc_retries_total=retries,
        )
        story.sample(wire.GpuSample(gpu="0", used_bytes=50 * GIB), torch=(reading,))

    probe(30, 20, 5)
    probe(40, 36, 7)
    story.event(wire.Step(step=1))
    probe(20, 20, 7)
    story.event(wire.Step(step=2))
    first, second = gpu_of(story).steps
    assert (first.reserved_peak_bytes, first.allocated_peak_bytes, first.slack_bytes) == (40 * GIB, 36 * GIB, 4 * GIB)
    assert (first.retries, second.retries) == (2, 0)
    assert second.reserved_peak_bytes == 20 * GIB


def test_what_stays_allocated_is_the_steps_least_and_so_is_what_each_kind_of_process_holds() -> None:
    story = Story((), run="r")

    def told(allocated_gib: int, trainer_gib: int, engine_gib: int, *others: wire.GpuProcess) -> None:
        trainer = wire.GpuProcess(pid=7, used_bytes=trainer_gib * GIB, role="actor", run="r")
        engine = wire.GpuProcess(pid=8, used_bytes=engine_gib * GIB, role="rollout", run="r")
        torch = wire.TorchSample(pid=7, gpu="0", reserved_bytes=50 * GIB, allocated_bytes=allocated_gib * GIB)
        processes = (trainer, engine, *others)
        story.sample(wire.GpuSample(gpu="0", used_bytes=70 * GIB, processes=processes), torch=(torch,))

    told(10, 12, 50)
    told(40, 50, 5)
    story.event(wire.Step(step=1))
    told(11, 13, 50)
    told(45, 50, 6, wire.GpuProcess(pid=9, used_bytes=3 * GIB, run="another"))
    story.event(wire.Step(step=2))
    story.event(wire.Step(step=3))
    first, second, third = gpu_of(story).steps
    assert (first.allocated_floor_bytes, second.allocated_floor_bytes) == (10 * GIB, 11 * GIB)
    assert [first.held_by(kind) for kind in ("trainer", "engine", "stranger")] == [12 * GIB, 5 * GIB, 0]
    assert [second.held_by(kind) for kind in ("trainer", "engine", "stranger")] == [13 * GIB, 6 * GIB, 0]
    assert (third.allocated_floor_bytes, third.held_by("trainer")) == (None, None)


def test_slack_is_not_believed_while_torch_counts_more_than_the_device_has_in_use() -> None:
    story = Story((), run="r")
    reading = wire.TorchSample(pid=7, gpu="0", reserved_bytes=70 * GIB, allocated_bytes=30 * GIB)
    story.sample(wire.GpuSample(gpu="0", used_bytes=50 * GIB), torch=(reading,))
    story.event(wire.Step(step=1))
    assert gpu_of(story).steps[-1].slack_bytes is None


def test_what_is_left_after_sleep_is_the_steps_residue() -> None:
    story = Story((), run="r")
    story.event(wire.EngineSleep(still_used_bytes=4 * GIB, gpu="0"))
    story.event(wire.Step(step=1))
    story.event(wire.Step(step=2))
    assert [one.residue_bytes for one in gpu_of(story).steps] == [4 * GIB, None]


def test_a_memory_line_of_a_moment_when_the_engine_sleeps_tells_what_sleep_left() -> None:
    story = Story((), run="r")
    for asleep, gib in ((True, 9), (None, 58), (True, 8)):
        memory = wire.TorchMemory(reserved_bytes=GIB, device_used_bytes=gib * GIB, engine_asleep=asleep, gpu="0")
        story.event(memory, pid=7)
    story.event(wire.Step(step=1))
    assert gpu_of(story).steps[-1].asleep_bytes == 9 * GIB


def test_a_line_that_tells_the_devices_memory_is_a_reading_of_it() -> None:
    story = Story((), run="r")
    story.now = 10.0
    story.event(wire.TorchMemory(reserved_bytes=GIB, device_used_bytes=77 * GIB, device_total_bytes=80 * GIB, gpu="0"))
    story.now = 11.0
    story.event(wire.Step(step=1, step_seconds=5))
    assert gpu_of(story).steps[-1].peak_bytes == 77 * GIB


def test_the_lifetime_peak_belongs_to_the_gpu_of_rank_0() -> None:
    story = Story((), gpus=2, run="r")
    story.event(wire.TorchMemory(reserved_bytes=GIB, gpu="1"))
    story.event(wire.Step(step=1, torch_reserved_peak_bytes=50 * GIB))
    assert [gpu_of(story, gpu).steps[-1].lifetime_peak_bytes for gpu in "01"] == [None, 50 * GIB]


def test_another_run_on_the_gpu_begins_anew() -> None:
    story = Story(())
    for run in ("first", "second"):
        story.event(wire.Step(step=7), run=run)
        story.engine.fleet.nodes["n"].runs.clear()
    assert len(gpu_of(story).steps) == 1


def test_an_envelope_keeps_what_lies_between_two_moments() -> None:
    envelope = Envelope()
    for second in range(20):
        envelope.add(float(second), float(second))
    assert envelope.between(3.0, 7.5) == (3.0, 7.0)
    assert envelope.between(100.0, 200.0) is None
    envelope.drop_before(10.0)
    assert envelope.between(0.0, 100.0) == (10.0, 19.0)


def test_a_long_step_is_kept_more_coarsely_and_its_peak_survives() -> None:
    envelope = Envelope()
    for second in range(4 * SLICES_MAX):
        envelope.add(float(second), 80.0 if second == 1234 else 10.0)
    assert len(envelope) <= SLICES_MAX
    assert envelope.between(1200.0, 1300.0) == (10.0, 80.0)


def test_a_first_step_of_hours_keeps_its_beginning_more_coarsely_and_its_end_as_it_was() -> None:
    envelope, hours = Envelope(SLICES_FEW), 12
    for second in range(hours * 3600):
        envelope.add(float(second), 80.0 if second == 1200 else 10.0 + second % 3600 / 3600)
        assert len(envelope) <= SLICES_FEW
    assert envelope.between(0.0, hours * 3600.0) == (10.0, 80.0)
    end = hours * 3600.0 - 16.0
    last = envelope.between(end - 16.0, end)
    assert last is not None
    assert last.high - last.low < 0.01, "of 32 seconds"
    middle = envelope.between(end - 3 * 3600.0, end - 2 * 3600.0)
    assert middle is not None
    assert middle.high < 12.0, "the peak of the first hour stays where it was"


def test_until_a_step_is_told_there_is_little_room_and_from_then_on_all_of_it() -> None:
    steps, whole = GpuSteps(), 4.0 * SLICES_FEW
    for end in (whole, 2 * whole):
        change = end - 98.5
        for second in range(int(end - whole), int(end)):
            steps.read(float(second), 80.0 if second > change else 30.0)
        told = StepRecord(end, wire.Step(step=1, step_seconds=whole), segment=0, usual=True, backlog=False)
        spans = [Span(end - whole, change, "rollout", 1, "mark"), Span(change, end, "update_actor", 1, "mark")]
        steps.cut(told, spans, None)
    first, second_step = steps.kept
    assert (first.floor_bytes, first.peak_bytes) == (30.0, 80.0)
    assert (first.peak_of("rollout"), second_step.peak_of("rollout")) == (80.0, 30.0)  # to the second but once


def test_until_a_step_is_told_process_tables_have_little_room_too() -> None:
    """The second of the tables, which alone tells of so little, is among those that are forgotten first."""
    steps, whole = GpuSteps(), 10.0 * (READINGS_FEW + 2)
    for begun in (0.0, whole):
        for place in range(READINGS_FEW + 1):
            steps.read_parts(begun + 10.0 * place + 1.0, {"stranger": 1.0 if place == 1 else 5.0})
        told = wire.Step(step=1, step_seconds=whole)
        steps.cut(StepRecord(begun + whole, told, segment=0, usual=True, backlog=False), [], None)
    assert [step.held_by("stranger") for step in steps.kept] == [5.0, 1.0]


@pytest.mark.parametrize("at", [4.5, 2.0])
def test_a_late_reading_lands_where_it_belongs(at: float) -> None:
    envelope = Envelope()
    for second in (0.0, 1.0, 4.0, 5.0):
        envelope.add(second, 1.0)
    envelope.add(at, 9.0)
    found = envelope.between(at - 0.5, at)
    assert found is not None
    assert found.high == 9.0


def test_blocks_of_five_minutes_close_with_the_first_reading_of_the_next() -> None:
    blocks = BlockWindow()
    closed: list[int] = []
    for at in range(0, 1260, 60):
        blocks.add(at, at)
        closed.append(len(blocks.closed()))
    assert [closed[at // 60] for at in (240, 300, 599, 600, 1200)] == [0, 1, 1, 2, 4]
    assert blocks.closed()[:2] == [(0, 240, 0), (300, 540, 300)]


def test_blocks_are_worth_another_look_once_a_minute() -> None:
    blocks = BlockWindow()
    worth = [at for at in range(1000, 1200) if blocks.add(at, 1.0)]
    assert worth == [1020, 1080, 1140]


@pytest.mark.parametrize("name", Figures._fields)
def test_a_step_tells_each_figure_under_its_name_and_no_other(name: str) -> None:
    record = StepRecord(0.0, wire.Step(step=3), segment=0, usual=True, backlog=False)
    step = GpuStep.of(record, Figures(**{name: 5.0}))
    assert {one: getattr(step, one) for one in Figures._fields} == dict.fromkeys(Figures._fields) | {name: 5.0}
