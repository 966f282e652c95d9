"""Recorded traces say what they said when they were recorded."""

import msgspec
import pytest
from tests.replay.make_traces import RULES, SCENARIOS, TRACES, files

from oomwatch.rulefile import read_rules
from oomwatch.trace import read_trace, replay

EACH = pytest.mark.parametrize("name", SCENARIOS)


def _said(name: str) -> list[bytes]:
    rules = read_rules(RULES).rules
    return [msgspec.json.encode(one) for one in replay(read_trace(TRACES / f"{name}.jsonl"), rules)]


@EACH
def test_a_trace_says_what_is_written_beside_it(name: str) -> None:
    expected = (TRACES / f"{name}.transitions.jsonl").read_bytes().splitlines()
    assert _said(name) == expected
    assert expected


@EACH
def test_a_trace_says_the_same_twice(name: str) -> None:
    assert _said(name) == _said(name)


@EACH
def test_every_alert_of_a_trace_fires_before_it_ends_and_once(name: str) -> None:
    states: dict[str, list[str]] = {}
    for line in _said(name):
        one = msgspec.json.decode(line)
        if one.get("change") is None:
            states.setdefault(one["id"], []).append(one["state"])
    assert all(story in (["firing"], ["firing", "resolved"]) for story in states.values())


def test_the_traces_are_those_that_the_script_makes() -> None:
    for path, content in files():
        assert path.read_bytes() == content, f"{path.name}: run python -m tests.replay.make_traces and see what changed"


def test_no_trace_lies_about_that_the_script_does_not_make() -> None:
    assert set(TRACES.iterdir()) == {path for path, _ in files()}


def test_each_kind_of_trouble_is_recorded() -> None:
    alerts = {msgspec.json.decode(line)["alert"] for name in SCENARIOS for line in _said(name)}
    assert {"gpu_memory_high", "torch_reserved_high", "rollout_time_jump", "host_memory_high"} <= alerts
    assert {"out_of_memory", "agent_silent"} <= alerts
