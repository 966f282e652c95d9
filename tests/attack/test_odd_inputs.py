"""Files as they lie about in the world, given to backtest, record and replay."""

import gzip
import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.backtest.inputs import FIXTURES, GIB, judged, leak_csv, only, sources, with_capacity, write

from oomwatch import wire
from oomwatch.__main__ import main
from oomwatch.trace import read_trace

HEADER = "series,t_seconds,used_bytes"
SMI = "timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]"
DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000


def smi_row(second: int, *, gpu: str = "0", used: str = "20000 MiB", day: str = "2026/01/31", use: str = "5 %") -> str:
    return f"{day} 12:00:{second:02d}.000, {gpu}, H100, {used}, 81559 MiB, {use}"


def smi(rows: Iterable[str]) -> list[str]:
    return [SMI, *rows]


# ---------------------------------------------------------------- refused with a sentence, never with a traceback


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (f"{HEADER}\ra,1,5\r", "no row of a table"),
        (f"{HEADER}\na\r\x1b[31m,1,5\n", "no row of a table"),
        (f'{HEADER}\n"{"x" * 200_000}",1,5\n', "no row of a table"),
        (f'{{"step": 1, "data": {DEEP}}}\n', "nothing in it is recognised"),
        (f'{{"step": 1, "data": {{"timing_s/gen": 1}}}}\n{{"step": 2, "data": {DEEP}}}\n{{}}\n', "is expected"),
        (f'{{"advance": 1.0}}\n{{"advance": 2.0, "more": {DEEP}}}\n', "recursion"),
        ("\n".join(smi([smi_row(0, used="-5 MiB")])), "out of all bounds"),
        ("\n".join(smi([smi_row(0, used="99999999999999999999 MiB")])), "out of all bounds"),
        ("\n".join(smi([smi_row(0, gpu="")])), "tells no card"),
        ("\n".join(smi([smi_row(0, gpu="x" * 300)])), "tells no card"),
        ("\n".join(smi(smi_row(0, gpu=str(gpu)) for gpu in range(1100))), "more than 1024 cards"),
        ("\n".join(smi([smi_row(0, day="0001/01/01")])), "is no time of nvidia-smi"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, why: str
) -> None:
    path = tmp_path / "odd"
    path.write_text(content, encoding="utf-8", newline="")
    assert main(["backtest", "--capacity", "80GiB", str(path)]) == 1
    said = capsys.readouterr().err
    assert why in said
    assert str(path) in said


@pytest.mark.parametrize("size", ["48", "48GB", "-5GiB", "nan", "99999999TiB", "85%", ""])
def test_a_capacity_without_sense_is_refused_as_a_flag(tmp_path: Path, size: str) -> None:
    path = leak_csv(tmp_path / "a.csv")
    assert refused(["backtest", f"--capacity={size}", str(path)]) == 2


def refused(arguments: list[str]) -> object:
    try:
        return main(arguments)
    except SystemExit as exit_:
        return exit_.code


# ---------------------------------------------------------------- read all the same


def smi_lines() -> list[str]:
    return smi(smi_row(second) for second in range(60))


def quoted(lines: list[str]) -> list[str]:
    return [",".join(f'"{cell}"' for cell in line.split(",")) for line in lines]


def table_lines() -> list[str]:
    return [HEADER, *(f"a,{second},{30 * GIB}" for second in range(60))]


@pytest.mark.parametrize(
    ("lines", "dressed"),
    [
        (table_lines, lambda lines: b"\xef\xbb\xbf" + "\n".join(lines).encode()),
        (table_lines, lambda lines: "\r\n".join(lines).encode()),
        (table_lines, lambda lines: "\n".join(quoted(lines)).encode()),
        (table_lines, lambda lines: "\n  \n\n".join(lines).encode()),
        (smi_lines, lambda lines: b"\xef\xbb\xbf" + "\n".join(lines).encode()),
        (smi_lines, lambda lines: "\r\n".join(lines).encode()),
        (smi_lines, lambda lines: gzip.compress("\n".join(lines).encode())),
    ],
)
def test_a_table_is_the_same_however_it_was_saved(
    tmp_path: Path, lines: Callable[[], list[str]], dressed: Callable[[list[str]], bytes]
) -> None:
    (tmp_path / "x.csv").write_bytes(dressed(lines()))
    assert only(judged(tmp_path / "x.csv", known=with_capacity(48))).duration_s == 59


def test_metrics_with_a_byte_order_mark_are_metrics(tmp_path: Path) -> None:
    plain = FIXTURES / "verl-0.9.1-leak" / "metrics.jsonl"
    (tmp_path / "m.jsonl").write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    found, expected = (only(judged(path, known=with_capacity(80))) for path in (tmp_path / "m.jsonl", plain))
    assert (found.steps, found.duration_s) == (expected.steps, expected.duration_s)
    assert found.steps > 5


def test_a_reading_that_comes_thirty_thousand_years_later_is_no_long_wait(tmp_path: Path) -> None:
    path = write(tmp_path / "late.csv", [HEADER, f"a,0,{47 * GIB}", f"a,100,{47 * GIB}", f"a,900000000000,{47 * GIB}"])
    assert len(list(sources(path, known=with_capacity(48))[0].lines())) < 1000


def test_a_clock_that_is_set_back_loses_no_time(tmp_path: Path) -> None:
    """Half a minute, an hour back, and half a minute more: 60 seconds, of which each has its reading."""
    lines = smi([*(smi_row(second).replace(" 12:", " 13:") for second in range(30)), *map(smi_row, range(30))])
    path = write(tmp_path / "dst.csv", lines)
    one = only(judged(path))
    assert one.duration_s == 59
    times = [line.message.at for line in sources(path)[0].lines() if isinstance(line.message, wire.Sample)]
    assert times == sorted(set(times))


def test_a_clock_that_is_set_back_needs_no_index_for_one_card(tmp_path: Path) -> None:
    rows = ["2026/01/31 12:00:05.000, 20000 MiB, 81559 MiB", "2026/01/31 12:00:01.000, 20000 MiB, 81559 MiB"]
    path = write(tmp_path / "one.csv", ["timestamp, memory.used [MiB], memory.total [MiB]", *rows])
    assert only(judged(path)).duration_s == 1


def test_a_negative_use_of_a_card_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "use.csv", smi(smi_row(second, use="-5 %") for second in range(9)))
    (first, *_) = (line.message for line in sources(path)[0].lines() if isinstance(line.message, wire.Sample))
    assert first.gpus[0].utilization_ratio == 0


# ---------------------------------------------------------------- traces


def test_whatever_is_recorded_can_be_replayed(tmp_path: Path) -> None:
    table = write(tmp_path / "smi.csv", smi(smi_row(second, use="[N/A]", used="[N/A]") for second in range(9)))
    assert main(["record", str(tmp_path / "trace"), str(table)]) == 0
    assert main(["replay", str(tmp_path / "trace")]) == 0


def test_a_trace_packed_with_gzip_is_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, packed = tmp_path / "trace", tmp_path / "trace.gz"
    assert main(["record", "--capacity", "48GiB", str(plain), str(leak_csv(tmp_path / "a.csv"))]) == 0
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert next(read_trace(packed)) == next(read_trace(plain))
    capsys.readouterr()
    assert main(["backtest", "--json", str(packed)]) == 0
    assert json.loads(capsys.readouterr().out)["inputs"][0]["duration_s"] > 0


def test_a_packed_trace_whose_end_was_lost_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "trace.gz"
    packed.write_bytes(gzip.compress(b'{"advance": 1.0}\n' * 1000)[:-12])
    assert main(["replay", str(packed)]) == 1
    assert "ended before the end" in capsys.readouterr().err


# ---------------------------------------------------------------- what an agent sends, and what a log holds


def test_json_within_json_without_end_is_a_malformed_frame() -> None:
    for frame in (
        f'{{"type": "sample", "seq": 1, "at": 1, "more": {DEEP}}}',
        f'{{"type": "new", "more": {DEEP}}}',
        f'{{"type": "event", "seq": 1, "at": 1, "body": {{"kind": "new", "more": {DEEP}}}}}',
    ):
        with pytest.raises(wire.MalformedMessageError):
            wire.decode_agent(frame)
        with pytest.raises(wire.MalformedMessageError):
            wire.decode_server(frame)


def test_a_log_with_json_within_json_without_end_goes_on(tmp_path: Path) -> None:
    line = '{"step": %d, "data": {"timing_s/step": 5.0, "more": %s}}'
    lines = ["step:1 - timing_s/step:5.0 - timing_s/gen:1.0", line % (2, DEEP), "step:3 - timing_s/step:5.0"]
    path = write(tmp_path / "driver.log", lines)
    assert only(judged(path)).steps == 2


# ---------------------------------------------------------------- pipes


def test_what_comes_through_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("\n".join(table_lines()),))
    writer.start()
    assert only(judged(pipe, known=with_capacity(48))).duration_s == 59
    writer.join()


# ---------------------------------------------------------------- names


def test_a_name_cannot_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither clear it (ESC [2J) nor turn what follows around (U+202E)."""
    path = leak_csv(tmp_path / "a.csv", name="\x1b[2J\u202ename", by_gib=0.8)
    assert main(["backtest", "--capacity", "48GiB", str(path)]) == 0
    said = capsys.readouterr().out
    assert "name" in said
    assert all(one.isprintable() for line in said.splitlines() for one in line)
