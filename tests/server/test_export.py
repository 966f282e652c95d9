"""What a server has stored is written into tables and traces, also while it runs."""

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from tests.replay.make_traces import RULES

from oomwatch import wire
from oomwatch.__main__ import main
from oomwatch.store.store import Batch, Entry, Keep, Store
from oomwatch.trace import read_trace

NOON = 1_699_963_200.0  # 2023-11-14T12:00Z
HOUR, DAY = 3600.0, 86_400.0
Output = pytest.CaptureFixture[str]


def hello(node: str) -> wire.Hello:
    facts = wire.NodeFacts(gpus=(wire.GpuFacts(gpu="0", uuid="u", name="H100", total_bytes=80 * 2**30),))
    return wire.Hello(
        protocol=1, agent_version="1", node=node, session=node, sent_at=NOON, interval_seconds=1, facts=facts
    )


def sample(seq: int, at: float, used: int | None) -> wire.Sample:
    gpu = wire.GpuSample(gpu="0", used_bytes=used, power_watts=312.0)
    return wire.Sample(seq=seq, at=at, gpus=(gpu,), host=wire.HostSample(memory_used_bytes=seq))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Two nodes for two hours at a reading a second on the first, of which the run is only on the first."""
    opened = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    messages: list[tuple[str, float, wire.AgentMessage]] = [("n1", NOON, hello("n1")), ("n2", NOON, hello("n2"))]
    used = [None if second == 7 else second for second in range(60)]
    messages += [("n1", NOON + second, sample(second + 1, NOON + second, one)) for second, one in enumerate(used)]
    step = wire.Event(seq=70, at=NOON + 30.9995, run="r", body=wire.Step(step=4, step_seconds=60.0))
    messages += [("n1", NOON + 31, step), ("n2", NOON, sample(1, NOON + 0.25, 5))]
    entries = tuple(Entry(node=node, session=node, received_at=at, message=message) for node, at, message in messages)
    opened.record(Batch(entries=entries))
    firing = wire.Transition(
        id="a1", alert="full", severity="warning", state="firing", at=NOON + 40, started_at=NOON + 39, value=0.97,
        limit=0.95, unit="ratio", labels={"node": "n1", "gpu": "0", "run": "r"},
    )  # fmt: skip
    opened.append([firing])
    yield opened
    opened.close()


@pytest.fixture
def db(store: Store) -> str:
    return store._database.place


FROM = ("--from", str(NOON), "--to", "2023-11-14T12:30Z")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_readings_go_to_standard_output_with_units_and_what_was_not_read_is_empty(db: str, capsys: Output) -> None:
    assert main(["export", "gpus", "--db", db, *FROM, "--node", "n1"]) == 0
    found = rows(capsys.readouterr().out)
    assert len(found) == 60
    assert found[7]["used_bytes"] == ""
    assert {name: found[8][name] for name in ("at_utc", "node", "gpu", "status", "used_bytes", "power_watts")} == {
        "at_utc": "2023-11-14T12:00:08.000Z", "node": "n1", "gpu": "0", "status": "ok", "used_bytes": "8",
        "power_watts": "312.0",
    }  # fmt: skip


def test_some_columns_of_the_gpus_of_a_run_alone(db: str, capsys: Output) -> None:
    assert main(["export", "gpus", "--db", db, *FROM, "--run", "r", "--columns", "used_bytes"]) == 0
    found = rows(capsys.readouterr().out)
    assert list(found[0]) == ["at_utc", "node", "gpu", "used_bytes"]
    assert {row["node"] for row in found} == {"n1"}


@pytest.mark.parametrize("is_folded", [False, True])
def test_ten_seconds_together_are_the_same_before_and_after_they_are_folded(
    store: Store, db: str, capsys: Output, *, is_folded: bool
) -> None:
    while is_folded and store.compact(NOON + DAY):
        pass
    assert main(["export", "gpus", "--db", db, *FROM, "--node", "n1", "--every", "10s"]) == 0
    found = rows(capsys.readouterr().out)
    told = ("readings", "used_bytes_min", "used_bytes_max", "power_watts_mean")
    assert [[row[name] for name in told] for row in found] == [
        ["10", str(at), str(at + 9), "312.0"] for at in range(0, 60, 10)
    ]
    assert float(found[0]["used_bytes_mean"]) == pytest.approx((45 - 7) / 9, abs=9 / 255)
    assert "status_min" not in found[0]


def test_late_readings_and_folded_ones_of_the_same_ten_seconds_are_one_row(
    store: Store, db: str, capsys: Output
) -> None:
    while store.compact(NOON + DAY):
        pass
    store.record(Batch(entries=(Entry(node="n1", session="x", received_at=NOON, message=sample(1, NOON + 5.5, 99)),)))
    assert main(["export", "gpus", "--db", db, *FROM, "--node", "n1", "--every", "1m"]) == 0
    [row] = rows(capsys.readouterr().out)
    assert (row["readings"], row["used_bytes_max"]) == ("61", "99")


def test_what_is_only_kept_more_coarsely_is_said(store: Store, db: str, capsys: Output) -> None:
    while store.compact(NOON + DAY):
        pass
    while store.prune(NOON + 3 * DAY, 7 * DAY, readings=Keep(DAY, 7 * DAY, 90 * DAY)):
        pass
    assert main(["export", "hosts", "--db", db, *FROM]) == 0
    told = capsys.readouterr()
    assert rows(told.out) == []
    assert "not in it: 2 hours of GPUs or hosts, only kept more coarsely" in told.err
    assert "--every 10s" in told.err


def test_events_and_changes_of_alerts_are_tables(db: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert main(["export", "events", "transitions", "--db", db, *FROM, "--output", str(folder)]) == 0
    [event] = rows((folder / "events.csv").read_text(encoding="utf-8"))
    assert (event["at_utc"], event["kind"], event["run"]) == ("2023-11-14T12:00:31.000Z", "step", "r")
    assert '"step_seconds":60.0' in event["body"]
    [change] = rows((folder / "transitions.csv").read_text(encoding="utf-8"))
    assert (change["alert"], change["state"], change["value"], change["gpu"]) == ("full", "firing", "0.97", "0")


def test_parquet_holds_the_same_with_types(db: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    whats = ["gpus", "hosts", "events", "transitions"]
    assert main(["export", *whats, "--db", db, *FROM, "--output", str(folder), "--format", "parquet"]) == 0
    gpus = pyarrow.parquet.read_table(folder / "gpus.parquet")
    assert gpus.num_rows == 61
    assert [str(gpus.schema.field(name).type) for name in ("at_utc", "used_bytes", "power_watts")] == [
        "timestamp[ms, tz=UTC]", "int64", "double",
    ]  # fmt: skip
    assert gpus.column("used_bytes").null_count == 1
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{what}.parquet" for what in whats)


def test_a_trace_is_one_that_replay_reads(db: str, tmp_path: Path, capsys: Output) -> None:
    folder = tmp_path / "out"
    assert main(["export", "trace", "--db", db, *FROM, "--output", str(folder)]) == 0
    told = [
        line.message for line in read_trace(folder / "trace.jsonl") if line.message is not None and not line.recalled
    ]
    assert sum(isinstance(one, wire.Sample) for one in told) == 61
    assert main(["replay", str(folder / "trace.jsonl"), "--rules", str(RULES)]) == 0
    assert capsys.readouterr().err == ""


def test_a_trace_begins_with_the_first_reading(db: str, tmp_path: Path) -> None:
    words = [
        "export",
        "trace",
        "--db",
        db,
        "--output",
        str(tmp_path),
        "--from",
        str(NOON - DAY),
        "--to",
        str(NOON + 60),
    ]
    assert main(words) == 0
    first = next(iter(read_trace(tmp_path / "trace.jsonl")))
    assert (first.advance, first.now) == (NOON, None)


def test_no_trace_is_written_of_a_time_in_which_nothing_came(db: str, tmp_path: Path, capsys: Output) -> None:
    words = ["export", "trace", "--db", db, "--output", str(tmp_path), "--from", str(NOON - DAY)]
    assert main([*words, "--to", str(NOON - 1)]) == 1
    assert "nothing was stored in that time" in capsys.readouterr().err
    assert not (tmp_path / "trace.jsonl").exists()


def test_without_pyarrow_it_is_said_how_to_get_it(db: str, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert main(["export", "gpus", "--db", db, "--output", "x", "--format", "parquet"]) == 2
    assert 'pip install "oomwatch[parquet]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["gpus", "hosts"], "name a folder"),
        (["gpus", "--format", "parquet"], "name a folder"),
        (["gpus", "--from", "yesterday"], '--from: "yesterday" is no moment'),
        (["gpus", "--from", "5", "--to", "4"], "must be before --to"),
        (["gpus", "--from", "5", "--last", "4h"], "either --last or --from"),
        (["gpus", "--columns", "colour"], "there are status, used_bytes"),
        (["trace", "--gpu", "0"], "a trace is of all nodes"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_can(words: list[str], why: str, db: str, capsys: Output) -> None:
    assert main(["export", *words, "--db", db]) == 2
    assert why in capsys.readouterr().err


def test_a_file_that_is_there_is_left_alone(db: str, tmp_path: Path, capsys: Output) -> None:
    words = ["export", "gpus", "--db", db, *FROM, "--output", str(tmp_path)]
    (tmp_path / "gpus.csv").write_text("mine", encoding="utf-8")
    assert main(words) == 2
    assert (tmp_path / "gpus.csv").read_text(encoding="utf-8") == "mine"
    assert "--force" in capsys.readouterr().err
    assert main([*words, "--force"]) == 0
    assert len(rows((tmp_path / "gpus.csv").read_text(encoding="utf-8"))) == 61


@pytest.mark.parametrize(
    ("words", "why"), [(["--run", "x"], 'no run "x"; it knows r'), (["--db", "/no/db"], "no database")]
)
def test_what_there_is_not_is_said(words: list[str], why: str, db: str, capsys: Output) -> None:
    assert main(["export", "gpus", "--db", db, *words]) == 1
    assert why in capsys.readouterr().err
