"""The search in bulk finds what a search line by line finds."""

from hypothesis import given
from hypothesis import strategies as st

from oomwatch_agent.logs.gates import any_of
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.logs.scan import Chunk
from oomwatch_agent.logs.table import PATTERNS
from oomwatch_agent.logs.trainers import TRAINERS

WORDS = st.text(alphabet="aeystM⏱:' ", min_size=1, max_size=5)
RECORDS = st.sampled_from(
    [*(pattern.example for pattern in PATTERNS), *(line for trainer in TRAINERS for line in trainer.example),
     "(WorkerDict pid=7) Some words.", "", "ordinary text without any envelope", "100%|█████| 3/3 [00:01<00:00, 2it/s]"]
)  # fmt: skip


@given(st.lists(WORDS, min_size=1, max_size=6), st.text(alphabet="aeystM⏱:' \n", max_size=40))
def test_a_text_holds_a_literal_where_the_search_says_so(literals: list[str], text: str) -> None:
    found = any_of(literals).search(text.encode()) is not None
    assert found == any(literal in text for literal in literals)


def one_by_one(lines: list[str]) -> list[Recognised]:
    reader = LineReader()
    return [*(one for number, line in enumerate(lines, 1) for one in reader.feed(line, number)), *reader.end()]


@given(st.lists(RECORDS, max_size=12))
def test_a_log_read_in_bulk_says_what_its_lines_say(lines: list[str]) -> None:
    kept = [f"(Reader pid=5) {line}" for line in lines]  # with envelopes, so that no row goes on in the next
    reader = LineReader()
    chunk = Chunk("".join(line + "\n" for line in kept).encode(), 1)
    assert [*reader.read(chunk), *reader.end()] == one_by_one(kept)
