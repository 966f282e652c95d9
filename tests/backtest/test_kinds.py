"""What a file is, told by what stands in it."""

import gzip
from pathlib import Path

import pytest
from tests.backtest.inputs import FIXTURES, leak_csv, sources, step_line, write

from oomwatch.backtest.kinds import kind_of, recognised
from oomwatch.backtest.source import InputError

TRACES = Path(__file__).resolve().parents[1] / "replay" / "traces"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (FIXTURES / "verl-0.9.1-leak" / "driver.log", "log"),
        (FIXTURES / "verl-0.9.1-leak" / "metrics.jsonl", "metrics"),
        (TRACES / "leak.jsonl", "trace"),
    ],
    ids=["log", "metrics", "trace"],
)
def test_files_are_told_by_their_content_packed_or_not(tmp_path: Path, path: Path, kind: str) -> None:
    assert kind_of(path) == kind
    packed = tmp_path / "whatever"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert kind_of(packed) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("series,t_seconds,used_bytes", "csv"),
        ("t_seconds, used_bytes, series", "csv"),
        ("timestamp, index, memory.used [MiB], memory.total [MiB]", "nvidia-smi"),
        ("index, memory.used, memory.total", "nvidia-smi"),
        ("2026/11/29 13:50:00.000, 0, 100 MiB, 200 MiB", "nvidia-smi"),
        ('{"step": 3, "data": {"timing_s/gen": NaN}}', "metrics"),
        ('{"advance": 5.0}', "trace"),
        ("2026-11-29 13:50:26,202\tINFO worker.py:2038 -- Started a local Ray instance.", None),
        ("a, b, c", None),
        ('{"step": 3}', None),
        ("", None),
    ],
)
def test_a_first_line_tells_what_a_table_is(tmp_path: Path, line: str, kind: str | None) -> None:
    assert recognised(write(tmp_path / "file", [line])) == kind


def test_a_log_may_chatter_long_before_it_tells_anything(tmp_path: Path) -> None:
    chatter = ["model output that goes on and on, and says nothing of memory"] * 20_000
    assert kind_of(write(tmp_path / "a.log", [*chatter, step_line(1)])) == "log"


def test_a_run_folder_may_hold_anything_else(tmp_path: Path) -> None:
    write(tmp_path / "train.log", [step_line(1)])
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "model.bin").write_bytes(b"step:1 - \0\0\0\0\0\0" * 1000)
    (tmp_path / "empty.txt").touch()
    assert len(sources(tmp_path)) == 1


def test_a_trace_among_a_runs_files_is_an_input_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "train.log", [step_line(1)])
    write(tmp_path / "trace.jsonl", ['{"advance": 5.0}'])
    with pytest.raises(InputError, match=r"trace\.jsonl: a trace is an input of its own"):
        sources(tmp_path)


def test_a_file_that_is_no_gzip_after_all_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(leak_csv(tmp_path / "b.csv.gz").read_bytes()[:200])
    with pytest.raises(InputError, match=r"a\.csv\.gz: cannot be read: Compressed file ended"):
        sources(path)


def test_an_empty_trace_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "cut.jsonl", [])
    path.write_bytes(b'{"advance": 5.0}')
    with pytest.raises(InputError, match=r"cut\.jsonl: an empty trace"):
        sources(path)
