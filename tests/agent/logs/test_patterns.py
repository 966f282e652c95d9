"""The tables of patterns: each entry proves itself, and none is so loose that text about errors passes."""

from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.logs.gathering import Trainer
from oomwatch_agent.logs.pattern import Pattern
from oomwatch_agent.logs.phases import HEADS
from oomwatch_agent.logs.reader import LineReader
from oomwatch_agent.logs.scan import Chunk
from oomwatch_agent.logs.table import PATTERNS
from oomwatch_agent.logs.trainers import TRAINERS

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


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_every_example_is_found_in_the_midst_of_a_log(pattern: Pattern) -> None:
    chunk = Chunk(f"A quiet line.\n{pattern.example}\n(WorkerDict pid=7) Another.\n".encode(), 1)
    reader = LineReader()
    found = [*reader.read(chunk), *reader.end()]
    assert tuple(type(one.body).__name__ for one in found) == pattern.expect
    assert {one.line for one in found} == {2}


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda trainer: trainer.name)
def test_every_trainers_example_is_found_in_the_midst_of_a_log(trainer: Trainer) -> None:
    lines = "\n".join(trainer.example)
    reader = LineReader()
    found = [*reader.read(Chunk(f"A quiet line.\n{lines}\nAnother.\n".encode(), 1)), *reader.end()]
    assert [type(one.body) for one in found] == [wire.Step]


@pytest.mark.parametrize("trainer", TRAINERS, ids=lambda trainer: trainer.name)
def test_every_trainers_example_is_one_step(trainer: Trainer) -> None:
    assert any(gate in trainer.example[0] for gate in trainer.gates)
    reader = LineReader()
    found = [*(one for line in trainer.example for one in reader.feed(line, 1)), *reader.end()]
    assert [type(one.body) for one in found] == [wire.Step]


def test_names_are_unique() -> None:
    names = [*(pattern.name for pattern in PATTERNS), *(trainer.name for trainer in TRAINERS)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("line", ALONE, ids=range(len(ALONE)))
def test_a_line_that_is_no_event_gives_none(line: str) -> None:
    assert LineReader().feed(line, 1) == ()


def test_the_negative_lines_together_give_nothing_either() -> None:
    reader = LineReader()
    assert [found for number, line in enumerate(NEGATIVE_LINES, 1) for found in reader.feed(line, number)] == []


def test_markers_are_a_closed_list_without_repetition() -> None:
    assert len(set(wire.RESHARD_MARKERS)) == len(wire.RESHARD_MARKERS)
    assert {head.marker for head in HEADS.values() if head.marker} <= set(wire.RESHARD_MARKERS)
