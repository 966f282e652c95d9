"""The parser of Prometheus' text format: what it takes, what it leaves out, what it refuses."""

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch_agent.engines.exposition import MalformedMetricsError, Metric, parse

WANTED = {"vllm:num_requests_running", "up"}


def _parsed(page: str) -> list[Metric]:
    return list(parse(page, WANTED))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("up 1", 1.0),
        ("up 1.5e+06", 1.5e6),
        ("up\t.5", 0.5),
        ("up{} 3", 3.0),
        ("up -2 1700000000000", -2.0),  # with a timestamp
        ("up 7\r", 7.0),
    ],
)
def test_a_line_is_a_name_and_a_number(line: str, value: float) -> None:
    assert _parsed(line) == [Metric("up", {}, value)]


def test_labels_come_with_their_escapes_undone() -> None:
    (metric,) = _parsed(r'up{a="x,y}",b="say \"hi\"\\\n", c = "",} 1')
    assert metric.labels == {"a": "x,y}", "b": 'say "hi"\\\n', "c": ""}


def test_a_label_may_hold_a_line_break_of_unicode() -> None:
    assert _parsed('up{a="x\u2028y"} 1\nup 2') == [Metric("up", {"a": "x\u2028y"}, 1.0), Metric("up", {}, 2.0)]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf"])
def test_a_value_that_is_no_finite_number_is_left_out(value: str) -> None:
    assert _parsed(f"up {value}") == []


def test_comments_and_other_metrics_are_not_looked_at() -> None:
    page = "# HELP up Whether.\n# TYPE up gauge\nup_total{broken 1\nup 1\nupper{a='x'} nothing\n\n# EOF\n"
    assert _parsed(page) == [Metric("up", {}, 1.0)]


@pytest.mark.parametrize(
    "line",
    [
        "up",
        "up x",
        "up 1_000",
        "up 0x10",
        "up{a=1} 1",
        'up{a="x" 1',
        'up{a="x"b="y"} 1',
        'up{a="x} 1',
        "up 1 2 3",
        "up{",
    ],
)
def test_a_wanted_line_that_is_malformed_is_refused_and_shown(line: str) -> None:
    with pytest.raises(MalformedMetricsError, match="'up"):
        _parsed(line)


def test_a_long_line_of_quotes_is_refused_at_once() -> None:
    with pytest.raises(MalformedMetricsError):
        _parsed("up{" + 'a="\\",' * 100_000)


@given(
    value=st.floats(allow_nan=False, allow_infinity=False),
    labels=st.tuples(
        st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"]))
    ),
)
def test_whatever_prometheus_own_client_writes_is_read_as_it_was_meant(value: float, labels: tuple[str, str]) -> None:
    registry = prometheus_client.CollectorRegistry()
    gauge = prometheus_client.Gauge(
        "vllm:num_requests_running", "A gauge.", ("model_name", "engine"), registry=registry
    )
    gauge.labels(*labels).set(value)
    page = prometheus_client.generate_latest(registry).decode()
    expected = Metric("vllm:num_requests_running", {"model_name": labels[0], "engine": labels[1]}, value)
    assert _parsed(page) == [expected]


@given(st.text())
def test_no_page_whatever_ends_in_another_error(text: str) -> None:
    try:
        metrics = _parsed("up" + text)
    except MalformedMetricsError:
        return
    assert all(metric.name in WANTED for metric in metrics)
