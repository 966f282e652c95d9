"""Which conditions are asked when something arrives."""

from tests.core.story import SHIPPED, Story

from oomwatch import wire
from oomwatch.core.conditions.event import EventSeen
from oomwatch.core.conditions.threshold import Threshold
from oomwatch.core.judge import BLOCKS, EVENT, READINGS, SAMPLES, TIME
from oomwatch.rulefile import parse_rules

STATUS = SAMPLES[False, False, True]
GPU_LOST = next(rule for rule in SHIPPED.rules if rule.alert == "gpu_lost")


def test_news_asks_the_conditions_that_hear_it_and_no_others() -> None:
    assert [type(one) for _, one in GPU_LOST.hearing("gpu", STATUS)] == [Threshold]
    assert [type(one) for _, one in GPU_LOST.hearing("gpu", EVENT)] == [EventSeen]
    assert GPU_LOST.hearing("gpu", READINGS) == GPU_LOST.hearing("gpu", TIME) == ()


def test_a_sample_brings_what_is_in_it() -> None:
    assert SAMPLES[False, False, False] == READINGS == ("readings",)
    assert SAMPLES[True, False, False] == ("readings", "torch")
    assert SAMPLES[False, True, True] == ("readings", "engines", "status")
    assert set(BLOCKS) == {*SAMPLES[True, True, True], "blocks"}


def test_a_card_that_is_well_again_is_news_too() -> None:
    """By a rule whose condition that makes true: no shipped one is of that kind."""
    rules = parse_rules("""
rules:
  - alert: well
    when: {kind: threshold, metric: gpu_lost, below: 1}
    summary: well
""").rules
    story = Story(rules)
    story.wait(60, lambda one: one.sample(wire.GpuSample(gpu="0", status="lost")))
    assert story.states == ["firing", "resolved"]
    story.wait(1, lambda one: one.used(10))
    assert story.states == ["firing", "resolved", "firing"]


def test_conditions_keep_their_places_in_the_rule() -> None:
    places = [index for index, _ in GPU_LOST.hearing("gpu", STATUS) + GPU_LOST.hearing("gpu", EVENT)]
    assert [type(GPU_LOST.when[index]) for index in places] == [Threshold, EventSeen]


def test_a_rule_is_passed_over_where_none_of_its_conditions_judges_such_a_subject_by_such_news() -> None:
    assert SHIPPED.hears(GPU_LOST, "gpu", STATUS)
    assert not SHIPPED.hears(GPU_LOST, "node", STATUS)
    assert SHIPPED.hears(GPU_LOST, "node", EVENT)


def test_a_rule_that_hears_something_by_an_override_alone_is_not_passed_over() -> None:
    rules = parse_rules("""
rules:
  - alert: full
    enabled: false
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: full
overrides:
  - alert: full
    match: {node: "a*"}
    set: {enabled: true}
""").rules
    assert rules.hears(rules.rules[0], "gpu", READINGS)
    assert not rules.hears(rules.rules[0], "node", READINGS)
