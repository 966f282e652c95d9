"""Conditions on an alert's labels, as Alertmanager writes and means them."""

import re

import pytest

from oomwatch import wire
from oomwatch.core.mute.matcher import (
    TEXT_CHARS_MAX,
    check,
    labels_of,
    matches,
    matches_everything,
    parse_matcher,
    text_of,
)
from oomwatch.core.mute.regex import PATTERN_CHARS_MAX

LABELS = {"alert": "gpu_memory_high", "severity": "critical", "node": "gpu-07", "gpu": "3"}


def _holds(*texts: str) -> bool:
    return matches([parse_matcher(text) for text in texts], LABELS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('node="gpu-07"', wire.Matcher(label="node", op="=", value="gpu-07")),
        ("node=gpu-07", wire.Matcher(label="node", op="=", value="gpu-07")),
        (' severity =~ "warning|critical" ', wire.Matcher(label="severity", op="=~", value="warning|critical")),
        ('run!=""', wire.Matcher(label="run", op="!=", value="")),
        ("run=", wire.Matcher(label="run", op="=", value="")),
        (r'node!~"gpu-\d+"', wire.Matcher(label="node", op="!~", value=r"gpu-\d+")),
        (r'run="say \"hi\" \\ there"', wire.Matcher(label="run", op="=", value=r'say "hi" \ there')),
        ("run=a=b", wire.Matcher(label="run", op="=", value="a=b")),
    ],
)
def test_a_matcher_is_read_as_people_write_it(text: str, expected: wire.Matcher) -> None:
    assert parse_matcher(text) == expected
    assert parse_matcher(text_of(expected)) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("gpu-07", "is no matcher"),
        ("", "is no matcher"),
        ("nod=x", 'no label "nod"'),
        ('node="x', "quotation marks"),
        ('node="x"y"', "quotation marks"),
        ('node=~"(a"', "missing )"),
        ("node=" + "x" * TEXT_CHARS_MAX, "longer than"),
    ],
)
def test_a_matcher_that_cannot_be_meant_says_why(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        parse_matcher(text)


def test_all_matchers_have_to_hold() -> None:
    assert _holds('node="gpu-07"', 'severity="critical"')
    assert not _holds('node="gpu-07"', 'severity="warning"')


def test_a_label_that_an_alert_lacks_counts_as_empty() -> None:
    assert _holds("run=")
    assert _holds('run=~".*"')
    assert _holds('run!="x"')
    assert not _holds('run=~".+"')


def test_a_regular_expression_has_to_match_the_whole_label() -> None:
    assert _holds('node=~"gpu-.*"')
    assert _holds('node=~"^gpu-07$"')
    assert _holds('node=~"x|gpu-07"')
    assert not _holds('node=~"gpu"')
    assert _holds('node!~"gpu"')


def test_matchers_see_the_rules_name_and_the_severity_that_people_are_told() -> None:
    told = wire.Transition(
        id="1", alert="a", severity="info", lowered_from="critical", state="firing", at=1, started_at=1,
        labels={"node": "n"},
    )  # fmt: skip
    assert labels_of(told) == {"alert": "a", "severity": "info", "node": "n"}


@pytest.mark.parametrize(
    ("text", "is_everything"),
    [
        ('alert=~".*"', True),
        ('severity=~"info|warning|critical"', True),
        ('node!="gpu-07"', True),  # as good as
        ('severity!="critical"', False),
        ('node=~".+"', False),
        ('alert="gpu_memory_high"', False),
    ],
)
def test_matchers_that_leave_nothing_out_are_noticed(text: str, is_everything: bool) -> None:
    assert matches_everything([parse_matcher(text)]) is is_everything


# ---------------------------------------------------------------- regular expressions


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("(a", "missing )"),
        ("a)", "unexpected )"),
        ("[a", "missing ]"),
        ("*a", "no argument for repetition operator"),
        ("a{3,2}", "invalid repetition size"),
        (r"(a)\1", "invalid escape sequence"),
        ("(?=a)", "invalid perl operator"),
        ("a\\", "trailing \\"),
        ("a" * (PATTERN_CHARS_MAX + 1), "longer than"),
        (r"((\pL{30}){30})", "too large"),
    ],
)
def test_a_pattern_that_is_not_understood_says_why(pattern: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        check(wire.Matcher(label="node", op="=~", value=pattern))


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a|aa)+b", ".*" * 40 + "b", "a?" * 60 + "a" * 60])
def test_a_pattern_made_to_take_years_is_answered(pattern: str) -> None:
    """With Python's own expressions this test would not end."""
    assert not matches([wire.Matcher(label="node", op="=~", value=pattern)], {"node": "a" * 59 + "c"})
