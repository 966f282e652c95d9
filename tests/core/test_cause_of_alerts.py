"""An alert that fires says why, from what the fleet was told."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core.run_story import SECONDS, Shape, tell_steps
from tests.core.story import GIB, Story, rules_of, shipped

from oomwatch import wire
from oomwatch.core.diagnosis import is_clearer
from oomwatch.core.engine import Engine
from oomwatch.core.parts import NAMES, Parts, kind_of_name, kind_on_gpu, kinds_on_gpu

HOST_KINDS: list[list[str]] = json.loads((Path(__file__).parent / "process_kinds.json").read_text(encoding="utf-8"))
HIGH = "    severity: warning\n    when: {kind: threshold, metric: gpu_used_ratio, above: 90%}\n    for: 5s\n"
CONFIG = wire.Config(
    values={
        "actor_rollout_ref.rollout.gpu_memory_utilization": 0.4,
        "actor_rollout_ref.rollout.free_cache_engine": True,
        "data.max_prompt_length": 1024,
        "data.max_response_length": 8192,
    }
)


def fired(shape: Callable[[int], Shape], steps: int = 20) -> wire.Transition:
    """The first alert of a run whose steps are as told."""
    story = Story(rules_of(HIGH)).event(CONFIG)
    tell_steps(story, steps, shape)
    assert story.heard, "it never got high"
    return story.heard[0]


def test_a_growing_residue_is_told_from_a_leak_by_what_torch_has_allocated() -> None:
    residue = fired(lambda n: Shape(base=30 + 1.2 * n, residue=8 + 1.2 * n, allocated=25.0))
    assert residue.causes[0].cause == "sleep_residue"
    assert [one.key for one in residue.causes[0].evidence] == ["residue_rises", "allocated_flat"]
    leak = fired(lambda n: Shape(base=30 + 1.2 * n, residue=8 + 1.2 * n, allocated=25.0 + 1.2 * n))
    assert leak.causes[0].cause == "leak"


def test_peaks_that_follow_the_lengths_are_no_leak() -> None:
    def longer(number: int) -> Shape:
        work = 20 + 2.0 * number
        peaks = {"rollout": 30.0, "old_log_prob": work / 2, "update_actor": work, "update_weights": 5.0}
        return Shape(peaks=peaks, length=1000 + 100.0 * number, allocated=20 + work)

    first = fired(longer, 26).causes[0]
    assert (first.cause, first.phase) == ("length_growth", "update_actor")


def test_a_steady_run_is_told_by_its_highest_phase() -> None:
    peaks = {"rollout": 30.0, "old_log_prob": 20.0, "update_actor": 45.0, "update_weights": 5.0}
    causes = fired(lambda _: Shape(peaks=peaks, allocated=70.0), 8).causes
    assert {one.cause for one in causes[:2]} == {"actor_update", "entropy_logits"}
    assert causes[0].phase == "update_actor"


def test_a_rule_in_bytes_has_the_causes_of_one_in_shares() -> None:
    bytes_rule = HIGH.replace("gpu_used_ratio, above: 90%", "gpu_used_bytes, above: 70GiB")
    story = Story(rules_of(bytes_rule)).event(CONFIG)
    tell_steps(story, 20, lambda n: Shape(base=30 + 1.2 * n, residue=8 + 1.2 * n, allocated=25.0 + 1.2 * n))
    assert story.heard[0].causes[0].cause == "leak"


def test_the_failure_names_the_phase() -> None:
    story = Story(shipped("out_of_memory")).event(CONFIG)
    tell_steps(story, 6, lambda _: Shape())
    story.event(wire.DeviceOom(error="OutOfMemoryError", gpu="0", phase="rollout", tried_bytes=GIB))
    assert story.heard[-1].causes[0].cause == "rollout_kv_budget"


def test_a_failure_ends_with_its_cause_when_the_run_works_again() -> None:
    story = Story(shipped("out_of_memory"))
    scores = {"sleep_residue": 0.5, "wake_up_overlap": 0.8}
    found = iter(["sleep_residue"])

    def diagnose(*_: object) -> tuple[wire.Cause, ...]:
        cause = next(found, "wake_up_overlap")
        return (wire.Cause(cause=cause, score=scores[cause]),)

    story.engine = Engine(shipped("out_of_memory"), diagnose=diagnose)
    story.hello("n")
    tell_steps(story, 3, lambda _: Shape())
    story.event(wire.DeviceOom(error="OutOfMemoryError", gpu="0"))
    tell_steps(story, 3, lambda _: Shape())
    assert [(one.state, [cause.cause for cause in one.causes]) for one in story.heard] == [
        ("firing", ["sleep_residue"]),
        ("resolved", ["sleep_residue"]),
    ]


@pytest.mark.parametrize("alert", ["agent_silent", "gpu_lost"])
def test_what_is_not_of_memory_has_no_cause(alert: str) -> None:
    story = Story(shipped(alert)).used(40)
    story.sample(wire.GpuSample(gpu="0", status="lost")).wait(60)
    assert [one.causes for one in story.heard] == [()]


def test_the_causes_stay_with_the_alert_to_its_end() -> None:
    story = Story(rules_of(HIGH)).event(CONFIG)
    tell_steps(story, 20, lambda n: Shape(base=30 + 1.2 * n, residue=8 + 1.2 * n, allocated=25.0))
    story.wait(3600, lambda s: s.used(20))
    firing, *_, resolved = story.heard
    assert resolved.state == "resolved"
    assert resolved.causes == firing.causes != ()


def test_a_defect_in_finding_the_causes_costs_the_causes_alone() -> None:
    def broken(*_: object) -> tuple[wire.Cause, ...]:
        raise ZeroDivisionError

    story = Story(rules_of(HIGH))
    story.engine = Engine(rules_of(HIGH), diagnose=broken)
    story.hello("n")
    story.wait(10, lambda s: s.used(78))
    assert story.states == ["firing"]
    assert [type(failure.error) for failure in story.engine.defects] == [ZeroDivisionError]


def test_a_cause_that_becomes_clearer_takes_the_firsts_place_while_the_alert_is_open() -> None:
    """At first somebody's program is all that is new; then every step leaves more allocated."""
    found = iter(["other_process", "other_process", "leak"])
    scores = {"other_process": 0.5, "leak": 0.7}

    def diagnose(*_: object) -> tuple[wire.Cause, ...]:
        cause = next(found, "leak")
        return (wire.Cause(cause=cause, score=scores[cause]),)

    story = Story(rules_of(HIGH))
    story.engine = Engine(rules_of(HIGH), diagnose=diagnose)
    story.hello("n")
    tell_steps(story, 3, lambda _: Shape(base=50.0, peaks=dict.fromkeys(SECONDS, 28.0)))
    assert [one.causes[0].cause for one in story.heard] == ["other_process"]
    assert [one.causes[0].cause for one in story.engine.episodes()] == ["leak"]


def test_a_cause_that_is_hardly_more_likely_does_not_take_the_firsts_place() -> None:
    leak, residue = wire.Cause(cause="leak", score=0.45), wire.Cause(cause="sleep_residue", score=0.5)
    assert not is_clearer((residue, leak), (leak,))
    assert is_clearer((residue,), (leak,))
    assert is_clearer((residue,), ())
    assert not is_clearer((), (leak,))


def test_causes_are_as_they_were_after_a_restart() -> None:
    before = fired(lambda n: Shape(base=30 + 1.2 * n, residue=8 + 1.2 * n, allocated=25.0))
    story = Story(rules_of(HIGH))
    story.engine.restore([before], before.at)
    assert [one.causes for one in story.engine.episodes()] == [before.causes]


# ---------------------------------------------------------------- who holds the memory


@pytest.mark.parametrize(("name", "kind"), HOST_KINDS)
def test_a_process_of_the_host_is_known_by_what_it_calls_itself(name: str, kind: str) -> None:
    assert kind_of_name(name) == kind


def test_every_word_that_tells_a_kind_has_a_case_that_rests_on_it_alone() -> None:
    for kind, pattern in NAMES:
        words = [re.compile(word, pattern.flags) for word in pattern.pattern.split("|")]
        alone = [[word for word in words if word.search(name)] for name, of in HOST_KINDS if of == kind]
        assert [word for word in words if [word] not in alone] == []


def test_a_process_that_nothing_ties_to_the_run_is_a_stranger_only_beside_the_runs_own() -> None:
    unknown = wire.GpuProcess(pid=1, used_bytes=GIB, name="python serve.py")
    ours = wire.GpuProcess(pid=2, used_bytes=GIB, name="ray::WorkerDict", run="r")
    assert [kind for _, kind in kinds_on_gpu([unknown], "r")] == ["unknown"]
    assert [kind for _, kind in kinds_on_gpu([unknown, ours], "r")] == ["stranger", "trainer"]
    assert [kind for _, kind in kinds_on_gpu([unknown], "r", {1})] == [
        "stranger"
    ]  # it stays when the run's own have died
    assert kind_on_gpu(wire.GpuProcess(pid=3, run="other"), "r") == "stranger"
    assert kind_on_gpu(wire.GpuProcess(pid=4, role="rollout"), "r") == "engine"


def test_a_kind_is_compared_by_its_floors_and_one_that_comes_later_held_nothing_before() -> None:
    parts = Parts()
    for second in range(0, 1200, 10):
        swing = 20 * (second % 120 < 60)
        late = [("stranger", 5.0, "late")] if second >= 600 else []
        parts.observe(second, [("trainer", 30.0 + swing, "w"), ("engine", 10.0 + second / 100, "e"), *late])
    rises = {part.kind: part.rise_bytes for part in parts}
    assert rises["trainer"] == 0
    assert rises["engine"] == pytest.approx(6, abs=1)  # ten minutes apart, once the programs are loaded
    assert rises["stranger"] == 5
    parts.observe(1200, [])
    assert list(parts) == []


def test_an_alert_may_have_no_cause_that_can_be_told() -> None:
    story = Story(rules_of(HIGH)).wait(10, lambda s: s.used(78))
    assert [one.causes for one in story.heard] == [()]
