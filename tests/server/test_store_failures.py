"""Kills, full disks, other processes and broken files: what is stored stays, and what is not says why."""

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch.store.errors import StoreError
from oomwatch.store.store import Batch, Entry, Store

NOON = 1_699_963_200.0

_KILLED_WRITER = """
import os, sys
from oomwatch import wire
from oomwatch.store.store import Batch, Entry, Store
store = Store.open(sys.argv[1])
for seq in range(1, 51):
    sample = wire.Sample(seq=seq, at=1_699_963_200.0 + seq, gpus=(wire.GpuSample(gpu="0", used_bytes=seq),))
    store.record(Batch(entries=(Entry(node="n1", session="s1", received_at=sample.at, message=sample),)))
    store.append([wire.Transition(id=f"a{seq}", alert="full", severity="info", state="firing", at=sample.at,
                                  started_at=sample.at, labels={})])
print("acknowledged", store.progress("n1", "s1"), flush=True)
os.kill(os.getpid(), 9)
"""


def sample(seq: int, node: str = "n1") -> Batch:
    message = wire.Sample(seq=seq, at=NOON + seq, gpus=(wire.GpuSample(gpu="0", used_bytes=seq),))
    return Batch(entries=(Entry(node=node, session=f"s-{node}", received_at=message.at, message=message),))


def firing(alert_id: str) -> wire.Transition:
    text = wire.AlertText(summary="full", description="y" * 999)
    return wire.Transition(
        id=alert_id,
        alert="full",
        severity="info",
        state="firing",
        at=NOON,
        started_at=NOON,
        labels={},
        texts={"en": text},
    )


def used(store: Store) -> list[int | None]:
    return [one.gpus[0].used_bytes for _, one in store.recent_samples(0.0)]


def test_what_was_recorded_outlives_a_kill(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/oomwatch.db"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", _KILLED_WRITER, url],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (-9, "acknowledged 50"), done.stderr
    store = Store.open(url)
    assert used(store) == list(range(1, 51))
    assert store.progress("n1", "s1") == 50
    assert len(store.open_alerts()) == 50
    store.close()
    with closing(sqlite3.connect(tmp_path / "oomwatch.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_full_disk_is_an_error_that_stores_nothing_and_passes_when_there_is_room(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    store.append([firing("before")])
    _allow_pages(store, 1)
    with pytest.raises(StoreError, match=r"oomwatch\.db: .*full.*; its disk is full: free space"):
        store.append([firing(f"a{n}") for n in range(500)])
    with pytest.raises(StoreError, match="disk is full"):
        store.record(Batch(entries=tuple(sample(1, f"n{n}").entries[0] for n in range(500))))
    assert [one.id for one in store.open_alerts()] == ["before"]
    assert (used(store), store.progress("n1", "s-n1")) == ([], 0)
    _allow_pages(store, 100_000)
    store.append([firing("after")])
    store.record(sample(1))
    assert [one.id for one in store.open_alerts()] == ["before", "after"]
    assert used(store) == [1]
    store.close()


def _allow_pages(store: Store, pages: int) -> None:
    """SQLite raises the limit to what the file has already, so 1 is: not a page more."""
    with store._database.reading() as connection:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def test_a_database_that_another_process_holds_is_an_error_and_passes(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db?timeout=0.05")
    with closing(sqlite3.connect(tmp_path / "oomwatch.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"locked; another process holds it: stop that one"):
            store.record(sample(1))
        assert used(store) == []  # reading goes on
        other.execute("ROLLBACK")
    store.record(sample(1))
    assert used(store) == [1]
    store.close()


def test_one_who_reads_does_not_hold_up_the_writer_and_sees_one_moment(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db?timeout=0.05")
    count = "SELECT count(*) FROM chunks"
    with store._database.reading() as view:
        assert view.exec_driver_sql(count).scalar_one() == 0
        store.record(sample(1))
        assert view.exec_driver_sql(count).scalar_one() == 0
    assert used(store) == [1]
    store.close()


def test_a_writer_is_alone_from_the_beginning_of_its_transaction(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    with (
        closing(sqlite3.connect(tmp_path / "oomwatch.db", timeout=0)) as other,
        store._database.writing(),
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")
    store.close()


def test_readers_in_another_thread_see_whole_batches_while_one_writes(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    stop, seen, errors = threading.Event(), [0], []

    def read() -> None:
        try:
            while not stop.is_set():
                pairs = used(store)
                assert len(pairs) % 2 == 0  # each batch holds two samples
                seen.append(len(pairs))
        except BaseException as error:
            errors.append(error)
            raise

    reader = threading.Thread(target=read)
    reader.start()
    for seq in range(1, 101, 2):
        store.record(Batch(entries=sample(seq).entries + sample(seq + 1).entries))
    stop.set()
    reader.join(30)
    assert not errors
    assert seen == sorted(seen)
    assert used(store) == list(range(1, 101))
    store.close()


def test_a_file_that_is_no_database_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("These are my notes, and not a database at all.\n" * 100)
    with pytest.raises(StoreError, match=r"notes\.db: .*not a database; .*name another file"):
        Store.open(f"sqlite:///{tmp_path}/notes.db")
    assert (tmp_path / "notes.db").read_text().startswith("These are my notes")


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"file/oomwatch\.db: .*folder must be one, and be writable"):
        Store.open(f"sqlite:///{tmp_path}/file/oomwatch.db")


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "oomwatch.db").mkdir()
    with pytest.raises(StoreError, match=r"oomwatch\.db: is a folder; name a file in it"):
        Store.open(f"sqlite:///{tmp_path}/oomwatch.db")


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path}/a/b/oomwatch.db").close()
    assert (tmp_path / "a/b/oomwatch.db").exists()


@pytest.mark.parametrize("url", ["", "sqlite//x", "postgres-ql://x"])
def test_what_is_neither_a_url_nor_a_path_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(StoreError, match="is no database URL; write for example sqlite:////"):
        Store.open(url)


@pytest.mark.parametrize(
    "url", ["postgresql+nosuchdriver://user:hunter2@db/oomwatch", "mysql://user:hunter2@db/oomwatch"]
)
def test_another_driver_is_refused_with_the_remedy_and_without_the_password(url: str) -> None:
    with pytest.raises(StoreError, match="postgresql://") as caught:
        Store.open(url)
    assert "hunter2" not in str(caught.value)


def test_a_damaged_chunk_is_an_error_with_the_place(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    store.record(sample(1))
    with closing(sqlite3.connect(tmp_path / "oomwatch.db")) as other:
        other.execute("UPDATE chunks SET blob = x'010203'")
        other.commit()
    with pytest.raises(StoreError, match=r"oomwatch\.db: a chunk of readings is damaged"):
        list(store.recent_samples(0.0))
    store.close()


def test_a_database_in_memory_serves_every_thread() -> None:
    store = Store.open("sqlite://")
    store.append([firing("a")])
    found: list[wire.Transition] = []
    thread = threading.Thread(target=lambda: found.extend(store.open_alerts()))
    thread.start()
    thread.join(30)
    assert [one.id for one in found] == ["a"]
    store.close()
