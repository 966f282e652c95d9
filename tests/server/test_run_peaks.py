"""What the page draws of a run's memory: the peak of each phase of each step, on the GPU that was fullest by it."""

import time
from pathlib import Path

from tests.core.step_story import Told, tell, tell_all
from tests.core.story import CARD_BYTES, GIB, Story
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, serving, settings_in, until

from oomwatch import wire
from oomwatch.core.runrecord import CYCLE_MARKS_KEPT, CycleMark
from oomwatch.web.peaks import cycles, known_of, peaks_of
from oomwatch.web.rows import PeaksOfRun


def gib(column: tuple[int | None, ...]) -> list[float | None]:
    return [None if size is None else size / GIB for size in column]


def peaks(story: Story) -> PeaksOfRun:
    fleet = story.engine.fleet
    return peaks_of(known_of(fleet, fleet.runs["r"]))


def test_each_phase_has_its_peak_at_each_step() -> None:
    told = peaks(tell_all(Story((), run="r"), 3, lambda step: Told(rollout=60.0 + step, old_log_prob=30.0)))
    assert told.step == (1, 2, 3)
    assert list(told.at) == sorted(told.at)
    assert list(told.phases) == ["rollout", "old_log_prob", "update_actor"]
    assert gib(told.phases["rollout"].peak_bytes) == [61.0, 62.0, 63.0]
    assert gib(told.phases["old_log_prob"].peak_bytes) == [30.0, 30.0, 30.0]
    assert told.known_from_step == 1


def test_the_fullest_gpu_is_named() -> None:
    story = Story((), run="r", gpus=3)
    for step in range(1, 4):
        tell(story, step, Told(more={"2": 5.0} if step < 3 else {"1": 7.0}), gpus=3)
    told = peaks(story)
    named = [told.gpus[place].gpu for place in told.phases["rollout"].gpu if place is not None]
    assert named == ["2", "2", "1"]
    assert gib(told.phases["rollout"].peak_bytes) == [65.0, 65.0, 67.0]
    assert {source.usable_bytes for source in told.gpus} == {CARD_BYTES}


def test_a_step_that_is_done_again_takes_the_place_of_the_first_try() -> None:
    story = tell_all(Story((), run="r"), 5, lambda _: Told(rollout=60.0))
    told = peaks(tell_all(story, 2, lambda _: Told(rollout=50.0), first=4))
    assert told.step == (1, 2, 3, 4, 5)
    assert gib(told.phases["rollout"].peak_bytes) == [60.0, 60.0, 60.0, 50.0, 50.0]


def test_steps_that_are_older_than_the_servers_memory_have_no_peak() -> None:
    told = peaks(tell_all(Story((), run="r"), 70, lambda _: Told()))
    assert len(told.step) == 70
    assert told.known_from_step == 7
    assert told.phases["rollout"].peak_bytes[:6] == (None,) * 6
    assert None not in told.phases["rollout"].peak_bytes[6:]


def test_a_run_whose_gpus_are_not_read_has_steps_and_no_peaks() -> None:
    told = peaks(Story((), run="r").step(1).wait(30).step(2))
    assert told.step == (1, 2)
    assert told.phases == {}
    assert told.gpus == ()
    assert told.known_from_step is None


def test_validation_alone_is_no_step() -> None:
    story = Story((), run="r")
    story.event(wire.Step(step=0, validation_only=True))
    assert peaks(tell_all(story, 2, lambda _: Told())).step == (1, 2)


def test_cycles_are_counted_between_the_lines_of_steps_by_the_busiest_process() -> None:
    marks = [CycleMark(at, ("n", pid)) for at in (5.0, 15.0, 16.0, 25.0) for pid in (1, 2)]
    assert list(cycles(marks, [10.0, 20.0, 30.0, 40.0])) == [None, 2, 1, 0]


def test_without_a_marker_no_cycle_is_counted_and_none_is_said_to_be_missing() -> None:
    assert list(cycles(None, [10.0, 20.0])) == [None, None]


def test_cycles_from_before_the_oldest_mark_that_is_kept_are_unknown() -> None:
    marks = [CycleMark(25.0 + number / 1e4, ("n", 1)) for number in range(CYCLE_MARKS_KEPT)]
    assert list(cycles(marks, [10.0, 20.0, 30.0, 40.0])) == [None, None, None, 0]


def test_the_peaks_are_served_and_an_unknown_run_is_refused(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time(), run="a/b"))
        at = time.time()
        agent.say(sample(1, 61, at - 5, gpus=1), sample(2, 40, at - 1, gpus=1))
        step = wire.Step(step=4, step_seconds=8.0)
        agent.say(wire.Event(seq=3, at=at, body=step))
        until("the step to be known", lambda: server.get("/api/v1/runs/a/b/peaks").json().get("step"))
        told = server.get("/api/v1/runs/a/b/peaks").json()
        assert told["run"] == "a/b"
        assert told["phases"] == {"step": {"peak_bytes": [61 * GIB], "gpu": [0]}}
        assert told["gpus"] == [{"node": "gpu-07", "gpu": "0", "usable_bytes": 80 * GIB}]
        assert told["reshard_cycles"] == [None]
        refused = server.get("/api/v1/runs/other/peaks")
        assert refused.status_code == 404
        assert refused.json()["error"] == 'there is no run "other"'
