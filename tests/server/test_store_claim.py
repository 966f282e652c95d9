"""Two servers never share a SQLite file without a word."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.server.running_server import ENVIRON, serving, settings_in

from oomwatch.store.claim import claimed
from oomwatch.store.errors import StoreError


def _url(folder: Path) -> str:
    return f"sqlite:///{folder / 'oomwatch.db'}"


def test_a_second_server_on_the_same_file_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, db=str(tmp_path / "oomwatch.db"))
    with serving(settings):
        arguments = ["serve", "--db", str(tmp_path / "oomwatch.db"), "--listen", "127.0.0.1:0"]
        second = subprocess.run(
            [sys.executable, "-m", "oomwatch", *arguments], cwd=tmp_path, env=ENVIRON, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip
    assert second.returncode == 1
    assert "another oomwatch server (process" in second.stderr
    assert "a database of its own with --db" in second.stderr


def test_a_claim_ends_with_its_holder(tmp_path: Path) -> None:
    for _ in range(2):
        with claimed(_url(tmp_path)):
            pass


def test_a_claim_ends_with_a_holder_that_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys; from oomwatch.store.claim import claimed\n"
        f"with claimed({_url(tmp_path)!r}): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program], env=ENVIRON, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(StoreError, match=f"process {holder.pid}"), claimed(_url(tmp_path)):
        pass
    holder.kill()
    holder.communicate()
    with claimed(_url(tmp_path)):
        pass


def test_another_name_of_the_same_file_is_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with claimed(_url(tmp_path / "real")), pytest.raises(StoreError), claimed(_url(tmp_path / "link")):
        pass


def test_databases_in_memory_are_claimed_by_nobody() -> None:
    with ExitStack() as stack:
        for url in ("sqlite://", "sqlite://"):
            stack.enter_context(claimed(url))


def test_a_server_alone_has_a_postgresql_for_itself(postgres_url: str) -> None:
    with claimed(postgres_url):
        for with_others in (False, True):
            with pytest.raises(StoreError, match="uses it"), claimed(postgres_url, with_others=with_others):
                pass
    with claimed(postgres_url):
        pass


def test_servers_that_act_as_one_share_a_postgresql_and_keep_others_out(postgres_url: str) -> None:
    with (
        claimed(postgres_url, with_others=True),
        claimed(postgres_url, with_others=True),
        pytest.raises(StoreError, match=r"another oomwatch server uses it.*several-servers\.md"),
        claimed(postgres_url),
    ):
        pass


def test_a_lock_that_cannot_be_made_says_where_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "oomwatch.db.lock").mkdir()
    with pytest.raises(StoreError, match=r"oomwatch\.db\.lock.*writable"), claimed(_url(tmp_path)):
        pass
