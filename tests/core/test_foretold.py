"""What the rules that look ahead tell a reader: what they believe, without judging anew."""

import pytest
from tests.core.host_story import HostStory
from tests.core.story import Story, shipped
from tests.core.test_forecast_rule import train

from oomwatch.core.foretold import Foretells, Foretold
from oomwatch.core.rule import RuleSet
from oomwatch.core.subject import Subject
from oomwatch.units import Quantity


def foretold(story: Story, rules: RuleSet, subject: Subject) -> list[Foretold]:
    conditions = [one for rule in rules.rules for one in rule.when if isinstance(one, Foretells)]
    return [told for one in conditions for told in one.foretold(story.engine.fleet, subject, story.now)]


def test_a_card_that_leaks_is_told_of_long_before_its_warning() -> None:
    critical = shipped("memory_forecast", "critical")
    story = train(Story(critical, run="r"), 1, 40, 0.5)
    assert story.heard == []
    (told,) = foretold(story, critical, Subject("gpu", "n", "0"))
    assert told.what == "device"
    assert told.steps == pytest.approx(20, abs=3)
    assert told.seconds == pytest.approx(40 * 20, abs=120)


def test_nothing_is_told_of_a_card_that_does_not_fill_up() -> None:
    rules = shipped("memory_forecast", "warning")
    assert foretold(train(Story(rules, run="r"), 1, 40, 0.0), rules, Subject("gpu", "n", "0")) == []


def test_without_steps_the_blocks_tell_and_no_steps_are_named() -> None:
    rules = shipped("memory_forecast", "warning")
    story = Story(rules)
    while story.now < 4.6 * 3600:
        story.wait(60)
        story.used(30.0 + story.now / 3600 * 10)
    (told,) = foretold(story, rules, Subject("gpu", "n", "0"))
    assert told.steps is None
    assert told.seconds == pytest.approx(0.4 * 3600, rel=0.2)


def test_a_host_that_fills_up_is_told_of_with_its_place() -> None:
    rules = shipped("host_memory_forecast", "critical")
    story = HostStory(rules).steps([600 + 4 * step for step in range(1, 61)])
    assert story.heard == []
    (told,) = foretold(story, rules, Subject("node", "n"))
    assert told.what == "machine"
    assert told.steps == pytest.approx(27, abs=3)
    assert told.seconds == pytest.approx(27 * 150, abs=450)


def test_reading_works_nothing_out() -> None:
    """A reader who asks for another bound than any rule has gets nothing, for nobody has worked it out."""
    rules = shipped("host_memory_forecast", "critical")
    story = HostStory(rules).steps([600 + 4 * step for step in range(1, 61)])
    (condition,) = rules.rules[0].when
    other = type(condition)(until=Quantity(0.9))  # type: ignore[call-arg]
    assert list(other.foretold(story.engine.fleet, Subject("node", "n"), story.now)) == []  # type: ignore[union-attr]
