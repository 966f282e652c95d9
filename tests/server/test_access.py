"""Who may look, send and act: tokens of the settings and of the database, over a running server."""

import asyncio
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets.exceptions
from tests.access.conftest import settle
from tests.access.visitor import Visitor
from tests.faults.strangers import UPGRADE, frame
from tests.missing import do_without
from tests.server.house import hello
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in
from websockets.frames import Opcode

from oomwatch import wire
from oomwatch.__main__ import main
from oomwatch.options import SettingError
from oomwatch.settings import Settings
from oomwatch.web.connections import Connections
from oomwatch.web.live import NOT_KNOWN
from oomwatch.web.server import serve
from oomwatch_agent.__main__ import main as agent_main

DEADLINE_SECONDS = 20.0


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def server(folder: Path) -> Iterator[RunningServer]:
    with serving(settings_in(folder)) as running:
        yield running


def database(folder: Path) -> list[str]:
    return ["--db", str(folder / "oomwatch.db")]


def create(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["token", "create", *words, *database(folder)]) == 0
    return capsys.readouterr().out.strip()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _listen(browser: Any) -> None:
    while True:
        browser.recv(timeout=DEADLINE_SECONDS)


def act(server: RunningServer, **options: object) -> httpx.Response:
    """Something that changes things."""
    body = {"match": ['node="gpu-07"'], "duration": "1h", "created_by": "lin"}
    return server.ask("POST", "/api/v1/silences", json=body, **options)


def test_a_reader_looks_and_an_operator_acts(folder: Path) -> None:
    with serving(settings_in(folder, reader_token="look", operator_token="act")) as server:
        assert server.get("/api/v1/state", headers=bearer("look")).status_code == 200
        refused = act(server, headers=bearer("look"))
        assert (refused.status_code, refused.json()["error"]) == (
            403,
            "this needs an operator's token; yours lets you look, and no more",
        )
        assert act(server).status_code == 401
        assert act(server, headers=bearer("act")).status_code == 201
        assert server.get("/api/v1/state", headers=bearer("act")).status_code == 200


def test_a_question_with_a_body_is_no_act(folder: Path) -> None:
    with serving(settings_in(folder, reader_token="look", operator_token="act")) as server:
        body = {"match": ['node="gpu-07"']}
        answer = server.ask("POST", "/api/v1/silences/preview", json=body, headers=bearer("look"))
        assert answer.status_code == 200


def test_with_an_operator_token_alone_everybody_looks_and_operators_act(folder: Path) -> None:
    with serving(settings_in(folder, operator_token="act")) as server:
        assert server.get("/api/v1/state").status_code == 200
        assert act(server).status_code == 403
        assert act(server, headers=bearer("act")).status_code == 201


def test_an_agents_token_opens_nothing_to_a_person(folder: Path) -> None:
    with serving(settings_in(folder, token="send", reader_token="look")) as server:
        assert server.get("/api/v1/state", headers=bearer("send")).status_code == 401
        with AgentClient(server, additional_headers=bearer("look")) as agent:
            refused = agent.hear()
            assert "the token is missing or wrong" in str(refused)


def test_a_token_made_while_the_server_runs_is_taken_and_a_revoked_one_no_more(
    server: RunningServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = create(folder, capsys, "--role", "reader", "lin")
    assert token.startswith("oow_reader_")
    until(lambda: server.get("/api/v1/state").status_code == 401)
    assert server.get("/api/v1/state", headers=bearer(token)).status_code == 200
    assert main(["token", "revoke", "lin", *database(folder)]) == 0
    until(lambda: server.get("/api/v1/state", headers=bearer(token)).status_code == 401)


def test_who_is_connected_by_a_revoked_token_is_cut_off(
    server: RunningServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = create(folder, capsys, "--role", "reader", "page")
    sender = create(folder, capsys, "--role", "agent", "pool")
    until(lambda: server.call(lambda: server.parts.keyring.find(sender)) is not None)
    with (
        server.websocket("/ws/live", additional_headers=bearer(reader)) as browser,
        AgentClient(server, additional_headers=bearer(sender)) as agent,
    ):
        agent.greet(hello(sent_at=time.time()))
        assert browser.recv(timeout=DEADLINE_SECONDS)
        assert main(["token", "revoke", "pool", *database(folder)]) == 0
        assert main(["token", "revoke", "page", *database(folder)]) == 0
        assert "was revoked" in str(agent.hear())
        with pytest.raises(websockets.exceptions.ConnectionClosed) as closed:
            _listen(browser)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == NOT_KNOWN


def test_who_needed_no_token_is_cut_off_once_there_are_some(
    server: RunningServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with server.websocket("/ws/live") as browser, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        create(folder, capsys, "--role", "agent", "pool")
        assert "is needed now" in str(agent.hear())
        assert browser.recv(timeout=DEADLINE_SECONDS)
        create(folder, capsys, "--role", "reader", "lin")
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            _listen(browser)


def test_an_agents_token_may_be_for_one_node_alone(
    server: RunningServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = create(folder, capsys, "--role", "agent", "--node", "gpu-08", "pool")
    other = create(folder, capsys, "--role", "agent", "--node", "gpu-07", "pool-7")
    until(lambda: server.call(lambda: server.parts.keyring.find(other)) is not None)
    with AgentClient(server, additional_headers=bearer(token)) as agent:
        agent.say(hello(sent_at=time.time()))
        assert 'the token is not for node "gpu-07", but for gpu-08' in str(agent.hear())
    with AgentClient(server, additional_headers=bearer(other)) as agent:
        agent.greet(hello(sent_at=time.time()))


def test_a_rotated_token_is_good_for_the_time_of_grace(
    server: RunningServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = create(folder, capsys, "--role", "reader", "lin")
    assert main(["token", "rotate", "lin", "--grace", "1h", *database(folder)]) == 0
    new = capsys.readouterr().out.strip()
    until(lambda: server.get("/api/v1/state", headers=bearer(new)).status_code == 200)
    assert server.get("/api/v1/state", headers=bearer(old)).status_code == 200
    assert main(["token", "list", *database(folder)]) == 0
    listed = capsys.readouterr().out
    assert "until" in listed
    assert old not in listed
    assert main(["token", "rotate", "lin", "--grace", "0s", *database(folder)]) == 0
    until(lambda: server.get("/api/v1/state", headers=bearer(old)).status_code == 401)


def test_an_unknown_token_cannot_be_revoked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create(folder, capsys, "lin", "--role", "reader")
    assert main(["token", "revoke", "nobody", *database(folder)]) == 1
    assert 'there is no token "nobody" that is good' in capsys.readouterr().err


def test_the_database_holds_no_token(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    token = create(folder, capsys, "--role", "operator", "lin")
    content = b"".join(file.read_bytes() for file in folder.glob("oomwatch.db*"))
    assert token.encode() not in content
    assert token.rpartition("_")[2].encode() not in content


def test_what_people_did_is_in_the_audit_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(settings_in(folder, operator_token="act")) as server:
        act(server, headers=bearer("act"))
        act(server)
        refused = server.get("/api/v1/audit")
        assert refused.status_code == 403
        rows = server.get("/api/v1/audit", headers=bearer("act")).json()
        told = [(row["who"], row["role"], row["method"], row["path"], row["status"]) for row in rows]
        assert told == [("operator_token", "operator", "POST", "/api/v1/silences", 201)]  # and no stranger
    assert main(["audit", *database(folder)]) == 0
    assert "POST /api/v1/silences" in capsys.readouterr().out


def test_a_person_signs_in_on_a_page_and_out_again(folder: Path) -> None:
    with serving(settings_in(folder, reader_token="look")) as server:
        page = server.get("/", headers={"Accept": "text/html"})
        assert page.status_code == 401
        assert "<form" in page.text
        assert "script" not in page.text
        assert "form-action 'self'" in page.headers["content-security-policy"]
        visitor = Visitor(server)
        wrong = visitor.sign_in(token="guess")
        assert (wrong.status_code, "not known" in wrong.text) == (401, True)
        right = visitor.sign_in(token="look")
        assert (right.status_code, right.headers["location"]) == (303, "/")
        assert visitor.get("/").status_code == 200
        out = visitor.post("/sign-out")
        assert 'oomwatch_token=""' in out.headers["set-cookie"]
        assert not visitor.looks()


def test_who_comes_in_by_a_token_and_goes_is_in_the_audit_log_and_who_does_not_in_the_servers(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(settings_in(folder, operator_token="act")) as server:
        visitor = Visitor(server)
        visitor.sign_in(token="guess")
        assert "somebody at 127.0.0.1 could not sign in by a token" in caplog.messages
        visitor.sign_in(token="act")
        visitor.post("/sign-out")
        told = visitor.ask("GET", "/api/v1/audit", {"Authorization": "Bearer act"}).json()
        assert [(row["who"], row["path"]) for row in told] == [
            ("operator_token", "/sign-out"),
            ("operator_token", "/sign-in (token)"),
        ]


def test_who_comes_in_by_a_token_in_the_address_is_in_the_audit_log(folder: Path) -> None:
    with serving(settings_in(folder, reader_token="look", operator_token="act")) as server:
        assert Visitor(server).get("/?token=look").status_code == 303
        (row,) = server.get("/api/v1/audit", headers={"Authorization": "Bearer act"}).json()
        assert (row["who"], row["path"]) == ("reader_token", "/sign-in (token)")
        assert "look" not in str(row)


def test_a_page_from_elsewhere_can_sign_nobody_in(folder: Path) -> None:
    with serving(settings_in(folder, reader_token="look")) as server:
        headers = {"Origin": "https://elsewhere.example"}
        assert server.ask("POST", "/sign-in", data={"token": "look"}, headers=headers).status_code == 403


def test_a_token_in_the_address_leads_nowhere_else(folder: Path) -> None:
    with serving(settings_in(folder, reader_token="look", external_url="https://gpus.example")) as server:
        answer = server.get("//elsewhere.example/?token=look")
        assert (answer.status_code, answer.headers["location"]) == (303, "/elsewhere.example/")
        assert "Secure" in answer.headers["set-cookie"]  # a proxy before it speaks TLS


def test_a_form_that_is_too_long_is_refused(folder: Path) -> None:
    with serving(settings_in(folder, reader_token="look")) as server:
        assert server.ask("POST", "/sign-in", data={"token": "x" * 10_000}).status_code == 413


# ---------------------------------------------------------------- open to the network


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "no token for agents and none for readers"),
        ({"token": "send"}, "no token for readers"),
        ({"reader_token": "look"}, "no token for agents"),
    ],
)
def test_a_server_does_not_open_itself_to_the_network(folder: Path, given: dict[str, str], missing: str) -> None:
    with (
        pytest.raises(SettingError, match=missing),
        serving(settings_in(folder, listen="0.0.0.0:8642", **given)),
    ):
        pass


def test_people_who_sign_in_by_name_are_readers_enough(folder: Path) -> None:
    settle(folder)
    with serving(settings_in(folder, listen="0.0.0.0:8642", token="send")) as server:
        assert server.get("/api/v1/state").status_code == 401


def test_it_does_where_it_is_told_to_or_has_tokens(folder: Path) -> None:
    with serving(settings_in(folder, listen="0.0.0.0:8642", open_to_network=True)) as server:
        assert server.get("/api/v1/state").status_code == 200
    with serving(settings_in(folder, listen="0.0.0.0:8642", token="send", reader_token="look")) as server:
        assert server.get("/api/v1/state").status_code == 401


# ---------------------------------------------------------------- TLS


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The authority's says what its key is for: since Python 3.13 `ssl.create_default_context` takes no other."""
    if shutil.which("openssl") is None:
        do_without("openssl, which makes the certificates of the tests", "openssl")
    folder = tmp_path_factory.mktemp("tls")
    key = ["-newkey", "rsa:2048", "-nodes"]
    _openssl(
        folder, "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority",
        "-days", "2", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
    )  # fmt: skip
    for name in ("server", "agent"):
        (folder / f"{name}.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        _openssl(folder, "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        _openssl(
            folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext",
        )  # fmt: skip
    return folder


def _openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def _check(server: RunningServer, *words: str) -> int:
    url = "https" + server.url.removeprefix("http")
    return agent_main(["--server", url, "--simulate", "demo", "--check", *words])


def test_an_agent_knows_a_server_by_its_certificate(
    folder: Path, certificates: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = settings_in(folder, tls_cert=certificates / "server.pem", tls_key=certificates / "server.key")
    with serving(settings) as server:
        assert _check(server, "--tls-ca", str(certificates / "ca.pem")) == 0
        assert _check(server) != 0
        told = capsys.readouterr()
        assert "--tls-ca" in told.out + told.err


def test_a_server_may_know_an_agent_by_its_certificate(folder: Path, certificates: Path) -> None:
    settings = settings_in(
        folder,
        tls_cert=certificates / "server.pem",
        tls_key=certificates / "server.key",
        tls_client_ca=certificates / "ca.pem",
    )
    with serving(settings) as server:
        trusting = ("--tls-ca", str(certificates / "ca.pem"))
        assert _check(server, *trusting) != 0
        mine = ("--tls-cert", str(certificates / "agent.pem"), "--tls-key", str(certificates / "agent.key"))
        assert _check(server, *trusting, *mine) == 0


@pytest.mark.parametrize("is_polite", [True, False])
def test_an_agent_over_tls_that_goes_is_gone(folder: Path, certificates: Path, *, is_polite: bool) -> None:
    with serving(_over_tls(folder, certificates)) as server:
        server.url = "https" + server.url.removeprefix("http")
        with AgentClient(server, ssl=_trusting(certificates)) as agent:
            agent.greet(hello("gpu-07", sent_at=time.time()))
            assert _connected(server)
            if not is_polite:
                agent.connection.socket.shutdown(socket.SHUT_RDWR)
        until(lambda: not _connected(server))


def test_who_says_goodbye_over_tls_and_stays_does_not_end_the_watch_over_connections(
    folder: Path, certificates: Path
) -> None:
    connections = Connections(10)
    with serving(_over_tls(folder, certificates), connections) as server:
        stranger = socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])))
        with _trusting(certificates).wrap_socket(stranger, server_hostname="localhost") as line:
            line.sendall(UPGRADE.format(path="/ws/agent").encode())
            assert b" 101 " in line.recv(4096)
            line.sendall(frame(Opcode.TEXT, wire.encode(hello("gpu-07", sent_at=time.time()))))
            until(lambda: _connected(server))
            line.sendall(frame(Opcode.CLOSE))
            until(lambda: not _connected(server))
            server.call(connections.sweep)
            assert len(connections) == 1


def _over_tls(folder: Path, certificates: Path) -> Settings:
    return settings_in(folder, tls_cert=certificates / "server.pem", tls_key=certificates / "server.key")


def _trusting(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=certificates / "ca.pem")


def _connected(server: RunningServer) -> bool:
    return any(session.peer is not None for session in server.parts.service.roster)


async def _serve(folder: Path, **changes: object) -> None:
    await serve(settings_in(folder, listen="127.0.0.1:0", **changes))


@pytest.mark.parametrize("content", ["", "no certificate"])
def test_a_certificate_that_cannot_be_used_is_named(folder: Path, content: str) -> None:
    (folder / "bad.pem").write_text(content)
    with pytest.raises(SettingError, match=r"tls_cert: .*bad\.pem and its key cannot be used"):
        asyncio.run(_serve(folder, tls_cert=folder / "bad.pem"))
    with pytest.raises(SettingError, match="tls_cert: is missing"):
        asyncio.run(_serve(folder, tls_key=folder / "bad.pem"))
