"""The tables of patterns: each entry proves itself, and none is so loose that text about errors passes."""

from pathlib import Path

import pytest

from oomwatch_agent.logs.pattern import Pattern
from oomwatch_agent.logs.phases import RESHARD_MARKERS
from oomwatch_agent.logs.reader import PATTERNS, LineReader

NEGATIVE = Path(__file__).parent / "fixtures" / "negative.log"
NEGATIVE_LINES = NEGATIVE.read_text(encoding="utf-8").splitlines()
SAMPLE_WRITER = "(TaskRunner pid=4001)"  # its printed sample quotes true errors: it is nothing only as a whole
ALONE = [line for line in NEGATIVE_LINES if not line.startswith(SAMPLE_WRITER)]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_every_pattern_recognises_its_example(pattern: Pattern) -> None:
    found = LineReader().feed(pattern.example, 1)
    assert tuple(type(one.body).__name__ for one in found) == pattern.expect


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_every_example_is_matched_by_its_own_pattern(pattern: Pattern) -> None:
    assert pattern.gate in pattern.example
    found = LineReader().feed(f"(WorkerDict pid=7, ip=192.0.2.9) {pattern.example}", 1)
    assert tuple(type(one.body).__name__ for one in found) == pattern.expect


def test_pattern_names_are_unique() -> None:
    names = [pattern.name for pattern in PATTERNS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("line", ALONE, ids=range(len(ALONE)))
def test_a_line_that_is_no_event_gives_none(line: str) -> None:
    assert LineReader().feed(line, 1) == ()


def test_the_negative_lines_together_give_nothing_either() -> None:
    reader = LineReader()
    assert [found for number, line in enumerate(NEGATIVE_LINES, 1) for found in reader.feed(line, number)] == []


def test_markers_are_a_closed_list_without_repetition() -> None:
    assert len(set(RESHARD_MARKERS)) == len(RESHARD_MARKERS) == 7
