"""A damaged database is noticed at the start, and is never thrown away."""

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.server.house import hello, sample
from tests.server.running_server import ENVIRON, AgentClient, serving, settings_in, until

from oomwatch.__main__ import main
from oomwatch.access.token import ROLES
from oomwatch.store.errors import StoreError
from oomwatch.store.soundness import be_sure_of, damage, put_aside
from oomwatch.store.store import Batch, Entry, Store
from oomwatch.web.access import keyring_of

READINGS = 3000


def kept(folder: Path, readings: int = READINGS) -> Path:
    """A database, of some hundred KiB by default."""
    file = folder / "oomwatch.db"
    store = Store.open(f"sqlite:///{file}")
    for first in range(1, readings, 100):
        entries = [
            Entry(node="n", session="s", received_at=1000.0 + seq, message=sample(seq, 10, 1000.0 + seq, gpus=8))
            for seq in range(first, first + 100)
        ]
        store.record(Batch(entries=tuple(entries)))
    store.close()
    return file


def overwrite_the_middle(content: bytes) -> bytes:
    third = len(content) // 3
    return content[:third] + random.Random(1).randbytes(third) + content[2 * third :]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2 + 100]


def overwrite_the_beginning(content: bytes) -> bytes:
    return b"\0" * 4096 + content[4096:]


def asked_of(file: Path, *command: str) -> Callable[[pytest.CaptureFixture[str]], str]:
    """What a command says where it does not do it."""

    def ask(said: pytest.CaptureFixture[str]) -> str:
        assert main([*command, "--db", str(file)]) == 1
        return said.readouterr().err

    return ask


def ways_to(file: Path) -> dict[str, Callable[[pytest.CaptureFixture[str]], str]]:
    """Everything that opens a database by its file, each with what it says of one that it refuses."""

    def serve(_: object) -> str:
        with pytest.raises(StoreError) as refused:
            be_sure_of(str(file))
        return str(refused.value)

    return {
        "serve": serve,
        "token": asked_of(file, "token", "create", "--role", "reader", "lin"),
        "scorecard": asked_of(file, "scorecard"),
        "backup": asked_of(file, "backup", str(file.with_name("copy.db"))),
    }


NO_DATABASES = {
    "one byte, which SQLite takes for an empty file": b"\n",
    "shorter than what SQLite's begin with": b"SQLite format 3",
    "a text": b"These are my notes, and not a database at all.\n" * 100,
}


@pytest.mark.parametrize("content", NO_DATABASES.values(), ids=NO_DATABASES)
@pytest.mark.parametrize("way", ["serve", "token", "scorecard", "backup"])
def test_a_file_that_is_no_database_is_left_as_it_is(
    way: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "notes"
    file.write_bytes(content)
    said = ways_to(file)[way](capsys)
    assert f"database {file}: file is not a database; " in said
    assert "name another file, or move it away" in said
    assert file.read_bytes() == content
    assert sorted(one.name for one in tmp_path.iterdir()) == ["notes"]


@pytest.mark.parametrize("way", ["serve", "token", "scorecard", "backup"])
def test_a_database_of_another_program_is_left_as_it_is(
    way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE customers (name)")
        other.commit()
    before = file.read_bytes()
    assert "other.db: is another program's (it has customers); name a file of its own" in ways_to(file)[way](capsys)
    assert file.read_bytes() == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["other.db"]


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "oomwatch.db").touch()
    with serving(settings_in(tmp_path)) as server:
        assert server.get("/api/v1/state").status_code == 200


DAMAGES = [overwrite_the_middle, cut, overwrite_the_beginning]


@pytest.mark.parametrize("damaging", DAMAGES)
def test_a_server_does_not_start_on_a_damaged_file_and_leaves_it_as_it_is(
    tmp_path: Path, damaging: Callable[[bytes], bytes]
) -> None:
    file = kept(tmp_path)
    file.write_bytes(damaging(file.read_bytes()))
    before = file.read_bytes()
    command = [sys.executable, "-m", "oomwatch", "serve", "--listen", "127.0.0.1:0", "--db", str(file)]
    done = subprocess.run(command, env=ENVIRON, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"database {file}: the file is damaged (" in done.stderr
    assert "restore a backup (docs/howto/backup.md), or give it up with oomwatch begin-anew" in done.stderr
    assert "Traceback" not in done.stderr
    assert file.read_bytes() == before


@pytest.mark.parametrize("damaging", DAMAGES)
def test_given_up_the_file_is_put_aside_and_an_empty_one_lets_nobody_in(
    tmp_path: Path, damaging: Callable[[bytes], bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    file = kept(tmp_path)
    file.write_bytes(damaging(file.read_bytes()))
    before = file.read_bytes()
    assert main(["begin-anew", "--db", str(file)]) == 0
    assert "It lets nobody in yet: users and tokens are gone" in capsys.readouterr().out
    (aside,) = tmp_path.glob("oomwatch.db.damaged-*")
    assert aside.read_bytes() == before
    with serving(settings_in(tmp_path)) as server:
        assert server.get("/api/v1/state").status_code == 401
        assert server.ask("POST", "/api/v1/silences", json={}).status_code == 401
        agents = server.call(lambda: server.parts.keyring.asks_for("agent"))
        assert agents
        assert main(["token", "create", "--role", "reader", "lin", "--db", str(file)]) == 0
        told = {"Authorization": f"Bearer {capsys.readouterr().out.strip()}"}
        until("the token", lambda: server.get("/api/v1/state", headers=told).status_code == 200)


def lets_everybody_in(file: Path) -> bool:
    """Whether a server that starts now would ask nobody for a token."""
    url = f"sqlite:///{file}"
    try:
        be_sure_of(url)
    except StoreError:
        return False
    with closing(Store.open(url)) as store:
        return not all(keyring_of(settings_in(file.parent), store, time.time).asks_for(role) for role in ROLES)


def test_cut_short_at_any_point_it_opens_the_server_to_nobody_and_can_be_ended(tmp_path: Path) -> None:
    (tmp_path / "damaged").mkdir()
    file = kept(tmp_path / "damaged", readings=500)
    file.write_bytes(cut(file.read_bytes()))
    (tmp_path / "damaged" / "oomwatch.db-wal").write_bytes(b"what was not yet in the file")
    before = file.read_bytes()
    killed = [sys.executable, str(Path(__file__).with_name("killed_begin_anew.py")), str(tmp_path)]
    done = subprocess.run(killed, env=ENVIRON, capture_output=True, text=True, timeout=300, check=True)
    points, status = map(int, done.stdout.splitlines()[-1].split())
    assert (points > 8, status) == (True, 0)
    for point in range(1, points):
        file = tmp_path / str(point) / "oomwatch.db"
        assert not lets_everybody_in(file), point
        assert main(["begin-anew", "--db", str(file)]) == 0, point
        assert not lets_everybody_in(file), point
        (aside,) = file.parent.glob("oomwatch.db.damaged-*Z")
        assert aside.read_bytes() == before, point


def test_what_is_put_aside_overwrites_nothing_that_was(tmp_path: Path) -> None:
    file = tmp_path / "oomwatch.db"
    for content in ("first", "second"):
        file.write_text(content, encoding="utf-8")
        put_aside(file, 0.0)
    assert sorted(one.read_text(encoding="utf-8") for one in tmp_path.glob("*.damaged-*")) == ["first", "second"]


def test_told_to_the_new_one_is_open_as_at_a_first_start(tmp_path: Path) -> None:
    file = kept(tmp_path)
    file.write_bytes(cut(file.read_bytes()))
    assert main(["begin-anew", "--open", "--db", str(file)]) == 0
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 10, time.time()))
        agent.hear_ack_of(1)
        assert server.get("/api/v1/state").status_code == 200


def test_what_is_sound_is_not_given_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = kept(tmp_path)
    assert main(["begin-anew", "--db", str(file)]) == 1
    assert "is sound; nothing is done" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.damaged-*"))


@pytest.mark.parametrize("content", [b"x", b"a letter to a friend\n" * 100, b"SQLite format 3\0" + b"\1" * 5000])
def test_a_file_that_is_not_ours_is_not_put_aside(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "letter"
    file.write_bytes(content)
    assert main(["begin-anew", "--db", str(file)]) == 1
    assert "nothing in it shows that it is oomwatch's" in capsys.readouterr().err
    assert file.read_bytes() == content


def test_a_file_that_a_server_uses_is_not_put_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(settings_in(tmp_path)):
        assert main(["begin-anew", "--db", str(tmp_path / "oomwatch.db")]) == 1
    assert "another oomwatch server" in capsys.readouterr().err


def test_a_folder_in_the_place_of_the_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "oomwatch.db").mkdir()
    assert damage(tmp_path / "oomwatch.db") is None
    with pytest.raises(StoreError, match="is a folder; name a file in it"), serving(settings_in(tmp_path)):
        pass


def test_what_is_put_aside_can_still_be_opened_with_what_was_not_yet_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "oomwatch.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        connection.commit()
        assert (tmp_path / "oomwatch.db-wal").stat().st_size > 0
        aside = put_aside(file, 0.0)
        assert aside.name == "oomwatch.db.damaged-19700101T000000Z"
        with closing(sqlite3.connect(aside)) as again:
            assert again.execute("SELECT one FROM kept").fetchone() == (1,)
    assert not file.exists()
