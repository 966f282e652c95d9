"""The rule file over the API of a real server: read without its secrets, changed whole or not at all, tried before."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from tests.server.house import hello, sample
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until

from oomwatch.__main__ import main
from oomwatch.ruleedit.file import backup_of
from oomwatch.rulefile import FILE_BYTES_MAX
from oomwatch.tryout.result import Tryout
from oomwatch.web.tryouts import ClientGoneError, Question, Tryouts

SECRET = "http://127.0.0.1:9/services/hush"
FILE = RULES + f"notify:\n  channels:\n    - {{kind: webhook, name: ops, url: '{SECRET}'}}  # ours\n"
Output = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "alerts.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


@pytest.fixture
def server(path: Path) -> Iterator[RunningServer]:
    with serving(settings_in(path.parent, rules_editable=True)) as server:
        yield server


def shown(server: RunningServer) -> dict[str, Any]:
    found: dict[str, Any] = server.get("/api/v1/rules/file").json()
    return found


def put(server: RunningServer, text: str, digest: str | None) -> httpx.Response:
    headers = {} if digest is None else {"If-Match": f'"{digest}"'}
    return server.ask("PUT", "/api/v1/rules/file", content=text.encode(), headers=headers)


def in_force(server: RunningServer) -> list[str]:
    return [rule["alert"] for rule in server.get("/api/v1/rules").json().get("rules", [])]


# ---------------------------------------------------------------- reading


def test_the_file_is_shown_without_its_secrets(server: RunningServer) -> None:
    answer = server.get("/api/v1/rules/file")
    told = answer.json()
    assert "hush" not in answer.text
    assert told["text"].startswith(RULES)
    assert told["text"].endswith("}  # ours\n")
    assert (told["secrets"], told["editable"], told["why_not"], told["problem"]) == (1, True, None, None)
    assert answer.headers["etag"] == f'"{told["digest"]}"'


def test_every_rule_is_told_those_that_are_off_too_with_what_fires(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        rows = until("the alert", lambda: [row for row in server.get("/api/v1/rules/all").json() if row["firing"]])
    assert [(row["alert"], row["enabled"], row["watches"]) for row in rows] == [
        ("full", True, "threshold gpu_used_ratio above 85%")
    ]
    server.ask("POST", "/api/v1/rules/full/disable")
    assert [row["enabled"] for row in server.get("/api/v1/rules/all").json()] == [False]
    assert in_force(server) == []


# ---------------------------------------------------------------- changing


def test_a_changed_file_is_in_force_at_once_and_keeps_its_secrets(server: RunningServer, path: Path) -> None:
    before = shown(server)
    answer = put(server, before["text"].replace("alert: full", "alert: fuller"), before["digest"])
    assert answer.status_code == 200
    assert answer.json() == {"digest": answer.headers["etag"].strip('"'), "changed": True, "rules": 1}
    assert in_force(server) == ["fuller"]
    assert path.read_text(encoding="utf-8") == FILE.replace("alert: full", "alert: fuller")
    assert backup_of(path).read_text(encoding="utf-8") == FILE
    assert shown(server)["digest"] == answer.json()["digest"]


def test_without_the_setting_nothing_can_be_changed_and_the_answer_names_it(path: Path) -> None:
    with serving(settings_in(path.parent)) as server:
        told = shown(server)
        assert (told["editable"], "--rules-editable" in told["why_not"]) == (False, True)
        for answer in (put(server, told["text"], told["digest"]), server.ask("POST", "/api/v1/rules/full/disable")):
            assert answer.status_code == 403
            assert "--rules-editable" in answer.json()["error"]
        assert path.read_text(encoding="utf-8") == FILE


def test_every_mistake_is_answered_with_its_place_and_nothing_changes(server: RunningServer, path: Path) -> None:
    before = shown(server)
    answer = put(server, "rules:\n  - alert: a\n  - whem: {}\n", before["digest"])
    assert answer.status_code == 400
    assert {(one["line"], one["message"]) for one in answer.json()["mistakes"]} >= {(2, '"when" is missing')}
    assert path.read_text(encoding="utf-8") == FILE
    assert in_force(server) == ["full"]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"", b"rules: [", b"\x00", b"rules: &a [*a]"])
def test_what_is_no_rule_file_is_refused(server: RunningServer, content: bytes, path: Path) -> None:
    answer = server.ask("PUT", "/api/v1/rules/file", content=content, headers={"If-Match": shown(server)["digest"]})
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert path.read_text(encoding="utf-8") == FILE


def test_a_huge_body_is_refused(server: RunningServer) -> None:
    answer = put(server, "#" * (FILE_BYTES_MAX + 1), shown(server)["digest"])
    assert answer.status_code == 413


def test_an_answer_quotes_no_secret(server: RunningServer) -> None:
    before = shown(server)
    answer = put(server, before["text"].replace("kind: webhook", "kind: pigeon"), before["digest"])
    assert answer.status_code == 400
    assert "hush" not in answer.text


def test_a_secrets_placeholder_cannot_be_moved_into_a_sentence(server: RunningServer, path: Path) -> None:
    before = shown(server)
    placeholder = before["text"].split("url: ")[1].split("}")[0]
    answer = put(server, before["text"].replace('"lower gpu_memory_utilization"', placeholder), before["digest"])
    assert answer.status_code == 400
    assert "placeholder" in answer.json()["error"]
    assert path.read_text(encoding="utf-8") == FILE


def test_who_does_not_say_what_was_changed_is_asked_to(server: RunningServer) -> None:
    assert put(server, RULES, None).status_code == 428


def test_a_file_that_was_changed_on_disk_meanwhile_is_not_written_over(server: RunningServer, path: Path) -> None:
    before = shown(server)
    path.write_text(FILE + "# theirs\n", encoding="utf-8")
    answer = put(server, before["text"], before["digest"])
    assert answer.status_code == 412
    assert "read it again" in answer.json()["error"]
    assert path.read_text(encoding="utf-8").endswith("# theirs\n")


def test_of_two_changes_of_the_same_state_one_is_taken(server: RunningServer) -> None:
    before = shown(server)
    answers: list[int] = []

    def change(name: str) -> None:
        answers.append(
            put(server, before["text"].replace("alert: full", f"alert: {name}"), before["digest"]).status_code
        )

    threads = [threading.Thread(target=change, args=(f"full{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200, 412, 412, 412]


def test_a_channel_that_cannot_be_opened_changes_nothing(server: RunningServer, path: Path) -> None:
    before = shown(server)
    text = RULES.replace("full", "fuller") + "notify: {channels: [{kind: slack, name: a, url_env: NOT_SET}]}\n"
    answer = put(server, text, before["digest"])
    assert answer.status_code == 400
    assert "NOT_SET" in answer.json()["error"]
    assert path.read_text(encoding="utf-8") == FILE
    assert sorted(one.name for one in path.parent.iterdir() if "alerts" in one.name) == ["alerts.yaml"]
    assert in_force(server) == ["full"]


def test_a_file_that_cannot_be_replaced_is_told_and_the_rules_stay(server: RunningServer, path: Path) -> None:
    backup_of(path).mkdir()
    (backup_of(path) / "in the way").touch()
    before = shown(server)
    answer = put(server, before["text"].replace("alert: full", "alert: fuller"), before["digest"])
    assert answer.status_code == 409
    assert "cannot be replaced" in answer.json()["error"]
    assert in_force(server) == ["full"]
    assert path.read_text(encoding="utf-8") == FILE


def test_a_file_with_mistakes_can_be_mended(server: RunningServer, path: Path) -> None:
    path.write_text(FILE + "rules: []\n", encoding="utf-8")
    until("the mistake to be seen", lambda: shown(server)["problem"])
    before = shown(server)
    assert "hush" not in before["text"]
    answer = put(server, before["text"].removesuffix("rules: []\n"), before["digest"])
    assert answer.status_code == 200, answer.text
    assert shown(server)["problem"] is None
    assert path.read_text(encoding="utf-8") == FILE


# ---------------------------------------------------------------- switching


def test_a_rule_is_switched_off_and_on_in_the_file(server: RunningServer, path: Path) -> None:
    assert server.ask("POST", "/api/v1/rules/full/disable?severity=warning").status_code == 200
    assert "    enabled: false\n" in path.read_text(encoding="utf-8")
    assert in_force(server) == []
    assert server.ask("POST", "/api/v1/rules/full/enable").json()["changed"]
    assert in_force(server) == ["full"]
    assert not server.ask("POST", "/api/v1/rules/full/enable").json()["changed"]
    assert "# ours" in path.read_text(encoding="utf-8")


def test_a_rule_is_switched_off_for_one_run(server: RunningServer) -> None:
    assert server.ask("POST", "/api/v1/rules/full/disable", params={"run": "a/b"}).status_code == 200
    (row,) = server.get("/api/v1/rules/all").json()
    assert [(one["node"], one["run"], one["enabled"]) for one in row["overrides"]] == [("*", "a/b", False)]


@pytest.mark.parametrize(
    ("path_", "status", "why"),
    [
        ("nothing/disable", 404, 'there is no rule "nothing"; there are full'),
        ("full/disable?severity=info", 404, "of severity info"),
        ("full/disable?severity=loud", 400, "severity: "),
        ("full/disable?run=", 400, "run: "),
    ],
)
def test_what_cannot_be_switched_is_told(server: RunningServer, path_: str, status: int, why: str) -> None:
    answer = server.ask("POST", f"/api/v1/rules/{path_}")
    assert answer.status_code == status
    assert why in answer.json()["error"]


def test_a_page_of_elsewhere_can_switch_nothing(server: RunningServer, path: Path) -> None:
    answer = server.ask("POST", "/api/v1/rules/full/disable", headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert path.read_text(encoding="utf-8") == FILE


def test_the_commands_do_it_over_the_server(server: RunningServer, capsys: Output) -> None:
    assert main(["rules", "disable", "full", "--server", server.url]) == 0
    assert capsys.readouterr().out == f"{server.url}: full is off\n"
    assert main(["rules", "list", "--server", server.url]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert "firing" in head
    assert row.split()[:3] == ["full", "warning", "no"]
    assert main(["rules", "disable", "other", "--server", server.url]) == 1
    assert capsys.readouterr().err == f'oomwatch: {server.url}: there is no rule "other"; there are full\n'


# ---------------------------------------------------------------- trying


@pytest.fixture
def with_readings(server: RunningServer) -> RunningServer:
    """A minute of a card at 60 of 80 GiB."""
    now = time.time()
    with AgentClient(server) as agent:
        agent.greet(hello(sent_at=now))
        agent.say(*(sample(seq, 60, now - 60 + seq) for seq in range(1, 61)))
        agent.hear_ack_of(60)
    return server


def test_a_change_is_tried_on_what_the_server_has_stored(
    with_readings: RunningServer, capsys: Output, tmp_path: Path
) -> None:
    text = shown(with_readings)["text"].replace("above: 85%", "above: 70%")
    answer = with_readings.ask("POST", "/api/v1/rules/try?hours=1", content=text.encode())
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert (told["count"], told["in_force_count"], told["rules"][0]["new"]) == (1, 0, 1)
    assert in_force(with_readings) == ["full"]
    same = with_readings.ask("PUT", "/api/v1/rules/file?try=1", content=text.encode()).json()
    assert same["count"] == 1
    (tmp_path / "new.yaml").write_text(RULES.replace("above: 85%", "above: 70%"), encoding="utf-8")
    assert main(["rules", "try", str(tmp_path / "new.yaml"), "--server", with_readings.url]) == 0
    assert "would have fired 1 time; the rules in force: 0 times" in capsys.readouterr().out


def test_what_cannot_be_tried_is_told(with_readings: RunningServer, path: Path) -> None:
    broken = with_readings.ask("POST", "/api/v1/rules/try", content=b"rules: 7")
    assert (broken.status_code, broken.json()["mistakes"][0]["line"]) == (400, 1)
    unknown = with_readings.ask("POST", "/api/v1/rules/try?node=x", content=RULES.encode())
    assert unknown.status_code == 400
    assert unknown.json()["error"] == 'the database knows of no node "x"; it knows gpu-07'
    assert with_readings.ask("POST", "/api/v1/rules/try?hours=nan", content=RULES.encode()).status_code == 400
    path.write_text("rules: 7\n", encoding="utf-8")
    alone = with_readings.ask("POST", "/api/v1/rules/try", content=RULES.encode()).json()
    assert alone["in_force_count"] is None
    assert "has mistakes" in alone["note"]


def test_one_change_is_tried_at_a_time(with_readings: RunningServer) -> None:
    answers: list[int] = []

    def ask() -> None:
        answers.append(with_readings.ask("POST", "/api/v1/rules/try", content=RULES.encode()).status_code)

    first = threading.Thread(target=ask)
    first.start()
    tryouts = with_readings.parts.rules.tryouts
    until("the first to be tried", lambda: tryouts.is_busy)
    ask()
    first.join()
    assert answers == [409, 200]
    ask()
    assert answers == [409, 200, 200]


def test_a_client_that_goes_away_takes_the_process_along(with_readings: RunningServer) -> None:
    host, port = with_readings.url.removeprefix("http://").split(":")
    tryouts = with_readings.parts.rules.tryouts
    body = RULES.encode()
    with contextlib.closing(socket.create_connection((host, int(port)))) as connection:
        head = f"POST /api/v1/rules/try HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        until("it to be tried", lambda: tryouts.is_busy)
        until("its process", children)
    until("the process to be gone", lambda: not tryouts.is_busy and not children())


def children() -> list[psutil.Process]:
    """Those that try rules: other tests' programs may run beside them."""
    return [one for one in psutil.Process().children() if _tries(one)]


def _tries(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
        return {"rules", "try"} <= set(process.cmdline())
    return False


def test_nobody_who_waits_ends_the_process_at_once(tmp_path: Path, path: Path) -> None:
    async def gone() -> bool:
        return True

    async def ask() -> Tryout:
        tryouts = Tryouts(f"sqlite:///{tmp_path / 'none.db'}", path)
        with tryouts.turn():
            return await tryouts.attempt(FILE, Question(), gone)

    with pytest.raises(ClientGoneError):
        asyncio.run(ask())
    assert children() == []
