"""People sign in by name and password, over a running server."""

import os
import pty
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import websockets.exceptions
from tests.access.conftest import PASSWORD, Users
from tests.access.visitor import Visitor
from tests.server.house import hello
from tests.server.running_server import (
    DEADLINE_SECONDS,
    ENVIRON,
    AgentClient,
    RunningServer,
    serving,
    settings_in,
    until,
)

from oomwatch.access.attempts import BY_NAME
from oomwatch.access.password import Cost, hashed, is_outdated
from oomwatch.access.person import Session, User
from oomwatch.store.store import Store
from oomwatch.units import Duration
from oomwatch.web.app import READ_THREADS
from oomwatch.web.live import NOT_KNOWN
from oomwatch.web.signin import WAITING_MAX


def test_an_operator_signs_in_looks_acts_and_is_noted_by_name(server: RunningServer, visitor: Visitor) -> None:
    assert not visitor.looks()
    answer = visitor.sign_in(name="lin", password=PASSWORD)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert visitor.looks()
    assert visitor.act().status_code == 201
    assert visitor.get("/api/v1/me").json() == {
        "name": "lin",
        "may_act": True,
        "can_leave": True,
        "ends_at": pytest.approx(time.time() + 86400, abs=120),
    }
    told = [(row["who"], row["path"]) for row in visitor.get("/api/v1/audit").json()]
    assert told == [("lin", "/api/v1/silences"), ("lin", "/sign-in (password)")]
    assert server.get("/api/v1/state").status_code == 401


def test_a_reader_looks_and_does_not_act(visitor: Visitor) -> None:
    visitor.sign_in(name="ada", password=PASSWORD)
    assert visitor.looks()
    assert visitor.act().status_code == 403
    assert visitor.get("/api/v1/me").json()["may_act"] is False


def test_where_there_is_a_reader_alone_nobody_acts(tmp_path: Path, users: Users) -> None:
    users.add("ada", "reader")
    with serving(settings_in(tmp_path)) as server:
        visitor = Visitor(server)
        assert visitor.act().status_code == 401
        visitor.sign_in(name="ada", password=PASSWORD)
        assert visitor.act().status_code == 403


@pytest.mark.parametrize(
    ("name", "password"),
    [("lin", "guess"), ("nobody", PASSWORD), ("", ""), ("lin", ""), ("lin\0", PASSWORD), ("x" * 200, "guess")],
)
def test_name_and_password_must_belong_together_and_nothing_tells_which_is_wrong(
    visitor: Visitor, name: str, password: str
) -> None:
    answer = visitor.sign_in(name=name, password=password)
    assert answer.status_code == 401
    assert "Name and password do not belong together" in answer.text
    assert "用户名或密码不正确" in answer.text
    assert not visitor.looks()


def _fail(server: RunningServer, times: int, at: float) -> None:
    """Somebody elsewhere guesses at lin's password."""

    def guess() -> None:
        for _ in range(times):
            server.parts.attempts.begin("lin", "10.9.9.9", at)

    server.call(guess)


def test_guessing_is_slowed_down_with_the_time_to_wait_and_the_right_password_waits_too(
    server: RunningServer, visitor: Visitor
) -> None:
    _fail(server, 20, time.time())
    answer = visitor.sign_in(name="lin", password=PASSWORD)
    assert answer.status_code == 429
    assert "Too many tries. Try again in" in answer.text
    assert "尝试次数过多" in answer.text
    assert 0 < int(answer.headers["retry-after"]) <= 61
    assert visitor.sign_in(name="ada", password=PASSWORD).status_code == 303


def test_guesses_that_come_at_once_are_no_more_than_those_that_come_in_turn(server: RunningServer) -> None:
    def guess(_: int) -> int:
        return Visitor(server).sign_in(name="lin", password="guess").status_code

    with ThreadPoolExecutor(10) as crowd:
        statuses = list(crowd.map(guess, range(20)))
    # Five are free, and each further one waits twice as long as the one before: six take half a minute.
    assert statuses.count(401) <= 11
    assert set(statuses) == {401, 429}


def test_a_try_is_counted_until_it_succeeds(server: RunningServer, visitor: Visitor) -> None:
    attempts = server.parts.attempts
    _fail(server, 12, time.time() - 61)
    assert visitor.sign_in(name="lin", password="guess").status_code == 401
    assert server.call(lambda: attempts.wait_seconds("lin", "10.8.8.8", time.time())) > 0
    server.call(lambda: attempts.succeeded("lin", "10.9.9.9"))
    assert visitor.sign_in(name="lin", password=PASSWORD).status_code == 303
    assert server.call(lambda: attempts.wait_seconds("lin", "10.8.8.8", time.time())) == 0


def test_that_the_database_is_away_is_nobodys_failed_try(
    tmp_path: Path, server: RunningServer, visitor: Visitor
) -> None:
    attempts = server.parts.attempts
    _fail(server, BY_NAME.free - 1, time.time())
    with closing(sqlite3.connect(tmp_path / "oomwatch.db")) as connection:
        connection.execute("ALTER TABLE users RENAME TO away")
        assert visitor.sign_in(name="lin", password=PASSWORD).status_code == 503
        connection.execute("ALTER TABLE away RENAME TO users")
    assert server.call(lambda: attempts.wait_seconds("lin", "127.0.0.1", time.time())) == 0
    assert visitor.sign_in(name="lin", password="guess").status_code == 401
    assert server.call(lambda: attempts.wait_seconds("lin", "127.0.0.1", time.time())) > 0


def test_of_very_many_who_sign_in_at_once_most_are_told_to_come_again_also_while_the_database_is_slow(
    server: RunningServer,
) -> None:
    many = WAITING_MAX + 3
    visitors = [Visitor(server) for _ in range(many)]
    forms = [visitor.form() for visitor in visitors]
    may_go_on = threading.Event()
    for _ in range(READ_THREADS):
        server.parts.threads.readers.submit(may_go_on.wait, DEADLINE_SECONDS)

    def try_it(number: int) -> int:
        fields = {"name": f"nobody {number}", "password": "guess", "form": forms[number]}
        return visitors[number].post("/sign-in", fields).status_code

    with ThreadPoolExecutor(many) as crowd:
        tries = [crowd.submit(try_it, number) for number in range(many)]
        try:
            until("those who find no room", lambda: sum(one.done() for one in tries) == many - WAITING_MAX)
        finally:
            may_go_on.set()
        assert sorted(one.result() for one in tries) == [401] * WAITING_MAX + [503] * (many - WAITING_MAX)


def test_the_cookie_is_for_no_script_and_for_no_other_site(visitor: Visitor) -> None:
    cookie = visitor.sign_in(name="lin", password=PASSWORD).headers["set-cookie"]
    assert cookie.startswith("oomwatch_token=oow_session_")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie


def test_under_https_no_other_program_of_the_domain_can_set_the_cookie(tmp_path: Path, users: Users) -> None:
    users.add("lin", "operator")
    with serving(settings_in(tmp_path, external_url="https://gpus.example")) as server:
        visitor = Visitor(server, {"Host": "gpus.example"})
        page = visitor.get("/sign-in")
        form = page.text.partition('name="form" value="')[2].partition('"')[0]
        ours = {"Cookie": f"__Host-oomwatch_form={form}", "Origin": "https://gpus.example"}
        fields = {"name": "lin", "password": PASSWORD, "form": form}
        answer = server.ask("POST", "/sign-in", data=fields, headers={"Host": "gpus.example", **ours})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-oomwatch_token=")
        assert "Secure" in cookie
        text = cookie.partition("=")[2].partition(";")[0]
        planted = server.get("/api/v1/state", headers={"Cookie": f"oomwatch_token={text}"})
        assert planted.status_code == 401
        taken = server.get("/api/v1/state", headers={"Cookie": f"__Host-oomwatch_token={text}"})
        assert taken.status_code == 200


def test_signing_out_ends_the_session_itself(server: RunningServer, visitor: Visitor) -> None:
    visitor.sign_in(name="lin", password=PASSWORD)
    stolen = {"Cookie": f"oomwatch_token={visitor.cookie}"}
    assert server.get("/api/v1/state", headers=stolen).status_code == 200
    answer = visitor.post("/sign-out")
    assert answer.status_code == 303
    assert 'oomwatch_token=""' in answer.headers["set-cookie"]
    assert server.get("/api/v1/state", headers=stolen).status_code == 401


def test_signing_out_closes_every_page_of_that_browser(server: RunningServer, visitor: Visitor) -> None:
    visitor.sign_in(name="lin", password=PASSWORD)
    other = Visitor(server)
    other.sign_in(name="lin", password=PASSWORD)
    mine, theirs = ({"Cookie": f"oomwatch_token={one.cookie}"} for one in (visitor, other))
    with (
        server.websocket("/ws/live", additional_headers=mine) as page,
        server.websocket("/ws/live", additional_headers=theirs) as another,
    ):
        visitor.post("/sign-out")
        with pytest.raises(websockets.exceptions.ConnectionClosed) as closed:
            _listen(page)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == NOT_KNOWN
        assert another.recv(timeout=DEADLINE_SECONDS)
    assert other.looks()


def _listen(page: Any) -> None:
    while True:
        page.recv(timeout=DEADLINE_SECONDS)


@pytest.mark.parametrize("how", ["password", "remove"])
def test_a_changed_password_and_a_removed_user_end_every_session(
    server: RunningServer, visitor: Visitor, users: Users, how: str
) -> None:
    visitor.sign_in(name="lin", password=PASSWORD)
    other = Visitor(server)
    other.sign_in(name="ada", password=PASSWORD)
    if how == "password":
        assert users.run("password", "lin", "--password-stdin", typed="quite another one") == 0
    else:
        assert users.run("remove", "lin") == 0
    until("the session to end", lambda: not visitor.looks())
    assert other.looks()
    assert visitor.sign_in(name="lin", password=PASSWORD).status_code == 401


def test_a_password_that_is_changed_while_somebody_signs_in_by_the_old_one_lets_nobody_in(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    user = User(name="lin", role="reader", password="of old", created_at=1.0, changed_at=1.0)
    session = Session(id="s", digest="d", name="lin", role="reader", door="password", created_at=3.0, used_at=3.0)
    store.people.keep_user(user)
    store.people.keep_user(msgspec.structs.replace(user, password="of today", changed_at=2.0))
    assert not store.people.begin_session(session, user)
    store.people.keep_user(msgspec.structs.replace(user, removed_at=2.0))
    assert not store.people.begin_session(session, user)
    assert store.people.sessions() == []
    store.close()


def test_a_server_whose_last_user_is_removed_opens_itself_to_nobody(
    server: RunningServer, visitor: Visitor, users: Users
) -> None:
    visitor.sign_in(name="ada", password=PASSWORD)
    assert users.run("remove", "lin") == users.run("remove", "ada") == 0
    until("the session to end", lambda: not visitor.looks())
    assert visitor.sign_in(name="ada", password=PASSWORD).status_code == 401
    assert server.get("/api/v1/state").status_code == 401


def test_a_session_outlives_the_server_and_ends_after_its_time(tmp_path: Path, users: Users) -> None:
    users.add("lin", "operator")
    with serving(settings_in(tmp_path)) as server:
        first = Visitor(server)
        first.sign_in(name="lin", password=PASSWORD)
        cookie = {"Cookie": f"oomwatch_token={first.cookie}"}
    with serving(settings_in(tmp_path)) as again:
        assert again.get("/api/v1/state", headers=cookie).status_code == 200
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    (session,) = store.people.sessions()
    store.people.end_session(session.digest)
    an_hour_ago = time.time() - 3700
    store.people.begin_session(msgspec.structs.replace(session, created_at=an_hour_ago, used_at=an_hour_ago))
    store.close()
    with serving(settings_in(tmp_path)) as again:
        assert again.get("/api/v1/state", headers=cookie).status_code == 200
    for changes in (
        {"session_idle": Duration(600)},
        {"session_idle": Duration(600), "session_length": Duration(3600)},
    ):
        with serving(settings_in(tmp_path, **changes)) as again:
            # It was used by the server before, so only its length can have ended it.
            expected = 401 if "session_length" in changes else 200
            assert again.get("/api/v1/state", headers=cookie).status_code == expected


def test_an_idle_session_ends(tmp_path: Path, users: Users) -> None:
    users.add("lin", "operator")
    with serving(settings_in(tmp_path)) as server:
        first = Visitor(server)
        first.sign_in(name="lin", password=PASSWORD)
        cookie = {"Cookie": f"oomwatch_token={first.cookie}"}
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    (session,) = store.people.sessions()
    store.people.end_session(session.digest)
    store.people.begin_session(msgspec.structs.replace(session, used_at=time.time() - 700))
    store.close()
    with serving(settings_in(tmp_path, session_idle=Duration(600))) as again:
        assert again.get("/api/v1/state", headers=cookie).status_code == 401


def test_the_database_holds_neither_password_nor_session(
    tmp_path: Path, server: RunningServer, visitor: Visitor
) -> None:
    visitor.sign_in(name="lin", password=PASSWORD)
    assert server.url
    content = b"".join(file.read_bytes() for file in tmp_path.glob("oomwatch.db*"))
    assert PASSWORD.encode() not in content
    assert visitor.cookie.removeprefix("oow_session_").encode() not in content


def test_a_hash_of_older_parameters_is_made_anew_at_the_next_sign_in(tmp_path: Path) -> None:
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    kept = hashed(PASSWORD, Cost(10, 8, 1))
    store.people.keep_user(User(name="lin", role="reader", password=kept, created_at=1.0, changed_at=1.0))
    with serving(settings_in(tmp_path)) as server:
        assert Visitor(server).sign_in(name="lin", password=PASSWORD).status_code == 303
        assert Visitor(server).sign_in(name="lin", password=PASSWORD).status_code == 303
    user = store.people.user("lin")
    store.close()
    assert user is not None
    assert not is_outdated(user.password)


def test_agents_need_no_password_where_people_do(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))


# ---------------------------------------------------------------- the command


def test_users_are_listed_without_anything_of_their_passwords(users: Users, capsys: pytest.CaptureFixture[str]) -> None:
    users.add("lin", "operator")
    users.add("ada")
    users.run("remove", "ada")
    capsys.readouterr()
    assert users.run("list") == 0
    table = capsys.readouterr().out
    assert "lin" in table
    assert "ada" not in table
    assert users.run("list", "--json") == 0
    (row,) = msgspec.json.decode(capsys.readouterr().out)
    assert set(row) == {"name", "role", "created_at", "changed_at"}


@pytest.mark.parametrize(
    ("words", "typed", "why"),
    [
        (("add", "lin", "--role", "reader", "--password-stdin"), PASSWORD, 'there is a user "lin" already'),
        (("add", "ada", "--role", "reader", "--password-stdin"), "short", "12 to 256 characters"),
        (("add", "ada", "--role", "reader"), PASSWORD, "no terminal"),
        (("password", "ada", "--password-stdin"), PASSWORD, 'no user "ada"'),
        (("remove", "ada"), "", 'no user "ada"'),
    ],
)
def test_what_cannot_be_done_is_said(
    users: Users, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], typed: str, why: str
) -> None:
    users.add("lin")
    assert users.run(*words, typed=typed) == 1
    assert why in capsys.readouterr().err


def test_a_name_that_cannot_be_told_from_another_is_refused(users: Users, capsys: pytest.CaptureFixture[str]) -> None:
    assert users.run("add", " lin", "--role", "reader", "--password-stdin", typed=PASSWORD) == 2
    assert "no space before or after" in capsys.readouterr().err


def test_a_name_that_is_typed_as_more_characters_or_wider_ones_is_the_same_name(
    server: RunningServer, users: Users
) -> None:
    users.add("Jos\u00e9")
    assert users.run("add", "Jose\u0301", "--role", "reader", "--password-stdin", typed=PASSWORD) == 1
    assert Visitor(server).sign_in(name="Jose\u0301", password=PASSWORD).status_code == 303
    assert Visitor(server).sign_in(name="\uff2a\uff4f\uff53\u00e9", password=PASSWORD).status_code == 303
    assert users.run("remove", "Jose\u0301") == 0


def test_a_user_who_was_removed_can_be_made_again(users: Users) -> None:
    users.add("lin")
    assert users.run("remove", "lin") == 0
    users.add("lin", "operator")


@pytest.mark.parametrize(("again", "status"), [(PASSWORD, 0), ("something else", 1)])
def test_the_password_is_asked_for_twice_on_the_terminal_and_not_shown(tmp_path: Path, again: str, status: int) -> None:
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "oomwatch",
        "user",
        "add",
        "lin",
        "--role",
        "reader",
        "--db",
        str(tmp_path / "x.db"),
    ]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRON, start_new_session=True
    ) as asked:
        os.close(theirs)
        seen = _until_seen(ours, b"Password of lin: ")
        os.write(ours, f"{PASSWORD}\n".encode())
        seen += _until_seen(ours, b"Again: ")
        os.write(ours, f"{again}\n".encode())
        seen += _rest(ours)
        assert asked.wait(DEADLINE_SECONDS) == status
    os.close(ours)
    assert PASSWORD.encode() not in seen


def _until_seen(terminal: int, words: bytes) -> bytes:
    seen = b""
    while words not in seen:
        seen += os.read(terminal, 1024)
    return seen


def _rest(terminal: int) -> bytes:
    seen = b""
    try:
        while part := os.read(terminal, 1024):
            seen += part
    except OSError:  # the other end is closed
        pass
    return seen
