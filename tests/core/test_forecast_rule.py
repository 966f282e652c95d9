"""The forecast rule over time: from samples and step lines to the alert, its words and its end."""

from tests.core.story import Story, shipped

from oomwatch import wire
from oomwatch.core.rule import RuleSet
from oomwatch.wording import put_into_words

WARNING = shipped("memory_forecast", "warning")
PHASES = {"rollout": 20.0, "update_actor": 20.0}


def train(story: Story, first: int, last: int, leak_gib: float, *, base_gib: float = 50.0) -> Story:
    """Steps of 40 s: a rollout of 30 GiB, and an update whose peak rises by `leak_gib` a step."""
    for number in range(first, last + 1):
        peak_gib = base_gib + leak_gib * (number - first)
        story.wait(20, lambda one: one.used(30.0))
        story.wait(20, lambda one, peak=peak_gib: one.used(peak))  # type: ignore[misc]
        story.event(wire.Step(step=number, step_seconds=40, rollout_seconds=20, phase_seconds=PHASES))
    return story


def test_a_leak_fires_long_before_the_card_is_full_and_names_its_phase() -> None:
    story = train(Story(WARNING, run="r"), 1, 40, 0.5)
    fired = story.heard[0]
    assert fired.state == "firing"
    assert fired.facts["phase"] == "update_actor"
    assert fired.facts["because"] == "drift"
    used_gib = 50 + 0.5 * (fired.at / 40 - 1)
    assert used_gib < 70
    assert abs(float(fired.facts["eta_steps"]) - (80 - used_gib) / 0.5) <= 3


def test_its_words_say_when_where_and_why() -> None:
    story = train(Story(WARNING, run="r"), 1, 40, 0.5)
    said = put_into_words(story.heard[0], WARNING, simulated=False).texts["en"]
    assert said.summary.startswith("GPU 0 of n will be full in about ")
    assert said.summary.endswith("steps), in actor update")
    assert "the peaks rise by themselves" in said.description


def test_it_ends_ten_steps_after_the_peaks_have_stopped_rising() -> None:
    story = train(Story(WARNING, run="r"), 1, 40, 0.5)
    train(story, 41, 80, 0.0, base_gib=66.0)
    assert [one.state for one in story.heard if one.change == "state"] == ["firing", "resolved"]


def test_a_run_that_falls_silent_is_left_to_the_blocks_of_its_gpu() -> None:
    story = train(Story(WARNING, run="r"), 1, 40, 0.5)
    story.wait(4000, lambda one: one.used(5.0))
    assert [one.state for one in story.heard if one.change == "state"] == ["firing", "resolved"]


def test_without_steps_a_leak_is_seen_by_the_clock() -> None:
    story = Story(WARNING)
    while story.now < 6 * 3600 and not story.heard:
        story.wait(60)
        story.used(30.0 + story.now / 3600 * 10)
    fired = story.heard[0]
    left_seconds = 5 * 3600 - fired.at
    assert 0 < left_seconds <= 3600
    assert fired.facts["eta_seconds"] <= 3900  # type: ignore[operator]
    assert "phase" not in fired.facts
    assert "slope_bytes" not in fired.facts
    assert " an hour." in put_into_words(fired, WARNING, simulated=False).texts["en"].description


def test_the_warning_comes_first_and_the_critical_alert_once() -> None:
    both = shipped("memory_forecast")
    story = train(Story(RuleSet(rules=both.rules), run="r"), 1, 58, 0.5)
    assert [(one.severity, one.state) for one in story.heard if one.change == "state"] == [
        ("warning", "firing"),
        ("critical", "firing"),
    ]
