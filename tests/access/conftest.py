"""A server that people sign in to, and the command that says who may."""

import io
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import msgspec
import pytest
from tests.access.visitor import Visitor
from tests.server.running_server import RunningServer, serving, settings_in

from oomwatch.__main__ import main
from oomwatch.access.password import hashed
from oomwatch.access.person import User
from oomwatch.store.store import Store

PASSWORD = "four words that rhyme"


class Users:
    """`oomwatch user` on the database of a folder, passwords on its standard input."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._db = str(folder / "oomwatch.db")
        self._monkeypatch = monkeypatch

    def run(self, *words: str, typed: str = "") -> int:
        self._monkeypatch.setattr("sys.stdin", io.StringIO(f"{typed}\n"))
        return main(["user", *words, "--db", self._db])

    def add(self, name: str, role: str = "reader", password: str = PASSWORD) -> None:
        assert self.run("add", name, "--role", role, "--password-stdin", typed=password) == 0


@cache
def _kept() -> str:
    return hashed(PASSWORD)


def settle(folder: Path) -> None:
    """Lin, an operator, and ada, a reader, in the database of a folder."""
    with closing(Store.open(f"sqlite:///{folder}/oomwatch.db")) as store:
        for name, role in (("lin", "operator"), ("ada", "reader")):
            made = {"password": _kept(), "created_at": 1.0, "changed_at": 1.0}
            store.people.keep_user(msgspec.convert({"name": name, "role": role, **made}, User))


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Users:
    return Users(tmp_path, monkeypatch)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """To which lin and ada sign in."""
    settle(tmp_path)
    with serving(settings_in(tmp_path)) as running:
        yield running


@pytest.fixture
def visitor(server: RunningServer) -> Visitor:
    return Visitor(server)
