"""Numbers as a person reads them."""

import json
from pathlib import Path
from typing import Any

import pytest

from oomwatch import wire
from oomwatch.figures import figure, judged_figure, named_figure, size, stretch

CASES = json.loads(Path(__file__).with_name("figures.json").read_text(encoding="utf-8"))
SIZES = json.loads(Path(__file__).with_name("sizes.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_figures_carry_their_unit_as_they_do_on_the_page(case: dict[str, Any]) -> None:
    assert {language: figure(case["value"], case["unit"], language) for language in wire.LANGUAGES} == {
        language: case[language] for language in wire.LANGUAGES
    }


@pytest.mark.parametrize("case", SIZES, ids=str)
def test_the_size_of_what_is_stored_has_the_unit_that_suits_it(case: dict[str, Any]) -> None:
    assert size(case["value"]) == case["text"]


def test_the_last_day_is_told_in_hours_as_on_the_page() -> None:
    told = [stretch(seconds, "en") for seconds in (3600, 86399.6, 86400, 100_000, 7 * 86400)]
    assert told == ["1 h", "24 h", "24 h", "27 h 46 min", "7 d"]
    assert stretch(86400, "zh") == "24 小时"


def test_figures_beyond_all_measure_are_written_too() -> None:
    assert figure(1e300, "count", "en").startswith("1,000,000,000,000,000,")


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("used_bytes", 2**30, "1.0 GiB"),
        ("step", 12345, "12,345"),
        ("pid", 12345, "12345"),
        ("preemptions_mean", 7.0, "7"),
        ("process", "python", "python"),
        ("pid", 7, "7"),
    ],
)
def test_a_facts_name_carries_its_unit(name: str, value: wire.Fact, text: str) -> None:
    assert named_figure(name, value, "en") == text


@pytest.mark.parametrize(
    ("facts", "english", "chinese"),
    [
        ({"eta_seconds": 840.0, "eta_steps": 6}, "14 min", "14 分钟"),
        ({"eta_steps": 6}, "6 steps", "6 步"),
        ({"eta_seconds": 3.0}, "now", "现在"),
        ({"eta_steps": 0}, "now", "现在"),
    ],
)
def test_what_a_forecast_judged_is_the_time_left(facts: dict[str, wire.Fact], english: str, chinese: str) -> None:
    value = facts.get("eta_seconds", 0.0)
    assert isinstance(value, float)
    told = wire.Transition(
        id="x", alert="a", severity="info", state="firing", at=1, started_at=1, labels={}, value=value, unit="seconds",
        facts=facts,
    )  # fmt: skip
    assert judged_figure(told, "en") == english
    assert judged_figure(told, "zh") == chinese
