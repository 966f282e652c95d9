"""Numbers as a person reads them."""

import pytest

from oomwatch import wire
from oomwatch.figures import duration, figure, judged_figure, named_figure


@pytest.mark.parametrize(
    ("seconds", "english", "chinese"),
    [
        (0, "0 s", "0 秒"),
        (0.7, "0.7 s", "0.7 秒"),
        (9.97, "10 s", "10 秒"),
        (45, "45 s", "45 秒"),
        (100, "1 min 40 s", "1 分钟 40 秒"),
        (120, "2 min", "2 分钟"),
        (725, "12 min", "12 分钟"),
        (7500, "2 h 5 min", "2 小时 5 分钟"),
        (273600, "3 d 4 h", "3 天 4 小时"),
    ],
)
def test_durations(seconds: float, english: str, chinese: str) -> None:
    assert duration(seconds, "en") == english
    assert duration(seconds, "zh") == chinese


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.934, "ratio", "93 %"),
        (0.9996, "ratio", "99.9 %"),  # 100 means full
        (1.0, "ratio", "100 %"),
        (0.994, "ratio", "99.4 %"),
        (74.52 * 2**30, "bytes", "74.5 GiB"),
        (7.333, "per_minute", "7.33 per minute"),
        (81.6, "celsius", "82 °C"),
        (3, "count", "3"),
    ],
)
def test_figures_carry_their_unit(value: float, unit: str, text: str) -> None:
    assert figure(value, unit, "en") == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [("used_bytes", 2**30, "1.0 GiB"), ("step", 12345, "12345"), ("process", "python", "python"), ("pid", 7, "7")],
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
