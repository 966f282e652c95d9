"""Following real files through everything that happens to logs."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch_agent.logs.scan import MAX_LINE_BYTES, every
from oomwatch_agent.logs.splitter import LineSplitter
from oomwatch_agent.stdin_tail import StdinTail
from oomwatch_agent.tail import Begin, Tail

MUCH = 1 << 24


class Line(NamedTuple):
    """A line, its number, and the stage that it was read in."""

    text: str
    number: int
    stage: str


class Followed:
    """A file and its tail."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "train.log"
        self.tail = Tail(self.path, "live")

    def write(self, content: bytes, mode: str = "ab") -> None:
        with self.path.open(mode) as file:
            file.write(content)

    def lines(self, budget_bytes: int = MUCH) -> list[Line]:
        parts = self.tail.poll(budget_bytes)
        return [Line(row.text, row.number, part.stage) for part in parts for row in every(part.chunk)]

    def texts(self, budget_bytes: int = MUCH) -> list[str]:
        return [line.text for line in self.lines(budget_bytes)]

    def begin(self, begin: Begin) -> None:
        self.tail = Tail(self.path, begin)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Followed]:
    followed = Followed(tmp_path)
    yield followed
    followed.tail.close()


def test_a_file_that_appears_later_is_read_from_its_beginning(log: Followed) -> None:
    assert log.texts() == []
    assert log.tail.waiting
    log.write(b"one\ntwo\n")
    assert log.texts() == ["one", "two"]
    assert not log.tail.waiting


def test_a_partial_last_line_waits_for_its_end(log: Followed) -> None:
    log.write(b"step:1 - a")
    assert log.texts() == []
    log.write(b":2\nnext")
    assert log.texts() == ["step:1 - a:2"]


def test_progress_bars_are_split_at_carriage_returns_and_numbered_as_editors_do(log: Followed) -> None:
    log.write(b"a\r 10%\r 20%\rstep\nb\r\n\nc\n")
    assert [(line.text, line.number) for line in log.lines()] == [
        ("a", 1), (" 10%", 1), (" 20%", 1), ("step", 1), ("b", 2), ("c", 4),
    ]  # fmt: skip


def test_a_carriage_return_and_its_line_feed_may_come_apart(log: Followed) -> None:
    log.write(b"a\r")
    assert log.texts() == ["a"]
    log.write(b"\nb\n")
    assert [(line.text, line.number) for line in log.lines()] == [("b", 2)]


def test_nul_bytes_are_left_out_and_broken_utf8_is_replaced(log: Followed) -> None:
    log.write(b"\0\0\0a\0b\xff\n")
    assert log.texts() == ["ab�"]


def test_a_multibyte_letter_may_come_in_two_writes(log: Followed) -> None:
    letter = "█".encode()
    log.write(letter[:1])
    assert log.texts() == []
    log.write(letter[1:] + b"\n")
    assert log.texts() == ["█"]


def test_a_renamed_file_is_read_to_its_end_before_the_new_one(log: Followed) -> None:
    log.write(b"one\n")
    assert log.texts() == ["one"]
    log.write(b"two\nlast words")
    log.path.rename(log.path.with_suffix(".1"))
    log.write(b"three\n")
    assert log.texts() == ["two", "last words", "three"]
    log.write(b"four\n")
    assert [(line.text, line.number) for line in log.lines()] == [("four", 2)]


def test_writes_to_the_old_file_before_the_new_one_exists_are_read(log: Followed) -> None:
    log.write(b"one\n")
    log.texts()
    moved = log.path.rename(log.path.with_suffix(".1"))
    with moved.open("ab") as file:
        file.write(b"two\n")
    assert log.texts() == ["two"]
    assert not log.tail.waiting


def test_copytruncate_begins_again(log: Followed) -> None:
    log.write(b"one long line\nand a part")
    assert log.texts() == ["one long line"]
    log.write(b"new\n", mode="wb")
    assert [(line.text, line.number) for line in log.lines()] == [("new", 1)]


def test_a_truncated_file_that_grew_past_the_old_place_begins_again(log: Followed) -> None:
    log.write(b"one\n")
    assert log.texts() == ["one"]
    log.write(b"quite another, and longer\nsecond\n", mode="wb")
    assert log.texts() == ["quite another, and longer", "second"]


@pytest.mark.parametrize("head", [b"", b"x" * 200 + b"\n"], ids=["short", "long, with the same head"])
def test_a_file_that_was_truncated_and_grew_to_the_same_size_begins_again(log: Followed, head: bytes) -> None:
    log.write(head + b"one\n")
    log.texts()
    log.write(head + b"two\n", mode="wb")
    assert log.texts()[-1:] == ["two"]


@pytest.mark.parametrize("begin", ["backlog", "end"])
def test_what_was_there_at_first_sight_may_be_replaced_by_as_much(log: Followed, begin: Begin) -> None:
    log.write(b"old\n")
    log.begin(begin)
    log.texts()
    log.write(b"new\n", mode="wb")
    assert [(line.text, line.stage) for line in log.lines()] == [("new", "live")]


def test_a_resting_file_that_was_written_anew_to_the_same_size_is_read(log: Followed) -> None:
    log.write(b"one\n")
    log.texts()
    for _ in range(60):
        log.texts()
    assert log.tail.resting
    log.write(b"two\n", mode="wb")
    os.utime(log.path, (2_000_000_000, 2_000_000_000))
    assert log.texts() == ["two"]


def test_a_file_that_was_only_touched_is_not_read_again(log: Followed) -> None:
    log.write(b"one\n")
    log.texts()
    for _ in range(60):
        log.texts()
    os.utime(log.path, (2_000_000_000, 2_000_000_000))
    assert log.texts() == []


def test_a_writer_that_keeps_its_place_after_a_truncation_leaves_a_hole(log: Followed) -> None:
    with log.path.open("wb") as writer:
        writer.write(b"one\n")
        writer.flush()
        assert log.texts() == ["one"]
        os.truncate(log.path, 0)
        writer.write(b"two\n")  # at offset 4: the file now begins with NULs
    assert log.texts() == ["two"]


def test_a_deleted_file_is_waited_for_and_its_successor_is_new(log: Followed) -> None:
    log.write(b"one\n")
    log.texts()
    log.path.unlink()
    for _ in range(60):
        assert log.texts() == []
    log.texts()
    assert log.tail.waiting
    log.write(b"uno\ndos\n")
    assert log.texts() == ["uno", "dos"]


def test_an_idle_file_gives_its_handle_back_and_goes_on_where_it_was(log: Followed) -> None:
    log.write(b"one\npart")
    log.texts()
    for _ in range(60):
        log.texts()
    assert log.tail.resting
    log.write(b"ed\n")
    assert [(line.text, line.number) for line in log.lines()] == [("parted", 2)]


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    """While the file may not be read; root, who may read everything, is somebody else meanwhile."""
    user, nobody = os.geteuid(), 65534
    path.chmod(0)
    if user == 0:
        os.seteuid(nobody)
    try:
        yield
    finally:
        os.seteuid(user)
        path.chmod(0o600)


def test_a_file_that_may_not_be_read_is_reported_with_a_remedy_and_read_once_it_may(log: Followed) -> None:
    log.write(b"one\n")
    with forbidden(log.path):
        assert log.texts() == []
        assert log.tail.problem == "cannot read train.log: permission denied; run the agent as a user who may read it"
    assert log.texts() == ["one"]
    assert log.tail.problem is None


def problem_of(path: Path) -> str:
    """What the tail of `path` complains of; its handle is closed."""
    tail = Tail(path, "backlog")
    try:
        assert tail.poll(MUCH) == []
        assert tail.problem is not None
        return tail.problem
    finally:
        tail.close()


def test_a_folder_in_place_of_a_file_is_reported_with_a_remedy(tmp_path: Path) -> None:
    remedy = "name the files in it with a quoted glob, such as 'folder/*.log'"
    assert problem_of(tmp_path) == f"cannot follow {tmp_path.name}: it is a folder; {remedy}"


def test_a_pipe_is_left_alone_and_standard_input_named_instead(tmp_path: Path) -> None:
    pipe = tmp_path / "train.log"
    os.mkfifo(pipe)
    assert problem_of(pipe) == "cannot follow train.log: it is a pipe; read it as standard input: --log - < pipe"
    with pytest.raises(OSError, match="No such device or address"):
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # nobody has it open for reading


def test_a_socket_and_a_device_are_named_as_such(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        assert problem_of(tmp_path / "s").startswith("cannot follow s: it is a socket; name a file")
    assert (
        problem_of(Path(os.devnull))
        == "cannot follow null: it is a device; name a file, or read standard input: --log -"
    )


def test_a_file_that_takes_the_place_of_a_pipe_is_read(log: Followed) -> None:
    os.mkfifo(log.path)
    assert log.texts() == []
    log.path.unlink()
    log.write(b"one\n")
    assert log.texts() == ["one"]
    assert log.tail.problem is None


def test_a_huge_file_is_read_in_parts_and_tells_how_much_is_left(log: Followed) -> None:
    log.write(b"0123456789\n" * 1000)
    first = log.texts(budget_bytes=1100)
    assert len(first) == 100
    assert (log.tail.behind_bytes, log.tail.size_bytes) == (9900, 11000)
    rest = [text for _ in range(9) for text in log.texts(budget_bytes=1100)]
    assert len(rest) == 900
    assert log.tail.behind_bytes == 0


def test_what_was_there_at_first_sight_is_backlog_and_the_rest_live(log: Followed) -> None:
    log.write(b"old\nhalf")
    log.begin("backlog")
    old = log.lines()
    log.write(b" new\nnew\n")
    assert [(line.text, line.stage) for line in old + log.lines()] == [
        ("old", "backlog"), ("half new", "live"), ("new", "live"),
    ]  # fmt: skip


def test_what_is_written_while_the_backlog_is_read_is_live(log: Followed) -> None:
    log.write(b"old\nold\n")
    log.begin("backlog")
    lines = log.lines(4)
    log.write(b"new\n")
    lines += log.lines()
    assert [line.stage for line in lines] == ["backlog", "backlog", "live"]


def test_from_now_on_the_head_is_told_as_such_and_the_rest_passed_over(log: Followed) -> None:
    log.write(b":job_id:1\n" + b"x" * 100 + b"\n")
    log.begin("end")
    lines = log.lines()
    log.write(b"new\n")
    lines += log.lines()
    assert [(line.text[:9], line.number, line.stage) for line in lines] == [
        (":job_id:1", 1, "head"), ("x" * 9, 2, "head"), ("new", 3, "live"),
    ]  # fmt: skip


def test_from_now_on_in_a_long_file_line_numbers_are_not_known(log: Followed) -> None:
    log.write(b"0123456789abcde\n" * 50_000)
    log.begin("end")
    heads = log.lines()
    log.write(b"new\n")
    assert {line.stage for line in heads} == {"head"}
    assert [(line.text, line.number, line.stage) for line in log.lines()] == [("new", 0, "live")]


def test_an_endless_line_is_cut_and_what_follows_is_read() -> None:
    splitter = LineSplitter()
    lines = [row for _ in range(5) for row in every(splitter.feed(b"x" * MAX_LINE_BYTES))]
    lines += every(splitter.feed(b"rest\nnext\n"))
    assert [(len(row.text), row.number) for row in lines] == [(MAX_LINE_BYTES, 1), (4, 2)]


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_how_bytes_are_dealt_makes_no_difference(blocks: list[bytes]) -> None:
    dealt, whole = LineSplitter(), LineSplitter()
    chunks = [*(dealt.feed(block) for block in blocks), dealt.flush()]
    expected = [*every(whole.feed(b"".join(blocks))), *every(whole.flush())]
    assert [row for chunk in chunks for row in every(chunk)] == expected


def test_standard_input_is_read_as_it_comes_and_to_its_end() -> None:
    reading, writing = os.pipe()
    tail = StdinTail(reading)
    try:
        assert tail.poll(MUCH) == []
        os.write(writing, b"one\ntw")
        assert [row.text for chunk in tail.poll(MUCH) for row in every(chunk)] == ["one"]
        os.write(writing, b"o\nlast")
        os.close(writing)
        assert [row.text for chunk in tail.poll(MUCH) for row in every(chunk)] == ["two", "last"]
        assert tail.ended
        assert tail.poll(MUCH) == []
    finally:
        os.close(reading)
