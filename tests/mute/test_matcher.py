"""Conditions on an alert's labels, as Alertmanager writes and means them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

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
from oomwatch.core.mute.regex import PATTERN_CHARS_MAX, STATES_MAX, Regex

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
        ('node=~"(a"', "never closed"),
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

_LITERALS = some.sampled_from(
    ["a", "b", "-", "0", r"\.", r"\d", r"\w", r"\S", ".", "[ab]", "[^a]", r"[a-c0\d]", "[]a]"]
)
_PATTERNS = some.recursive(
    _LITERALS,
    lambda inner: some.one_of(
        some.lists(inner, min_size=1, max_size=4).map("".join),
        some.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        some.tuples(inner, some.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{1,}", "*?"])).map(
            lambda two: f"({two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@given(pattern=_PATTERNS, text=some.text("ab-0c.\n", max_size=8), ignore_case=some.booleans())
def test_regular_expressions_mean_what_they_mean_in_python(pattern: str, text: str, ignore_case: bool) -> None:
    told = ("(?i)" if ignore_case else "") + pattern
    subject = text.upper() if ignore_case else text
    expected = re.compile(told, re.DOTALL | re.ASCII).fullmatch(subject) is not None
    assert Regex(told).matches(subject) is expected


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("(a", "never closed"),
        ("a)", "too many"),
        ("[a", "never closed"),
        ("*a", "nothing before"),
        ("a**", "cannot be repeated"),
        ("a{2", "begins a repetition"),
        ("a{3,2}", "ends before it begins"),
        ("[b-a]", "ends before it begins"),
        (r"(a)\1", "not understood"),
        (r"\bword", "not understood"),
        ("(?=a)", "only (...) and (?:...)"),
        ("(?P<x>a)", "only (...) and (?:...)"),
        ("a^b", "very ends"),
        ("a\\", "lone"),
        ("(" * 21 + "a" + ")" * 21, "nested"),
        ("a" * (PATTERN_CHARS_MAX + 1), "longer than"),
        (f"(a{{{STATES_MAX // 2}}}){{{STATES_MAX // 2}}}", "repetitions"),
        ("(((a{9}){9}){9}){9}", "repetitions"),
    ],
)
def test_a_pattern_that_is_not_understood_says_why(pattern: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        check(wire.Matcher(label="node", op="=~", value=pattern))


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*a){20}b", "a?" * 60 + "a" * 60, ".*" * 40 + "b"]
)
def test_a_pattern_made_to_take_years_takes_a_step_a_character(pattern: str) -> None:
    """The work is counted and not timed: for each character at most one look at each state."""
    looks = 0

    class Counted(Regex):
        def _step(self, states: tuple[int, ...], char: str) -> tuple[int, ...]:
            nonlocal looks
            looks += len(states)
            return super()._step(states, char)

    text = "a" * wire.NAME_CHARS_MAX
    counted = Counted(pattern)
    counted.matches(text)
    assert looks <= len(text) * STATES_MAX
    assert counted.matches("a" * 60 + "b") or pattern.startswith("a?")
