"""Acknowledgements and silences over real HTTP, with a real server and its database."""

import json
import re
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.mute.samples import silence
from tests.server.house import hello, sample
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire
from oomwatch.catalogue import entries
from oomwatch.service.silences import SILENCES_MAX
from oomwatch.web import silences

SILENCES = "/api/v1/silences"
NODE = 'node="gpu-07"'


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server with one alert that fires."""
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        yield server


def firing(server: RunningServer) -> dict[str, Any]:
    (row,) = server.get("/api/v1/alerts?state=firing").json()
    assert isinstance(row, dict)
    return row


def add(server: RunningServer, *match: str, **changes: object) -> dict[str, Any]:
    told: dict[str, object] = {"match": match or (NODE,), "duration": "2h", "created_by": "lin", **changes}
    answer = server.ask("POST", SILENCES, json=told)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert isinstance(made, dict)
    return made


# ---------------------------------------------------------------- care


def test_an_alert_is_acknowledged_and_whoever_asks_next_sees_it(server: RunningServer) -> None:
    alert = firing(server)["id"]
    answer = server.ask("POST", f"/api/v1/alerts/{alert}/acknowledge", json={"by": "lin", "note": "on it"})
    assert answer.status_code == 200
    assert answer.json()["acknowledged"]["by"] == "lin"
    assert firing(server)["acknowledged"]["note"] == "on it"
    story = server.get(f"/api/v1/alerts/{alert}").json()
    assert [one["change"] for one in story["transitions"][1:]] == ["acknowledged"]
    taken_back = server.ask("DELETE", f"/api/v1/alerts/{alert}/acknowledge")
    assert taken_back.json()["acknowledged"] is None
    assert firing(server)["acknowledged"] is None


def test_alerts_that_match_are_acknowledged_together(server: RunningServer) -> None:
    path, alert = "/api/v1/alerts/acknowledge", firing(server)["id"]
    assert server.ask("POST", path, json={"match": ["node=other"], "by": "lin"}).json() == {"alerts": []}
    assert server.ask("POST", path, json={"match": [NODE], "by": "lin"}).json() == {"alerts": [alert]}
    assert firing(server)["acknowledged"]["by"] == "lin"


def test_alerts_are_acknowledged_by_their_ids_and_those_that_do_not_fire_are_left_out(server: RunningServer) -> None:
    path, alert = "/api/v1/alerts/acknowledge", firing(server)["id"]
    assert server.ask("POST", path, json={"ids": [alert, "over"], "by": "lin"}).json() == {"alerts": [alert]}
    assert firing(server)["acknowledged"]["by"] == "lin"


@pytest.mark.parametrize("by_ids", [True, False])
def test_several_acknowledgements_are_taken_back_at_once(server: RunningServer, by_ids: bool) -> None:
    path, alert = "/api/v1/alerts/unacknowledge", firing(server)["id"]
    which: dict[str, object] = {"ids": [alert, "over"]} if by_ids else {"match": [NODE]}
    assert server.ask("POST", path, json=which).json() == {"alerts": []}, "nobody took care of it"
    server.ask("POST", f"/api/v1/alerts/{alert}/acknowledge", json={"by": "lin"})
    assert server.ask("POST", path, json=which).json() == {"alerts": [alert]}
    assert firing(server)["acknowledged"] is None


@pytest.mark.parametrize("body", [{}, {"ids": ["a"], "match": [NODE]}, {"match": []}, {"match": ["node ~ x"]}])
@pytest.mark.parametrize("path", ["acknowledge", "unacknowledge"])
def test_several_alerts_have_to_be_named_in_one_way(server: RunningServer, path: str, body: dict[str, object]) -> None:
    care = {"by": "lin"} if path == "acknowledge" else {}
    refused = server.ask("POST", f"/api/v1/alerts/{path}", json={**body, **care})
    assert refused.status_code == 400
    assert refused.json()["error"]


def test_what_does_not_fire_cannot_be_acknowledged(server: RunningServer) -> None:
    unknown = server.ask("POST", "/api/v1/alerts/none/acknowledge", json={"by": "lin"})
    assert (unknown.status_code, unknown.json()) == (404, {"error": 'there is no alert "none"'})
    over = wire.Transition(
        id="over", alert="full", severity="warning", state="resolved", at=time.time(), started_at=time.time(),
        labels={"node": "gpu-07"},
    )  # fmt: skip
    server.parts.store.append([over])
    refused = server.ask("POST", "/api/v1/alerts/over/acknowledge", json={"by": "lin"})
    assert refused.status_code == 409
    assert "does not fire" in refused.json()["error"]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"{}", 400, "by"),
        (b'{"by": ""}', 400, "by: say who you are"),
        (b'{"by": "lin", "nope": 1}', 400, "nope"),
        (b"\xff", 400, "not understood"),
        (b"[" * 100_000, 413, "longer than"),
        (b"[" * 60_000, 400, "not understood"),
    ],
)
def test_a_request_that_is_not_understood_is_refused_with_a_sentence(
    server: RunningServer, body: bytes, status: int, sentence: str
) -> None:
    answer = server.ask("POST", f"/api/v1/alerts/{firing(server)['id']}/acknowledge", content=body)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]


def test_a_page_from_elsewhere_can_neither_acknowledge_nor_silence(server: RunningServer) -> None:
    alert, elsewhere = firing(server)["id"], {"Origin": "http://evil.example"}
    for method, path in (
        ("POST", f"/api/v1/alerts/{alert}/acknowledge"),
        ("DELETE", f"/api/v1/alerts/{alert}/acknowledge"),
        ("POST", SILENCES),
        ("DELETE", f"{SILENCES}/x"),
    ):
        assert server.ask(method, path, headers=elsewhere).status_code == 403


# ---------------------------------------------------------------- silences


def test_a_silence_mutes_at_once_and_its_end_is_seen_at_once(server: RunningServer) -> None:
    made = add(server, note="new driver")
    assert (made["state"], made["match"], made["created_by"]) == ("active", ['node="gpu-07"'], "lin")
    assert [(one["kind"], one["by"], one["note"]) for one in firing(server)["muted"]] == [
        ("silence", made["id"], "new driver")
    ]
    ended = server.ask("DELETE", f"{SILENCES}/{made['id']}").json()
    assert ended["state"] == "ended"
    assert firing(server)["muted"] == []
    assert [one["state"] for one in server.get(SILENCES).json()] == ["ended"]
    assert server.get(f"{SILENCES}?since={time.time() + 1}").json() == []
    again = server.ask("DELETE", f"{SILENCES}/{made['id']}")
    assert (again.status_code, "no silence" in again.json()["error"]) == (404, True)


def test_a_silence_that_another_server_was_told_of_a_moment_ago_can_be_ended_here(server: RunningServer) -> None:
    server.parts.store.keep_silences([silence(NODE, start=time.time(), end=time.time() + 3600)])
    (stored,) = server.get(SILENCES).json()
    assert server.ask("DELETE", f"{SILENCES}/{stored['id']}").json()["state"] == "ended"


def test_a_silence_to_come_hides_nothing_yet_and_can_be_called_off(server: RunningServer) -> None:
    made = add(server, starts_at=time.time() + 3600)
    assert made["state"] == "upcoming"
    assert firing(server)["muted"] == []
    called_off = server.ask("DELETE", f"{SILENCES}/{made['id']}").json()
    assert called_off["state"] == "ended"
    assert called_off["starts_at"] <= called_off["ends_at"]


def test_a_silence_that_makes_no_sense_is_refused_with_a_sentence(server: RunningServer) -> None:
    answer = server.ask("POST", SILENCES, json={"match": ["nod=x"], "duration": "2h", "created_by": "lin"})
    assert answer.status_code == 400
    assert 'no label "nod"' in answer.json()["error"]
    assert server.get(SILENCES).json() == []


def test_there_is_an_end_to_the_number_of_silences(server: RunningServer) -> None:
    end = time.time() + 3600
    many = [silence("node=other", silence_id=str(number), end=end) for number in range(SILENCES_MAX)]
    server.call(lambda: server.parts.service.attention.put_silences(many))
    answer = server.ask("POST", SILENCES, json={"match": [NODE], "duration": "2h", "created_by": "lin"})
    assert answer.status_code == 400
    assert "end some" in answer.json()["error"]


def test_silences_and_acknowledgements_outlive_a_restart(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        server.ask("POST", f"/api/v1/alerts/{firing(server)['id']}/acknowledge", json={"by": "lin"})
        made = add(server)
    with serving(settings_in(tmp_path)) as server:
        row = firing(server)
        assert [mute["by"] for mute in row["muted"]] == [made["id"]]
        assert row["acknowledged"]["by"] == "lin"
        assert [one["id"] for one in server.get("/api/v1/state").json()["silences"]] == [made["id"]]
        before = len(server.get(f"/api/v1/alerts/{row['id']}").json()["transitions"])
        beats = server.parts.service.seconds_since_beat
        until("a beat", lambda: beats() < 0.5)
        assert len(server.get(f"/api/v1/alerts/{row['id']}").json()["transitions"]) == before


def test_maintenance_in_the_rule_file_mutes_once_the_file_is_read(server: RunningServer, tmp_path: Path) -> None:
    section = f"notify:\n  maintenance:\n    - {{name: rack 7, from: {_day(0)}, to: {_day(2)}, match: ['{NODE}']}}\n"
    (tmp_path / "alerts.yaml").write_text(RULES + section, encoding="utf-8")
    (mute,) = until("the mute", lambda: firing(server)["muted"])
    assert (mute["kind"], mute["by"]) == ("maintenance", "rack 7")
    (tmp_path / "alerts.yaml").write_text(RULES, encoding="utf-8")
    until("its end", lambda: not firing(server)["muted"])


def _day(later: int) -> str:
    """A day before now, or so many days after that."""
    return datetime.fromtimestamp(time.time() + (later - 1) * 86_400, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_browsers_are_told_of_silences(server: RunningServer) -> None:
    with server.websocket("/ws/live") as live:
        live.recv(timeout=5)
        made = add(server)
        kinds: dict[str, Any] = {}

        def both() -> bool:
            told = json.loads(live.recv(timeout=5))
            for one in told if isinstance(told, list) else [told]:
                kinds[one["type"]] = one
            return {"silences", "alert"} <= set(kinds)

        until("both messages", both)
    assert [one["id"] for one in kinds["silences"]["silences"]] == [made["id"]]


def test_a_preview_says_what_a_silence_would_hide(server: RunningServer) -> None:
    now, day = time.time(), 86_400.0
    past = [
        wire.Transition(
            id=str(number), alert="oom", severity="critical", state="firing", at=now - age, started_at=now - age,
            labels={"node": node},
        )
        for number, (age, node) in enumerate([(100, "gpu-07"), (2 * day, "gpu-07"), (100, "b"), (8 * day, "gpu-07")])
    ]  # fmt: skip
    server.parts.store.append(past)
    preview = server.ask("POST", f"{SILENCES}/preview", json={"match": [NODE]}).json()
    assert [one["alert"] for one in preview["alerts"]] == ["full"]
    assert preview["last_24h"] == {"fired": 3, "hidden": 2, "hidden_critical": 1}
    assert preview["last_7d"] == {"fired": 4, "hidden": 3, "hidden_critical": 2}
    assert preview["warnings"] == ["critical alerts that it would have muted in the last 7 days: 2"]
    assert firing(server)["muted"] == []


def test_a_preview_warns_of_matchers_that_leave_nothing_out(server: RunningServer) -> None:
    preview = server.ask("POST", f"{SILENCES}/preview?lang=zh", json={"match": ['severity=~".*"']}).json()
    assert preview["warnings"] == ["它不排除任何告警：所有级别、所有节点"]


def test_every_warning_is_in_the_catalogue_and_none_is_left_over() -> None:
    used = set(re.findall(r'"(hides\.[a-z_]+)"', Path(silences.__file__).read_text(encoding="utf-8")))
    assert used == {key for key in entries() if key.startswith("hides.")}


def test_the_description_knows_bodies_and_answers(server: RunningServer) -> None:
    told = server.get("/api/v1/openapi.json").json()
    posted = told["paths"]["/api/v1/silences"]["post"]
    assert {"match", "created_by", "duration"} <= set(
        posted["requestBody"]["content"]["application/json"]["schema"]["properties"]
    )
    assert set(posted["responses"]) >= {"201", "400"}
    assert {"SilenceRow", "Preview", "Acknowledged"} <= set(told["components"]["schemas"])
