"""Which conditions are asked when something arrives."""

from tests.core.story import SHIPPED

from oomwatch.core.conditions.event import EventSeen
from oomwatch.core.conditions.threshold import Threshold
from oomwatch.core.judge import EVENT, READINGS, TIME
from oomwatch.rulefile import parse_rules

GPU_LOST = next(rule for rule in SHIPPED.rules if rule.alert == "gpu_lost")


def test_a_reading_asks_the_conditions_that_hear_readings_and_no_others() -> None:
    assert [type(one) for _, one in GPU_LOST.hearing("gpu", READINGS)] == [Threshold]
    assert [type(one) for _, one in GPU_LOST.hearing("gpu", EVENT)] == [EventSeen]
    assert GPU_LOST.hearing("gpu", TIME) == ()


def test_conditions_keep_their_places_in_the_rule() -> None:
    places = [index for index, _ in GPU_LOST.hearing("gpu", READINGS) + GPU_LOST.hearing("gpu", EVENT)]
    assert [type(GPU_LOST.when[index]) for index in places] == [Threshold, EventSeen]


def test_a_rule_is_passed_over_where_none_of_its_conditions_judges_such_a_subject_by_such_news() -> None:
    assert SHIPPED.hears(GPU_LOST, "gpu", READINGS)
    assert not SHIPPED.hears(GPU_LOST, "node", READINGS)
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
