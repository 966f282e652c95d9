"""Quantities as people write them."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch.units import counted, format_duration, parse_duration, parse_quantity


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("5m", 300), ("1h30m", 5400), ("500ms", 0.5), ("1d", 86400), ("90", 90), (2, 2)]
)
def test_durations_are_read(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5x", "m5", "-3s", "1h-2m", "nan", "inf", True, "1,5s", 10**400])
def test_what_is_no_duration_is_refused_with_the_right_form(text: str | float) -> None:
    with pytest.raises(ValueError, match="30s, 5m or 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("85%", 0.85), (0.85, 0.85), ("70GiB", 70 * 2**30), ("1.5 GiB", 1.5 * 2**30), ("30s", 30), ("-1", -1), (3, 3)],
)
def test_quantities_are_read(text: str | float, value: float) -> None:
    assert parse_quantity(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "text", ["lots", "85 percent", "70GB", "", "%", True, "1e999", "-1e999", 10**400, float("inf"), float("nan")]
)
def test_what_is_no_quantity_is_refused_with_the_right_form(text: str | float) -> None:
    with pytest.raises(ValueError, match="85%, 30s or 70GiB"):
        parse_quantity(text)


def test_what_is_counted_agrees_with_its_number() -> None:
    assert [counted(number, "rule") for number in (0, 1, 2, 12345)] == ["0 rules", "1 rule", "2 rules", "12,345 rules"]
    assert [counted(number, "process", "processes") for number in (1, 2)] == ["1 process", "2 processes"]


@pytest.mark.parametrize("text", ["1" * 200_000, "1." * 100_000, "1h" * 100_000, "9" * 200_000 + "%"])
def test_what_is_too_long_is_refused_at_once_and_shown_in_part(text: str) -> None:
    before = time.process_time()
    for parse in (parse_duration, parse_quantity):
        with pytest.raises(ValueError, match=r"\.\.\.") as refused:
            parse(text)
        assert len(str(refused.value)) < 200
    assert time.process_time() - before < 1  # it took the square of its length: minutes


@given(st.integers(min_value=0, max_value=10**7))
def test_a_formatted_duration_reads_back(seconds: int) -> None:
    assert float(parse_duration(format_duration(seconds))) == seconds
