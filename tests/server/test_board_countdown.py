"""What is shown of a forecast is as of now, though it is judged once a step and may be quiet in between."""

import pytest

from oomwatch import wire
from oomwatch.core.countdown import counted_down
from oomwatch.core.lifecycle import Episode
from oomwatch.core.rule import Rule
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import INACTIVE, Verdict
from oomwatch.rulefile import parse_rules
from oomwatch.service.board import Board
from oomwatch.wording import put_into_words

RULES = parse_rules(
    "rules: [{alert: soon, severity: critical, when: {kind: forecast}, "
    "summary: 'full in {eta_seconds}, {eta_steps} steps'}]",
    "alerts.yaml",
).rules
(RULE,) = RULES.rules
assert isinstance(RULE, Rule)
FACTS: dict[str, wire.Fact] = {"eta_seconds": 70.0, "eta_low_seconds": 30.0, "eta_steps": 7, "phase": "rollout"}
FORETOLD = Verdict("active", 70.0, 1800.0, "seconds", FACTS)


def fired(verdict: Verdict = FORETOLD, gpu: str = "0") -> Episode:
    episode = Episode(RULE, Subject("gpu", "n", gpu), {"node": "n", "gpu": gpu}, 100.0)
    episode.judge(verdict, 100.0)
    episode.fired_at = 100.0
    return episode


def board() -> Board:
    return Board(lambda said: put_into_words(said, RULES, simulated=False))


def test_the_time_left_and_its_words_go_down_between_two_judgements() -> None:
    episode, shown = fired(), board()
    assert [one.value for one in shown.refresh([episode], 100.0, except_for=frozenset())] == [70.0]
    episode.judge(FORETOLD, 109.0)  # the same step's forecast still
    (told,) = shown.refresh([episode], 110.0, except_for=frozenset())
    assert (told.value, told.facts["eta_steps"], told.facts["eta_low_seconds"]) == (60.0, 6, 20.0)
    assert told.texts["en"].summary == "full in 1 min, 6 steps"


def test_a_long_time_left_is_not_told_every_few_seconds() -> None:
    far = FORETOLD._replace(value=1000.0, facts=FACTS | {"eta_seconds": 1000.0, "eta_steps": 100})
    episode, shown = fired(far), board()
    shown.refresh([episode], 100.0, except_for=frozenset())
    told_at = [at for at in range(101, 1001) if shown.refresh([episode], float(at), except_for=frozenset())]
    assert told_at[0] == 201  # a tenth of it has passed
    assert 15 <= len(told_at) <= 40


def test_it_goes_down_while_the_forecast_is_quiet_and_never_below_nothing() -> None:
    episode, shown = fired(), board()
    shown.refresh([episode], 100.0, except_for=frozenset())
    episode.judge(INACTIVE, 111.0)
    (told,) = shown.refresh([episode], 130.0, except_for=frozenset())
    assert told.value == 40.0
    (told,) = shown.refresh([episode], 300.0, except_for=frozenset())
    assert (told.value, told.facts["eta_steps"]) == (0.0, 0)


def test_a_new_forecast_is_counted_from_its_own_time() -> None:
    episode, shown = fired(), board()
    episode.judge(FORETOLD._replace(value=50.0, facts=FACTS | {"eta_seconds": 50.0, "eta_steps": 5}), 111.0)
    assert shown.view(episode, 111.0).value == 50.0
    assert shown.view(episode, 121.0).value == 40.0


@pytest.mark.parametrize("unit", ["ratio", "seconds"])
def test_what_foretells_nothing_stays_as_it_is(unit: str) -> None:
    told = fired(Verdict("active", 0.9, 0.85, unit, {})).transition("firing", 100.0)
    assert counted_down(told, 60.0) == told


def test_where_very_many_change_at_once_each_has_its_turn_and_the_new_ones_come_first() -> None:
    episodes, shown = [fired(gpu=str(gpu)) for gpu in range(7)], board()
    told = [shown.refresh(episodes, at, except_for=frozenset(), at_most=3) for at in (100.0, 101.0, 102.0)]
    assert [[one.labels["gpu"] for one in some] for some in told] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]
    more = [*episodes, fired(gpu="7")]
    told = [shown.refresh(more, at, except_for=frozenset(), at_most=3) for at in (110.0, 111.0, 112.0)]
    assert [[one.labels["gpu"] for one in some] for some in told] == [["7", "0", "1"], ["2", "3", "4"], ["5", "6"]]
