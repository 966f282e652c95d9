"""A disk that is full, and one that may not be written: it is said, nothing is lost, and it passes."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.faults.confined import ConfinedServer, with_small_disk, without_root_rights
from tests.server.house import hello, sample
from tests.server.running_server import ENVIRON, AgentClient, until

from oomwatch.store.store import Store

DISK_KIB = 3000
MUCH = 400  # messages, more than fits into what a disk has left where a file cannot grow


def fill(ballast: Path) -> None:
    """Leave not a byte."""
    with ballast.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass


def test_a_full_disk_is_said_people_are_told_and_nothing_is_lost_when_there_is_room_again(tmp_path: Path) -> None:
    with ConfinedServer(tmp_path, DISK_KIB) as server, AgentClient(server) as agent:
        start = time.time() - 2  # what came from the future would count as of its arrival
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 10, start))
        agent.hear_ack_of(1)
        fill(server.disk / "ballast")
        agent.say(*(sample(seq, 79, start + seq / 1000) for seq in range(2, MUCH)))
        problems = until("the server to notice", lambda: server.get("/readyz").json()["problems"])
        assert "its disk is full: free space there, have it on another one, or keep history" in problems[0]
        assert server.get("/readyz").status_code == 503
        assert server.get("/healthz").status_code == 200
        firing = until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        assert [one["alert"] for one in firing] == ["full"]
        (server.disk / "ballast").unlink()
        agent.hear_ack_of(MUCH - 1)
        until("the server to be well", lambda: server.get("/readyz").status_code == 200)
        store = Store.open(f"sqlite:///{server.stopped()}")
        told = [one.at for _, one in store.recent_samples(start - 10)]
        assert len(told) == len(set(told)) == MUCH - 1
        assert [[one.state for one in store.transitions_of(alert.id)] for alert in store.alerts()] == [["firing"]]
        store.close()
        assert "Traceback" not in server.log()


@pytest.mark.parametrize("where", ["file", "folder", "folder of a file that was locked before"])
def test_a_file_or_folder_that_may_not_be_written_is_named_with_the_remedy(tmp_path: Path, where: str) -> None:
    folder = tmp_path / "kept"
    Store.open(f"sqlite:///{folder}/oomwatch.db").close()
    if where.endswith("before"):
        (folder / "oomwatch.db.lock").touch()
    changed = folder / "oomwatch.db" if where == "file" else folder
    changed.chmod(0o444 if where == "file" else 0o555)
    command = [sys.executable, "-m", "oomwatch", "serve", "--listen", "127.0.0.1:0", "--db", f"{folder}/oomwatch.db"]
    try:
        done = subprocess.run(
            [*without_root_rights(), *command], env=ENVIRON, cwd=tmp_path, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
    finally:
        changed.chmod(0o700)
    assert done.returncode == 1
    assert "oomwatch.db" in done.stderr
    assert "writable for the user that runs this" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(folder)  # noqa: PTH208 - nothing is taken away


def backed_up(folder: Path, copy: Path, *before: str) -> str:
    """What a backup that fails says, of which nothing is left."""
    Store.open(f"sqlite:///{folder}/oomwatch.db").close()
    command = [sys.executable, "-m", "oomwatch", "backup", "--db", f"{folder}/oomwatch.db", str(copy)]
    done = subprocess.run(
        [*before, *command], env=ENVIRON, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, copy.exists()) == (1, False), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_backup_onto_a_full_disk_is_said_with_the_remedy(tmp_path: Path) -> None:
    copy = tmp_path / "disk" / "copy.db"
    said = backed_up(tmp_path, copy, *with_small_disk(copy.parent, 32))
    assert f"database {copy}: database or disk is full; its disk is full: free space there" in said
    assert f"nothing is left of {copy}" in said


def test_a_backup_into_a_folder_that_may_not_be_written_is_said_with_the_remedy(tmp_path: Path) -> None:
    copies = tmp_path / "copies"
    copies.mkdir(mode=0o555)
    said = backed_up(tmp_path, copies / "copy.db", *without_root_rights())
    assert f"database {copies}/copy.db: unable to open database file; its folder must be one, and be writable" in said
