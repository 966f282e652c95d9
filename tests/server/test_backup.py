"""`oomwatch backup`: a copy that is whole, whatever is written meanwhile."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.postgres.server import PostgresServer
from tests.server.house import hello, sample

from oomwatch.__main__ import main
from oomwatch.commands import backup
from oomwatch.store.store import Batch, Entry, Store

NOW = 1_700_000_000.0


def entry(seq: int) -> Entry:
    return Entry(node="gpu-07", session="s", received_at=NOW + seq, message=sample(seq, 10, NOW + seq))


def write_until(store: Store, stop: threading.Event, written: threading.Event) -> None:
    store.record(Batch(entries=(Entry(node="gpu-07", session="s", received_at=NOW, message=hello(sent_at=NOW)),)))
    seq = 0
    while not stop.is_set():
        seq += 1
        store.record(Batch(entries=(entry(seq),)))
        if seq == 20:
            written.set()


def test_a_backup_that_is_made_while_a_server_writes_is_whole(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/oomwatch.db"
    with closing(Store.open(url)) as store:
        stop, written = threading.Event(), threading.Event()
        writer = threading.Thread(target=write_until, args=(store, stop, written))
        writer.start()
        try:
            assert written.wait(60)
            assert main(["backup", "--db", url, str(tmp_path / "copy.db")]) == 0
        finally:
            stop.set()
            writer.join()
    with closing(Store.open(f"sqlite:///{tmp_path}/copy.db")) as copy:
        stored = copy.progress("gpu-07", "s")
        assert stored >= 20
        assert len(list(copy.recent_samples(NOW, NOW + stored))) == stored


def test_a_folder_may_be_called_what_means_something_in_an_address(tmp_path: Path) -> None:
    folder = tmp_path / "seed#7"
    folder.mkdir()
    Store.open(f"sqlite:///{folder}/oomwatch.db").close()
    assert main(["backup", "--db", str(folder / "oomwatch.db"), str(tmp_path / "copy.db")]) == 0
    Store.open(f"sqlite:///{tmp_path}/copy.db").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.db", "seed#7"]


def test_a_backup_replaces_nothing(tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    Store.open(f"sqlite:///{tmp_path}/oomwatch.db").close()
    assert main(["backup", "--db", str(tmp_path / "oomwatch.db"), str(tmp_path / "copy.db")]) == 2
    assert (tmp_path / "copy.db").read_text() == "precious"


@pytest.mark.parametrize("from_end", [True, False], ids=["in the tables", "in their descriptions"])
def test_a_damaged_database_leaves_no_copy_and_is_named_with_the_remedy(
    *, from_end: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "oomwatch.db"
    Store.open(str(file)).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE large AS SELECT zeroblob(100000)")
        connection.commit()
    content = file.read_bytes()
    first = len(content) - 20_000 if from_end else 20_000
    file.write_bytes(content[:first] + b"\1" * 10_000 + content[first + 10_000 :])
    assert main(["backup", "--db", str(file), str(tmp_path / "copy.db")]) == 1
    said = capsys.readouterr().err
    assert f"database {file}: database disk image is malformed" in said
    assert ("malformed (" in said) == from_end, said  # found by the look at the copy, or before
    assert "; the file is damaged: restore a backup" in said
    assert f"; nothing is left of {tmp_path}/copy.db" in said
    assert not (tmp_path / "copy.db").exists()


def test_a_database_that_nobody_may_read_now_is_named_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup, "WAIT_SECONDS", 0.01)
    file = tmp_path / "oomwatch.db"
    Store.open(str(file)).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert main(["backup", "--db", str(file), str(tmp_path / "copy.db")]) == 1
    assert f"database {file}: database is locked; another process holds it: stop that one" in capsys.readouterr().err


def test_a_copy_beneath_a_file_is_said_with_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store.open(str(tmp_path / "oomwatch.db")).close()
    (tmp_path / "file").touch()
    copy = tmp_path / "file" / "copy.db"
    assert main(["backup", "--db", str(tmp_path / "oomwatch.db"), str(copy)]) == 1
    assert f"database {copy}: File exists; its folder must be one, and be writable" in capsys.readouterr().err


def test_what_is_no_file_is_backed_up_otherwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backup", "--db", "postgresql://db/oomwatch", str(tmp_path / "copy.db")]) == 2
    assert "pg_dump" in capsys.readouterr().err


def test_a_postgresql_is_restored_from_a_dump(postgres_server: PostgresServer, postgres_url: str) -> None:
    with closing(Store.open(postgres_url)) as store:
        store.record(Batch(entries=(Entry(node="gpu-07", session="s", received_at=NOW, message=hello(sent_at=NOW)),)))
        store.record(Batch(entries=tuple(entry(seq) for seq in range(1, 30))))
    name = postgres_url.rpartition("/")[2].partition("?")[0]
    dump = postgres_server.run("pg_dump", "--format=custom", database=name)
    restored = postgres_server.create("restored")
    try:
        postgres_server.run("pg_restore", "--no-owner", database="restored", stdin=dump)
        with closing(Store.open(restored)) as copy:
            assert copy.progress("gpu-07", "s") == 29
    finally:
        postgres_server.drop("restored")
