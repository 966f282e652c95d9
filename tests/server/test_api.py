"""/api/v1, health, static files and who may read them, over real HTTP."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.server.house import hello, sample
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire

ROW = [
    *("id", "alert", "severity", "state", "labels", "started_at", "ended_at", "value", "summary", "description"),
    *("advice", "fired_at", "limit", "unit", "stale", "simulated", "facts", "reason", "lowered_from", "causes"),
    *("remedies", "outcome", "acts", "muted", "acknowledged"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server with one alert that has ended (gpu-07) and one that fires (gpu-08, simulated), read only."""
    with serving(settings_in(tmp_path_factory.mktemp("api"))) as server:
        with AgentClient(server) as one, AgentClient(server) as other:
            one.greet(hello("gpu-07", sent_at=time.time()))
            other.greet(hello("gpu-08", sent_at=time.time(), run="qwen7b", simulated=True))
            one.say(sample(1, 79, time.time()), sample(2, 10, time.time()))
            step = wire.Step(step=4, step_seconds=60.0, rollout_seconds=20.0)
            other.say(sample(1, 78, time.time()), wire.Event(seq=2, at=time.time(), body=step))
            one.hear_ack_of(2)
            other.hear_ack_of(2)
        until("the alert to end", lambda: server.get("/api/v1/alerts?state=resolved").json())
        yield server


def test_alerts_are_an_array_of_rows_newest_first(server: RunningServer) -> None:
    rows = server.get("/api/v1/alerts").json()
    assert [row["state"] for row in rows] == ["firing", "resolved"]
    assert all(list(row) == ROW for row in rows)
    assert rows[0]["started_at"] >= rows[1]["started_at"]


def test_an_open_alert_has_no_end_and_an_ended_one_has(server: RunningServer) -> None:
    firing, ended = server.get("/api/v1/alerts").json()
    assert firing["ended_at"] is None
    assert firing["simulated"]
    assert firing["labels"] == {"node": "gpu-08", "gpu": "0", "run": "qwen7b"}
    assert ended["ended_at"] > ended["fired_at"]
    assert ended["reason"] == "recovered"


@pytest.mark.parametrize(
    ("query", "nodes"),
    [
        ("state=firing", ["gpu-08"]),
        ("state=resolved", ["gpu-07"]),
        ("state=pending", []),
        ("node=gpu-07", ["gpu-07"]),
        ("run=qwen7b", ["gpu-08"]),
        ("alert=full", ["gpu-08", "gpu-07"]),
        ("alert=other", []),
        ("limit=1", ["gpu-08"]),
        ("since=99999999999", ["gpu-08"]),
    ],
)
def test_alerts_can_be_chosen(server: RunningServer, query: str, nodes: list[str]) -> None:
    assert [row["labels"]["node"] for row in server.get(f"/api/v1/alerts?{query}").json()] == nodes


def test_the_texts_come_in_the_language_that_is_asked_for(server: RunningServer) -> None:
    english = server.get("/api/v1/alerts?state=firing").json()[0]
    chinese = server.get("/api/v1/alerts?state=firing&lang=zh").json()[0]
    assert english["summary"].startswith("GPU 0 of gpu-08 is")
    assert chinese["summary"].startswith("gpu-08 的 GPU 0 已满")
    assert english["advice"] == ["lower gpu_memory_utilization"]


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("/api/v1/alerts?state=burning", 400, "state: Input should be 'pending', 'firing' or 'resolved'"),
        ("/api/v1/alerts?limit=none", 400, "limit: Input should be a valid integer"),
        ("/api/v1/alerts?lang=fr", 400, "lang: Input should be 'en' or 'zh'"),
        ("/api/v1/alerts/nothing", 404, 'there is no alert "nothing"'),
        ("/api/v1/nodes/nothing", 404, 'there is no node "nothing"'),
        ("/api/v1/history?series=dreams&from=0&to=10", 400, 'there is no series "dreams"'),
        (
            "/api/v1/history?series=gpu_used_bytes&series=dreams&node=n&gpu=0&from=0&to=10",
            400,
            'there is no series "dreams"',
        ),
        (
            f"/api/v1/history?from=0&to=10{'&series=gpu_used_bytes' * 25}",
            400,
            "series: List should have at most 24 items",
        ),
        ("/api/v1/history?from=0&to=10", 400, "series: Field required"),
        ("/api/v1/history?series=gpu_used_bytes", 400, "from: Field required; to: Field required"),
        ("/api/v1/history?series=gpu_used_bytes&from=10&to=0&node=gpu-07&gpu=0", 400, ""),
        (
            "/api/v1/history?series=gpu_used_bytes&node=gpu-07&gpu=0&from=0&to=1e300",
            400,
            "to: Input should be less than or equal to",
        ),
        (
            "/api/v1/history?series=gpu_used_bytes&node=gpu-07&gpu=0&from=-1e300&to=0",
            400,
            "from: Input should be greater than or equal to 0",
        ),
        (
            "/api/v1/history?series=gpu_used_bytes&node=gpu-07&gpu=0&from=nan&to=inf",
            400,
            "from: Input should be a finite number; to: Input should be a finite number",
        ),
        (
            "/api/v1/history?series=gpu_used_bytes&node=gpu-07&gpu=0&from=0&to=10&step=1e300",
            400,
            "step: Input should be less than or equal to",
        ),
        (
            "/api/v1/history?series=gpu_used_bytes&node=gpu-07&gpu=0&from=0&to=10&step=0",
            400,
            "step: Input should be greater than 0",
        ),
        ("/api/v1/history?series=gpu_used_bytes&node=gpu-07&gpu=&from=0&to=10", 400, "the label gpu is empty"),
        (f"/api/v1/gpus?limit={2**63}", 400, "limit: Input should be less than or equal to"),
        ("/api/v1/alerts?since=nan", 400, "since: Input should be a finite number"),
        ("/api/v1/alerts?since=inf", 400, "since: Input should be a finite number"),
        ("/api/v1/phases?run=qwen7b&to=nan", 400, "to: Input should be a finite number"),
        ("/api/v2/alerts", 404, "there is nothing at /api/v2/alerts"),
    ],
)
def test_a_wrong_question_is_answered_with_a_sentence(server: RunningServer, path: str, status: int, why: str) -> None:
    answer = server.get(path)
    assert answer.status_code == status
    assert why in answer.json()["error"]
    assert answer.headers["content-type"] == "application/json"


def test_the_whole_of_time_can_be_asked_for(server: RunningServer) -> None:
    assert server.get("/api/v1/history?series=gpu_used_bytes&node=gpu-08&gpu=0&from=0&to=1e12").status_code == 200
    assert server.get("/api/v1/phases?run=qwen7b&from=0&to=1e12").status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/state", "/api/v1/nodes/gpu-07", "/", "/metrics", "/healthz", "/readyz"])
def test_head_works_where_get_does(server: RunningServer, path: str) -> None:
    asked = server.ask("HEAD", path)
    assert (asked.status_code, asked.content) == (200, b"")
    assert server.ask("HEAD", "/api/v1/nodes/nothing").status_code == 404


def test_one_alert_is_told_with_everything_that_became_of_it(server: RunningServer) -> None:
    (row,) = server.get("/api/v1/alerts?state=resolved").json()
    story = server.get(f"/api/v1/alerts/{row['id']}").json()
    assert story["alert"] == row
    assert [transition["state"] for transition in story["transitions"]] == ["firing", "resolved"]


def test_history_is_columns_of_one_length(server: RunningServer) -> None:
    query = f"series=gpu_used_bytes&node=gpu-08&gpu=0&from={time.time() - 60}&to={time.time() + 1}&step=1"
    found = server.get(f"/api/v1/history?{query}").json()
    assert {len(found[column]) for column in ("at", "min", "max", "mean")} == {len(found["at"])}
    assert 78 * 2**30 in found["max"]
    assert found["unit"] == "bytes"


def test_several_figures_are_asked_for_at_once_and_told_in_that_order(server: RunningServer) -> None:
    names = ["gpu_utilization_ratio", "gpu_used_bytes", "torch_reserved_bytes"]
    rest = f"node=gpu-08&gpu=0&from={time.time() - 60}&to={time.time() + 1}&step=1"
    found = server.get(f"/api/v1/history?{'&'.join(f'series={name}' for name in names)}&{rest}").json()
    assert [one["series"] for one in found] == names
    assert found[1]["max"] == server.get(f"/api/v1/history?series=gpu_used_bytes&{rest}").json()["max"]


def test_nodes_runs_steps_rules_agents_and_the_whole_state_can_be_asked_for(server: RunningServer) -> None:
    assert [node["node"] for node in server.get("/api/v1/nodes").json()] == ["gpu-07", "gpu-08"]
    cards = server.get("/api/v1/gpus").json()
    assert [(card["node"], card["gpu"], card["uuid"]) for card in cards] == [
        (node, "0", hello(node).facts.gpus[0].uuid) for node in ("gpu-07", "gpu-08")
    ]
    assert server.get(f"/api/v1/gpus?uuid={cards[1]['uuid'][2:].upper()}&limit=1").json() == cards[1:]
    assert server.get("/api/v1/gpus?limit=1").json() == cards[:1]
    assert server.get("/api/v1/gpus?uuid=nowhere").json() == []
    (run,) = server.get("/api/v1/runs").json()
    assert run["steps"][0]["step"]["rollout_seconds"] == 20.0
    assert server.get("/api/v1/runs/qwen7b/steps").json()[0]["step"]["step"] == 4
    assert server.get("/api/v1/rules").json()["rules"][0]["alert"] == "full"
    agents = server.get("/api/v1/agents").json()
    assert [(agent["node"], agent["stored_seq"]) for agent in agents] == [("gpu-07", 2), ("gpu-08", 2)]
    assert server.get("/api/v1/state").json()["type"] == "snapshot"


def test_a_condition_that_waits_out_its_hold_time_is_no_alert_unless_it_is_asked_for(tmp_path: Path) -> None:
    rules = RULES.replace("keep_firing_for: 1s", "for: 1h")
    (tmp_path / "alerts.yaml").write_text(rules, encoding="utf-8")
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        until("the condition to be met", lambda: server.get("/api/v1/alerts?state=pending").json())
        assert server.get("/api/v1/alerts").json() == []
        (row,) = server.get("/api/v1/alerts?state=pending").json()
        assert (row["state"], row["fired_at"]) == ("pending", None)


def test_the_phases_of_a_run_are_an_array_of_spans(tmp_path: Path) -> None:
    at, run = time.time(), "demo/qwen7b_grpo"  # verl names a run by project and experiment
    step = wire.Step(step=4, step_seconds=60.0, phase_seconds={"rollout": 20.0, "update_actor": 40.0})
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=at, run=run))
        agent.say(wire.Event(seq=1, at=at, body=step), wire.Event(seq=2, at=at, body=wire.Config(values={"n": 5})))
        agent.hear_ack_of(2)
        query = {"run": run}
        first, second = server.get("/api/v1/phases", params=query).json()
        assert (first["phase"], first["known_by"], first["step"]) == ("rollout", "step line", 4)
        assert first["end_at"] == second["start_at"] == pytest.approx(at - 40)
        assert server.get("/api/v1/phases", params={**query, "from": str(at - 30)}).json() == [second]
        assert server.get("/api/v1/phases", params={**query, "to": str(at - 50)}).json() == [first]
        assert server.get("/api/v1/phases", params={"run": "other"}).status_code == 404
        assert server.get(f"/api/v1/runs/{run}/steps").json()[0]["step"]["step"] == 4
        assert server.get("/api/v1/runs/demo%2Fqwen7b_grpo/steps").json()[0]["step"]["step"] == 4
        (told,) = server.get("/api/v1/runs").json()
        assert told["config"] == {"n": 5}
        assert {one["signal"] for one in told["coverage"]} >= {"step_line", "phases", "config"}
        assert len(told["phases"]) == 2


def test_every_path_of_the_api_is_described_with_types_that_exist(server: RunningServer) -> None:
    described = server.get("/api/v1/openapi.json").json()
    paths = {path for path in described["paths"] if path.startswith("/api/v1/")}
    assert len(paths) >= 10
    text = server.get("/api/v1/openapi.json").text
    named = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert named <= set(described["components"]["schemas"])
    assert {"AlertRow", "Snapshot", "History", "PhaseSpan"} <= named


# ---------------------------------------------------------------- health, page and headers


def test_a_server_that_works_says_so(server: RunningServer) -> None:
    assert server.get("/healthz").status_code == 200
    assert server.get("/readyz").json() == {"ready": True, "problems": []}


def test_the_page_and_its_files_are_served_with_what_keeps_them_safe(server: RunningServer) -> None:
    page = server.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-cache"
    assert server.get("/static/catalogue.json").json()
    assert server.get("/static/js/main.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/static/__init__.py", "/static/../pyproject.toml", "/static/js", "/static/py.typed"])
def test_what_is_not_the_pages_is_not_served(server: RunningServer, path: str) -> None:
    assert server.get(path).status_code == 404


def test_a_name_that_a_stranger_pointed_here_is_not_answered(server: RunningServer) -> None:
    answer = server.get("/api/v1/state", headers={"Host": "rebound.example:8642"})
    assert answer.status_code == 403
    assert "--external-url" in answer.json()["error"]


def test_a_name_behind_a_proxy_is_answered_where_the_settings_say_so(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, external_url="https://gpus.example")) as server:
        assert server.get("/api/v1/state", headers={"Host": "gpus.example"}).status_code == 200


# ---------------------------------------------------------------- the reader's token


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path_factory.mktemp("closed"), reader_token="let-me-in")) as server:
        yield server


@pytest.mark.parametrize("path", ["/", "/api/v1/state", "/metrics", "/static/style.css", "/api/v1/openapi.json"])
def test_without_the_token_nothing_is_shown(closed: RunningServer, path: str) -> None:
    assert closed.get(path).status_code == 401
    assert closed.get(path, headers={"Authorization": "Bearer guess"}).status_code == 401
    assert closed.get(path, headers={"Authorization": "Bearer let-me-in"}).status_code == 200


def test_probes_need_no_token(closed: RunningServer) -> None:
    assert closed.get("/healthz").status_code == closed.get("/readyz").status_code == 200


def test_a_browser_gives_the_token_once_and_it_leaves_the_address(closed: RunningServer) -> None:
    first = closed.get("/?token=let-me-in&lang=zh")
    assert (first.status_code, first.headers["location"]) == (303, "/?lang=zh")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    headers = {"Cookie": cookie.split(";", maxsplit=1)[0]}
    assert closed.get("/", headers=headers).status_code == 200
    with closed.websocket("/ws/live", additional_headers=headers) as browser:
        assert browser.recv(timeout=10)


@pytest.mark.parametrize(
    "others", ['a={"x":1}', "a=b c", "flag", "a[b]=1", "a=\xe9", ";;", "=", "oomwatch_token=of-another-port"]
)
def test_the_odd_cookies_of_other_programs_do_no_harm(closed: RunningServer, others: str) -> None:
    for cookie in (f"{others}; oomwatch_token=let-me-in", f"oomwatch_token=let-me-in; {others}"):
        assert closed.get("/api/v1/state", headers={"Cookie": cookie.encode("latin-1")}).status_code == 200
    assert closed.get("/api/v1/state", headers={"Cookie": others.encode("latin-1")}).status_code == 401


def test_a_token_of_any_characters_fits_in_a_cookie(tmp_path: Path) -> None:
    token = 'a b;c,"d"=%41é'
    with serving(settings_in(tmp_path, reader_token=token)) as server:
        first = server.get("/", params={"token": token})
        headers = {"Cookie": first.headers["set-cookie"].split(";", maxsplit=1)[0]}
        assert server.get("/api/v1/state", headers=headers).status_code == 200


def test_a_wrong_token_in_the_address_is_no_token(closed: RunningServer) -> None:
    assert closed.get("/?token=guess").status_code == 401


def test_who_asks_for_a_node_gets_its_last_sample_with_processes_all_of_one_moment(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        told = sample(1, 10, time.time())
        listed = tuple(
            msgspec.structs.replace(gpu, processes=(wire.GpuProcess(pid=7, used_bytes=5),)) for gpu in told.gpus
        )
        agent.say(msgspec.structs.replace(told, gpus=listed), sample(2, 40, time.time()))
        agent.hear_ack_of(2)
        node = server.get("/api/v1/nodes/gpu-07").json()
        latest, together = node["sample"]["gpus"][0], node["together"]["gpus"][0]
        assert (latest["used_bytes"], together["used_bytes"]) == (40 * 2**30, 10 * 2**30)
        assert latest["processes"] == together["processes"] == [{"pid": 7, "used_bytes": 5}]
        assert "together" not in server.get("/api/v1/state").json()["nodes"][0]


# ---------------------------------------------------------------- forgetting a node


def test_a_node_that_is_gone_for_good_is_forgotten_with_its_alerts(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with serving(settings) as server:
        with AgentClient(server) as agent:
            agent.greet(hello(sent_at=time.time()))
            agent.say(sample(1, 79, time.time()))
            agent.hear_ack_of(1)
            refused = server.ask("DELETE", "/api/v1/nodes/gpu-07")
            assert refused.status_code == 409
            assert refused.json()["error"] == 'the agent of node "gpu-07" is connected; stop it first'
        until("the agent to be gone", lambda: not server.get("/api/v1/agents").json()[0]["connected"])
        assert server.ask("DELETE", "/api/v1/nodes/gpu-07").status_code == 204
        assert server.get("/api/v1/nodes").json() == []
        assert server.get("/api/v1/agents").json() == []
        until("its alert to end", lambda: server.get("/api/v1/alerts?state=resolved").json())
        (ended,) = server.get("/api/v1/alerts").json()
        assert ended["reason"] == "node removed"
        assert server.ask("DELETE", "/api/v1/nodes/gpu-07").status_code == 404
    with serving(settings) as again:
        assert again.get("/api/v1/nodes").json() == []


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://["])
def test_a_page_of_elsewhere_may_change_nothing(server: RunningServer, origin: str) -> None:
    answer = server.ask("DELETE", "/api/v1/nodes/gpu-07", headers={"Origin": origin})
    assert answer.status_code == 403
    assert [node["node"] for node in server.get("/api/v1/nodes").json()] == ["gpu-07", "gpu-08"]


def test_our_own_page_may_and_a_token_is_asked_for_as_for_reading(closed: RunningServer) -> None:
    own, token = {"Origin": closed.url}, {"Authorization": "Bearer let-me-in"}
    assert closed.ask("DELETE", "/api/v1/nodes/gpu-99", headers=own).status_code == 401
    assert closed.ask("DELETE", "/api/v1/nodes/gpu-99", headers={**own, **token}).status_code == 404


# ---------------------------------------------------------------- trouble


@pytest.mark.parametrize("with_another_in_its_place", [False, True])
def test_where_the_database_file_was_deleted_nothing_is_acknowledged_and_it_is_said(
    tmp_path: Path, *, with_another_in_its_place: bool
) -> None:
    file, away = tmp_path / "oomwatch.db", tmp_path / "away.db"
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 10, time.time()))
        agent.hear_ack_of(1)
        file.rename(away)
        if with_another_in_its_place:
            file.touch()
        problems = server.get("/readyz").json()["problems"]
        assert "the file was deleted or replaced while the server runs" in problems[0]
        agent.say(sample(2, 79, time.time()))
        until("the alert to be told", lambda: server.get("/metrics").text.count("oomwatch_store_failed 1.0"))
        with pytest.raises(TimeoutError):
            agent.connection.recv(timeout=0.3)
        assert server.get("/api/v1/runs/r/steps").status_code == 503
        assert with_another_in_its_place or not file.exists()
        away.rename(file)
        agent.hear_ack_of(2)
        assert server.get("/readyz").json()["problems"] == []


def test_where_the_database_cannot_be_written_people_are_told_and_nothing_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "oomwatch.db"
    with (
        serving(settings_in(tmp_path, db=f"sqlite:///{file}?timeout=0.05")) as server,
        contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other,
        AgentClient(server) as agent,
    ):
        agent.greet(hello(sent_at=time.time()))
        until("the hello to be stored", server.parts.store.nodes)
        other.execute("BEGIN IMMEDIATE")
        agent.say(sample(1, 79, time.time()))
        problems = until("the server to notice", lambda: server.get("/readyz").json()["problems"])
        assert "is locked" in problems[0]
        assert server.get("/readyz").status_code == 503
        assert server.get("/healthz").status_code == 200
        assert "oomwatch_store_failed 1.0" in server.get("/metrics").text
        assert [row["state"] for row in server.get("/api/v1/alerts").json()] == ["firing"]
        other.execute("ROLLBACK")
        agent.hear_ack_of(1)
        assert server.get("/readyz").status_code == 200
        assert [alert.state for alert in server.parts.store.alerts()] == ["firing"]
