"""A run that needs more than when it last went well."""

from tests.core.step_story import Told, configure, tell_all
from tests.core.story import CARD_BYTES, GIB, Story, shipped

from oomwatch import wire
from oomwatch.core.conditions.regression import Regression, changed_keys
from oomwatch.core.engine import Engine
from oomwatch.core.past import Levels, Past, PhaseLevel, StepLevel

RULE = Regression()
OFFLOADED = Told(old_log_prob=7.9)
HELD = Told(old_log_prob=27.0)


def holds(good: tuple[float, float], now: tuple[float, float], *, longer: float | None = None, steps: int = 3) -> bool:
    """Whether a peak of ref and a floor of the step, in GiB, are a regression."""
    was = Levels(at=0.0, step=10, phases=(PhaseLevel("ref", good[0] * GIB),), floor_bytes=good[1] * GIB)
    level = StepLevel({"ref": now[0] * GIB}, now[1] * GIB)
    return RULE.holds_for([level] * steps, was, CARD_BYTES, longer) is not None


def test_the_public_case_is_a_regression() -> None:
    assert holds((30, 7.9), (30, 27.0))
    assert not holds((30, 7.9), (30, 27.0), steps=2)


def test_five_gib_and_a_third_must_come_together() -> None:
    assert not holds((40, 10), (40, 14.5))
    assert not holds((40, 30), (40, 36))
    assert holds((40, 10), (40, 15.5))


def test_a_fifth_of_the_card_is_enough_where_the_peak_is_high_anyway() -> None:
    assert holds((60, 10), (77, 10))
    assert not holds((60, 10), (75, 10))


def test_a_peak_that_has_grown_no_more_than_the_responses_is_theirs() -> None:
    assert not holds((50, 10), (70, 10), longer=1.5)
    assert holds((50, 10), (70, 10), longer=1.1)
    assert holds((30, 7.9), (30, 27.0), longer=5.0)  # no floor depends on lengths


def test_a_peak_on_a_card_with_room_is_none() -> None:
    assert not holds((30, 10), (60, 10))


def test_the_next_start_of_a_run_is_held_against_the_last() -> None:
    story = configure(Story(shipped("memory_regression"), run="r"), ref__offload=True)
    tell_all(story, 24, lambda _: OFFLOADED)
    configure(story, ref__offload=False)
    tell_all(story, 8, lambda _: HELD)
    (fired,) = story.heard
    assert fired.labels == {"run": "r"}
    assert fired.facts["step"] == 6
    assert "phase" not in fired.facts
    assert round(float(fired.facts["excess_bytes"]) / GIB, 1) == 19.1
    assert fired.facts["changed_keys"] == "ref.offload: True -> False"


def test_a_start_that_ended_out_of_memory_is_no_measure() -> None:
    story = Story(shipped("memory_regression"), run="r")
    tell_all(story, 24, lambda _: OFFLOADED)
    tell_all(story, 24, lambda _: Told(update_actor=78.0))
    assert story.states == ["firing"]  # against the first
    assert story.heard[0].facts["phase"] == "update_actor"
    story.event(wire.DeviceOom(error="torch.OutOfMemoryError", gpu="0"))
    tell_all(story, 24, lambda _: OFFLOADED)
    assert story.states == ["firing", "resolved"]
    tell_all(story, 8, lambda _: Told(update_actor=78.0))
    assert story.states == ["firing", "resolved", "firing"]


def test_a_short_start_is_no_measure() -> None:
    story = Story(shipped("memory_regression"), run="r")
    tell_all(story, 9, lambda _: OFFLOADED)
    tell_all(story, 12, lambda _: HELD)
    assert story.heard == []


def pasts(engine: Engine) -> list[Past]:
    return engine.fleet.pasts.changed()


def test_what_it_was_outlives_the_server() -> None:
    before = Story((), run="r")
    tell_all(before, 24, lambda _: OFFLOADED)
    (kept,) = pasts(before.engine)
    assert pasts(before.engine) == []

    tomorrow = Story(shipped("memory_regression"), run="r")
    tomorrow.engine.fleet.pasts.remember(kept)
    assert tell_all(tomorrow, 8, lambda _: HELD).states == ["firing"]


def test_a_run_that_goes_on_while_the_server_starts_is_not_held_against_itself() -> None:
    before = Story((), run="r")
    tell_all(before, 24, lambda _: OFFLOADED)
    (kept,) = pasts(before.engine)

    after = Story(shipped("memory_regression"), run="r")
    after.engine.fleet.pasts.remember(kept)
    tell_all(after, 8, lambda _: HELD, first=25)
    assert after.heard == []
    assert tell_all(after, 8, lambda _: HELD).states == ["firing"]  # started again: step 1


def test_a_run_that_was_forgotten_is_known_again_when_it_starts() -> None:
    story = Story(shipped("memory_regression"), run="r")
    tell_all(story, 24, lambda _: OFFLOADED)
    story.engine.forget(story.now + 1)
    story.hello("n")
    assert tell_all(story, 8, lambda _: HELD).states == ["firing"]


def test_the_past_goes_with_the_name() -> None:
    story = Story(shipped("memory_regression"), run="ray-job-1")
    for number in range(1, 25):
        tell_all(story, 1, lambda _: OFFLOADED, first=number)
    story.engine.fleet.pasts.rename("r", "experiment")
    assert story.engine.fleet.pasts.of("r") is None
    assert [past.run for past in pasts(story.engine)] == ["experiment"]


def test_what_could_not_be_stored_is_told_again() -> None:
    story = tell_all(Story((), run="r"), 24, lambda _: OFFLOADED)
    changed = pasts(story.engine)
    story.engine.fleet.pasts.keep_for_later(changed)
    assert pasts(story.engine) == changed


def test_changed_settings_are_told_as_far_as_there_is_room() -> None:
    assert changed_keys({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": True}) == "b: 2 -> 3, c: unset -> True"
    assert changed_keys({}, {"a": 1}) == ""
    many = changed_keys({str(n): 0 for n in range(9)}, {str(n): 1 for n in range(9)})
    assert many.endswith("3: 0 -> 1, ...")
