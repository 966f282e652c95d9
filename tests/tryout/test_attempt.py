"""A changed rule file on the database's last hours, beside the rules in force."""

from collections.abc import Callable, Iterator
from itertools import chain, count, repeat
from pathlib import Path

import pytest
from tests.tryout.past import BEGIN, HIGHER, IN_FORCE, LOWER, RULES, peak, readings, store_with

from oomwatch import wire
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import parse_rules
from oomwatch.store.store import Store
from oomwatch.tryout.attempt import Wanted, attempt
from oomwatch.tryout.result import RuleTried, Tryout
from oomwatch.tryout.table import table
from oomwatch.tryout.together import MARK, alike, together

END = BEGIN + 3600
HOUR = Wanted(end_at=END, hours=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two nodes over an hour: a is at 75 GiB for a minute, b at 60."""
    told = [*readings("a", peak(3600)), *readings("b", peak(3600, at=600, gib=60.0))]
    store = store_with(tmp_path, told)
    yield store
    store.close()


def of(text: str) -> RuleSet:
    return parse_rules(text).rules


def row(found: Tryout, alert: str) -> RuleTried:
    (one,) = (row for row in found.rules if row.alert == alert)
    return one


def test_a_lower_bound_fires_more_and_says_where(store: Store) -> None:
    found = attempt(store, of(LOWER), IN_FORCE, HOUR)
    full = row(found, "full")
    assert (full.change, full.tried.count, full.new, full.gone) == ("changed", 2, 1, 0)
    assert full.in_force is not None
    assert full.in_force.count == 1
    assert full.tried.subjects == ("a/0", "b/0")
    assert [one.labels["node"] for one in found.new] == ["b"]
    assert full.tried.first_at == BEGIN + 60 + 20
    assert full.tried.last_at == BEGIN + 600 + 20
    assert found.tried.complete
    assert (found.count, found.in_force_count) == (2, 1)


def test_a_higher_bound_says_what_would_be_gone(store: Store) -> None:
    found = attempt(store, of(HIGHER), IN_FORCE, HOUR)
    assert (row(found, "full").tried.count, row(found, "full").gone) == (0, 1)
    assert [one.labels["node"] for one in found.gone] == ["a"]
    assert found.gone[0].alert == "full"


def test_how_long_an_alert_is_open_is_added_up(store: Store) -> None:
    full = row(attempt(store, IN_FORCE, None, HOUR), "full")
    # It fires after 20 of the 60 seconds, and ends 10 seconds after the last full reading.
    assert full.tried.open_seconds == pytest.approx(50, abs=2)


def test_a_rule_that_is_the_same_is_judged_only_where_that_is_wished(store: Store) -> None:
    found = attempt(store, of(LOWER), IN_FORCE, HOUR)
    assert [one.alert for one in found.rules] == ["full"]
    assert found.same == ("host_full/critical", "silent/critical")
    everything = attempt(store, of(LOWER), IN_FORCE, Wanted(end_at=END, hours=1, judge_all=True))
    assert [(one.alert, one.change) for one in everything.rules] == [
        ("full", "changed"), ("host_full", "same"), ("silent", "same"),
    ]  # fmt: skip
    assert row(everything, "full") == row(found, "full")


def test_rules_that_are_new_or_gone_are_told_so(store: Store) -> None:
    renamed = RULES.replace("alert: full", "alert: fuller")
    found = attempt(store, of(renamed), IN_FORCE, HOUR)
    assert {one.alert: one.change for one in found.rules} == {"fuller": "new", "full": "gone"}
    assert (row(found, "fuller").new, row(found, "full").gone) == (1, 1)
    assert row(found, "full").tried.count == 0


def test_other_words_make_no_other_rule() -> None:
    assert alike(of(RULES.replace("is {value} full", "has {value}")), IN_FORCE) == {
        "full/warning", "host_full/critical", "silent/critical",
    }  # fmt: skip


def test_an_override_makes_another_rule(store: Store) -> None:
    text = RULES + "overrides:\n  - {alert: full, match: {node: a}, set: {enabled: false}}\n"
    found = attempt(store, of(text), IN_FORCE, HOUR)
    assert (row(found, "full").change, row(found, "full").tried.count, row(found, "full").gone) == ("changed", 0, 1)
    back = attempt(store, IN_FORCE, of(text), HOUR)
    assert (row(back, "full").tried.count, row(back, "full").new) == (1, 1)


def test_one_engine_judges_what_differs_once_each() -> None:
    keys = [rule.key for rule in together(of(LOWER), IN_FORCE).rules]
    assert keys == ["full/warning", f"full{MARK}/warning"]


def test_rules_of_silence_are_left_out_and_named(store: Store) -> None:
    assert attempt(store, IN_FORCE, None, HOUR).left_out == ("silent/critical",)


def test_a_warning_before_a_failure_is_told_apart(tmp_path: Path) -> None:
    told = readings("a", peak(400, lasts=340))
    oom = wire.Event(seq=9999, at=BEGIN + 300, run="r", body=wire.DeviceOom(error="torch.OutOfMemoryError", gpu="0"))
    store = store_with(tmp_path, [*told, ("a", oom)])
    found = attempt(store, of(LOWER), IN_FORCE, Wanted(end_at=BEGIN + 400, hours=0.2))
    assert row(found, "full").tried.happened == 1
    assert "happened" not in "\n".join(table(found))  # the alert is in both: neither new nor gone
    store.close()


def ticking(seconds: float) -> Callable[[], float]:
    """A clock that goes on by so much whenever it is looked at."""
    moments = count()
    return lambda: seconds * next(moments)


def test_where_the_budget_ends_first_the_latest_hours_are_judged_and_that_is_said(store: Store) -> None:
    wanted = Wanted(end_at=END, hours=1, budget_seconds=60)
    # Some 10,000 lines an hour: at 10 ms a look that is 100 s.
    found = attempt(store, of(LOWER), IN_FORCE, wanted, clock=ticking(0.01))
    assert not found.tried.complete
    assert BEGIN < found.tried.start_at < END
    assert found.tried.end_at == END
    assert "HOURS fitted into the budget" in table(found)[1]


def test_a_young_database_is_judged_whole_where_its_own_time_fits_the_budget(store: Store) -> None:
    """An hour is kept, a day is asked for: the 23 hours without a reading are no reason to judge less."""
    wanted = Wanted(end_at=END, hours=24, budget_seconds=60)
    found = attempt(store, of(LOWER), IN_FORCE, wanted, clock=ticking(0.003))
    assert found.tried.complete
    assert found.count == 2


def test_a_judgement_that_takes_longer_than_foreseen_stops_and_says_how_far_it_came(store: Store) -> None:
    jumps = chain(repeat(0.0, 2000), count(1.0))
    found = attempt(
        store, of(LOWER), IN_FORCE, Wanted(end_at=END, hours=0.25, budget_seconds=60), clock=lambda: next(jumps)
    )
    assert not found.tried.complete
    assert found.tried.end_at < END


def test_hours_without_a_reading_are_no_mistake(store: Store) -> None:
    found = attempt(store, of(LOWER), IN_FORCE, Wanted(end_at=END + 1e6, hours=1))
    assert (found.count, found.tried.readings, found.tried.complete) == (0, 0, True)


def test_only_the_chosen_node_is_told_of(store: Store) -> None:
    found = attempt(store, of(LOWER), IN_FORCE, Wanted(end_at=END, hours=1, node="b"))
    assert row(found, "full").tried.subjects == ("b/0",)
    assert found.tried.nodes == 1


def test_the_progress_comes_to_its_end(store: Store) -> None:
    shares: list[float] = []
    attempt(store, of(LOWER), IN_FORCE, HOUR, told=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_the_table_says_what_a_person_asks(store: Store) -> None:
    lines = table(attempt(store, of(LOWER), IN_FORCE, HOUR))
    assert lines[1] == "would have fired 2 times; the rules in force: 1 time"
    assert any(line.startswith("full (warning)  changed  2 (a/0, b/0)") for line in lines)
    assert "2 rules the same in both files, and not judged (--all does)" in lines
