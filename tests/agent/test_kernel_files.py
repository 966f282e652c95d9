"""A file of the kernel that is kept open tells what is so now, also where it was exchanged or comes in parts."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from oomwatch_agent.kernel_files import KeptFile


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    path.write_text("first: 1 kB\nsecond 2\n")
    return path


@pytest.fixture
def file(table: Path) -> Iterator[KeptFile]:
    file = KeptFile(table)
    yield file
    file.close()


def test_each_reading_tells_what_is_so_now(table: Path, file: KeptFile) -> None:
    assert file.read_fields("first", "second") == {"first": 1, "second": 2}
    table.write_text("first: 3 kB\n")
    assert file.read_fields("first", "second") == {"first": 3}
    assert file.read_short() == b"first: 3 kB\n"


def test_a_field_far_down_in_a_long_table_is_found(table: Path, file: KeptFile) -> None:
    table.write_text("".join(f"name{number} {number}\n" for number in range(20_000)))
    assert file.read_fields("name1", "name19999") == {"name1": 1, "name19999": 19999}


def test_one_that_is_not_there_is_empty_and_found_once_it_is(tmp_path: Path) -> None:
    file = KeptFile(tmp_path / "later")
    assert (file.read_short(), file.read_fields("first")) == (b"", {})
    (tmp_path / "later").write_text("first 1\n")
    assert file.read_fields("first") == {"first": 1}
    file.close()


def test_a_closed_one_is_opened_again(file: KeptFile) -> None:
    assert file.read_fields("second") == {"second": 2}
    file.close()
    file.close()
    assert file.read_fields("second") == {"second": 2}
