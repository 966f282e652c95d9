"""Tables of readings: the plain one, and what nvidia-smi prints."""

from pathlib import Path

import pytest
from tests.backtest.inputs import GIB, judged, leak_csv, only, sources, with_capacity, write

from oomwatch import wire
from oomwatch.backtest.source import InputError, Known
from oomwatch.trace import Line


def _samples(lines: list[Line]) -> list[wire.Sample]:
    return [line.message for line in lines if isinstance(line.message, wire.Sample)]


def _hello(lines: list[Line]) -> wire.Hello:
    assert isinstance(lines[0].message, wire.Hello)
    return lines[0].message


# ---------------------------------------------------------------- series,t_seconds,used_bytes


@pytest.mark.parametrize("name", ["memory.csv", "memory.csv.gz"])
def test_a_series_is_cut_where_it_reaches_the_capacity(tmp_path: Path, name: str) -> None:
    """48 GiB are reached by the 36th row after the first."""
    one = only(judged(leak_csv(tmp_path / name), known=with_capacity(48)))
    assert (one.name, one.oom_at_s, one.duration_s, one.steps) == ("pod0", 57 * 36, 57 * 36, 0)
    (full, gone) = one.alerts
    assert (full.alert, full.severity, full.subject, full.ended_at_s) == ("full", "warning", "pod0/0", None)
    # Above 85 % (40.8 GiB) from the 22nd row on, and so for a minute with the next grid second but one row.
    assert full.started_at_s == 57 * 22 + 60
    assert full.lead_s == 57 * 36 - full.started_at_s
    assert (one.warned, one.lead_s, one.lead_steps) == (True, full.lead_s, None)
    assert (gone.alert, gone.warns, gone.started_at_s) == ("gone", False, 57 * 36)


def test_readings_a_minute_apart_are_no_silence(tmp_path: Path) -> None:
    path = leak_csv(tmp_path / "steady.csv", by_gib=0.0)
    one = only(judged(path, known=with_capacity(48)))
    assert one.alerts == ()
    assert (one.oom_at_s, one.warned, one.duration_s) == (None, None, 57 * 59)
    assert _hello(list(sources(path, known=with_capacity(48))[0].lines())).interval_seconds == 57


def test_each_series_is_an_input_of_its_own_and_a_day_is_counted_for_each(tmp_path: Path) -> None:
    lines = ["t_seconds,series,used_bytes"]
    for name, used in (("a", 47 * GIB), ("b", 10 * GIB)):
        lines += [f"{3600 * hour},{name},{used}" for hour in range(25)]
    result = judged(write(tmp_path / "day.csv", lines), known=with_capacity(48))
    assert [one.name for one in result.inputs] == ["a", "b"]
    assert [one.false_alarms for one in result.inputs] == [1, 0]
    assert result.summary.days == 2
    assert result.summary.false_alarms_per_day == 0.5
    assert result.summary.recall is None


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (
            ["series,t_seconds,used"],
            ":1: the columns series, t_seconds, used_bytes are expected; used_bytes is missing",
        ),
        (["series,t_seconds,used_bytes", "a,0,1", "a,x,1"], ":3: a name, seconds and bytes are expected, got 'a,x,1'"),
        (["series,t_seconds,used_bytes"], ": a header, and no row below it"),
        (["series,t_seconds,used_bytes", "a,0"], ":2: a name, seconds and bytes are expected"),
        (["series,t_seconds,used_bytes", "a,0,-5"], ":2: out of all bounds"),
        (["series,t_seconds,used_bytes", "a,60,1", "a,0,1"], ":3: t_seconds goes back, from 60 to 0"),
    ],
)
def test_a_mistake_in_a_table_is_told_with_its_line(tmp_path: Path, lines: list[str], why: str) -> None:
    path = write(tmp_path / "bad.csv", lines)
    with pytest.raises(InputError) as mistake:
        sources(path, known=with_capacity(48))
    assert f"{path}{why}" in str(mistake.value)


def test_a_table_without_a_capacity_asks_for_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Give --capacity, for example --capacity 48GiB"):
        sources(leak_csv(tmp_path / "memory.csv"))


# ---------------------------------------------------------------- nvidia-smi

HEADER = "timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]"


def _rows(seconds: int, *, units: bool = True) -> list[str]:
    mib, percent = (" MiB", " %") if units else ("", "")
    return [
        f"2026/11/29 13:50:{second:02}.{index}00, {index}, NVIDIA H100, {20000 + index * 50000}{mib}, 81559{mib}, "
        f"97{percent}"
        for second in range(seconds)
        for index in range(2)
    ]


def _with_headers_again(rows: list[str]) -> list[str]:
    return [line for row in rows for line in (HEADER, row)]


@pytest.mark.parametrize(
    ("lines", "known"),
    [
        ([HEADER, *_rows(30)], Known()),
        (_with_headers_again(_rows(30)), Known()),
        ([HEADER.replace(" [MiB]", "").replace(" [%]", ""), *_rows(30, units=False)], Known()),
        (_rows(30), Known()),
        (
            _rows(30, units=False),
            Known(columns=("timestamp", "index", "name", "memory.used", "memory.total", "utilization.gpu")),
        ),
    ],
    ids=["plain", "headers again", "no units", "no header", "neither"],
)
def test_what_nvidia_smi_prints_is_read_in_each_of_its_forms(tmp_path: Path, lines: list[str], known: Known) -> None:
    trace = list(sources(write(tmp_path / "gpus.csv", lines), known=known)[0].lines())
    hello, samples = _hello(trace), _samples(trace)
    assert [(gpu.gpu, gpu.name, gpu.total_bytes) for gpu in hello.facts.gpus] == [
        ("0", "NVIDIA H100", 81559 * 2**20), ("1", "NVIDIA H100", 81559 * 2**20),
    ]  # fmt: skip
    assert hello.interval_seconds == 1
    assert len(samples) == 30
    assert [gpu.used_bytes for gpu in samples[0].gpus] == [20000 * 2**20, 70000 * 2**20]
    assert samples[0].gpus[1].utilization_ratio == 0.97


def test_a_full_card_of_an_nvidia_smi_table_fires(tmp_path: Path) -> None:
    rows = [
        f"2026/11/29 13:{minute:02}:{second:02}.000, 3, 79000 MiB, 81559 MiB"
        for minute in range(3)
        for second in range(0, 60, 5)
    ]
    path = write(tmp_path / "gpus.csv", ["timestamp, index, memory.used [MiB], memory.total [MiB]", *rows])
    one = only(judged(path))
    assert [(alert.alert, alert.subject, alert.started_at_s) for alert in one.alerts] == [("full", "gpus.csv/3", 60)]
    assert one.oom_at_s is None


def test_cards_are_told_apart_by_uuid_and_unreadable_ones_have_no_reading(tmp_path: Path) -> None:
    lines = ["uuid, memory.used [MiB], memory.free [MiB]"]
    for _ in range(3):
        lines += ["GPU-aaaaaaaa-1, 100 MiB, 900 MiB", "GPU-bbbbbbbb-2, [GPU is lost], 900 MiB"]
    known = Known(interval_seconds=10.0, capacity_bytes=1000 * 2**20)
    trace = list(sources(write(tmp_path / "gpus.csv", lines), known=known)[0].lines())
    assert [gpu.gpu for gpu in _hello(trace).facts.gpus] == ["0", "1"]
    first, second, _ = _samples(trace)
    assert second.at - first.at == 10
    assert [(gpu.status, gpu.used_bytes) for gpu in first.gpus] == [("ok", 100 * 2**20), ("no_data", None)]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["timestamp, memory.used [MiB], memory.total [MiB]", "soon, 1 MiB, 2 MiB"], ":2: 'soon' is no time"),
        (["timestamp, memory.used [MiB]", "2026/11/29 13:50:00.000, 1 MiB"], "how large is GPU 0? Give --capacity"),
        (["index, memory.used [MiB], memory.total [MiB]", "0, 1 MiB"], ":2: 3 columns are expected, got 2"),
        (["2026/11/29 13:50:00.000, 0, 5, 6"], ":1: without a header it is not clear what the columns are"),
        (
            ["timestamp, memory.used [MiB], memory.total [MiB]"] + ["2026/11/29 13:50:00.000, 1 MiB, 2 MiB"] * 2,
            "rows of several cards without index or uuid",
        ),
    ],
)
def test_a_table_of_nvidia_smi_that_cannot_be_used_says_why(tmp_path: Path, lines: list[str], why: str) -> None:
    with pytest.raises(InputError) as mistake:
        sources(write(tmp_path / "gpus.csv", lines))
    assert why in str(mistake.value)


def test_a_last_row_that_was_cut_short_is_no_mistake(tmp_path: Path) -> None:
    path = write(tmp_path / "gpus.csv", [HEADER, *_rows(3)])
    path.write_text(path.read_text(encoding="utf-8") + "2026/11/29 13:51", encoding="utf-8")
    assert len(_samples(list(sources(path)[0].lines()))) == 3


def test_a_guess_at_the_columns_that_cannot_be_right_is_given_up(tmp_path: Path) -> None:
    """memory.used and memory.free look like used and total in one row, but not in two."""
    rows = [f"2026/11/29 13:50:0{second}.000, 0, {10 + second} MiB, {90 - second} MiB" for second in range(3)]
    with pytest.raises(InputError, match="say what the columns are, with --columns"):
        sources(write(tmp_path / "gpus.csv", rows))
