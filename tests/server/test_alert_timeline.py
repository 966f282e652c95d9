"""The alerts of a stretch of time, lean, from a real server: open ones, those that wait, and those long over."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.house import hello, sample
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire

HOUR = 3600.0
WAITS = (
    RULES + "  - {alert: waits, for: 1h, when: {kind: threshold, metric: gpu_used_ratio, above: 90%}, summary: waits}\n"
)


def past(server: RunningServer, key: str, *, ago: float, lasted: float, node: str = "gpu-07") -> None:
    """An alert that fired so long ago, as the database has it."""
    start = time.time() - ago
    said = wire.Transition(
        id=key, alert="full", severity="warning", state="firing", at=start + 30, started_at=start, value=0.9,
        limit=0.85, unit="ratio", labels={"node": node, "gpu": "0"},
        texts={"en": wire.AlertText(summary=f"{key} is full", description="")},
    )  # fmt: skip
    over = wire.Transition(
        id=key, alert="full", severity="warning", state="resolved", at=start + lasted, started_at=start,
        labels={"node": node, "gpu": "0"}, outcome=wire.Outcome(verdict="avoided", at=start + lasted), texts=said.texts,
    )  # fmt: skip
    server.parts.store.append([said, over])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("timeline")
    (folder / "alerts.yaml").write_text(WAITS, encoding="utf-8")
    with serving(settings_in(folder)) as server, AgentClient(server) as agent:
        past(server, "yesterday", ago=24 * HOUR, lasted=600)
        past(server, "before", ago=3 * HOUR, lasted=1800, node="gpu-08")
        agent.greet(hello("gpu-07", sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        yield server


def timeline(server: RunningServer, query: str) -> dict[str, Any]:
    found: dict[str, Any] = server.get(f"/api/v1/alerts/timeline?{query}").json()
    return found


def names(server: RunningServer, query: str) -> list[str]:
    """What each is called: its node's, or its id where the test made it."""
    spans = timeline(server, query)["alerts"]
    return [one["alert"] if one["state"] != "resolved" else one["id"] for one in spans]


def test_all_that_was_open_at_some_moment_of_the_time_is_told_newest_first(server: RunningServer) -> None:
    now = time.time()
    assert sorted(names(server, f"from={now - 60}")) == ["full", "waits"]
    assert names(server, f"from={now - 4 * HOUR}")[2:] == ["before"]
    assert names(server, f"from={now - 25 * HOUR}")[2:] == ["before", "yesterday"]


def test_what_began_later_than_the_time_is_left_out(server: RunningServer) -> None:
    now = time.time()
    assert names(server, f"from={now - 30 * HOUR}&to={now - HOUR}") == ["before", "yesterday"]
    assert names(server, f"from={now - 2.9 * HOUR}&to={now - 2.8 * HOUR}") == ["before"], "it was open then"
    assert names(server, f"from={now - 2 * HOUR}&to={now - HOUR}") == []
    rows = server.get(f"/api/v1/alerts?until={now - HOUR}").json()
    assert [row["id"] for row in rows] == ["before", "yesterday"]


def test_a_span_says_when_it_waited_fired_and_ended_and_what_became_of_it(server: RunningServer) -> None:
    now = time.time()
    (before,) = timeline(server, f"from={now - 4 * HOUR}&node=gpu-08")["alerts"]
    assert before["fired_at"] - before["started_at"] == pytest.approx(30)
    assert before["ended_at"] - before["started_at"] == pytest.approx(1800)
    assert (before["summary"], before["outcome"]) == ("before is full", "avoided")
    by_name = {one["alert"]: one for one in timeline(server, f"from={now - 60}")["alerts"]}
    assert (by_name["waits"]["state"], by_name["waits"]["fired_at"]) == ("pending", None)
    assert (by_name["full"]["ended_at"], by_name["full"]["muted"]) == (None, False)
    assert "description" not in by_name["full"], "it is lean"


@pytest.mark.parametrize(("query", "count"), [("node=gpu-08", 1), ("alert=full", 3), ("run=none", 0)])
def test_spans_can_be_chosen(server: RunningServer, query: str, count: int) -> None:
    assert len(timeline(server, f"from=0&{query}")["alerts"]) == count


def test_where_there_were_more_it_says_so(server: RunningServer) -> None:
    assert timeline(server, "from=0&limit=4")["complete"]
    some = timeline(server, "from=0&limit=3")
    assert not some["complete"]
    assert [one["id"] for one in some["alerts"]][-1] == "before"


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("", "from: Field required"),
        ("from=20&to=10", "from: must not be later than to"),
        ("from=0&limit=1001", "limit: Input should be less than or equal to 1000"),
    ],
)
def test_a_wrong_question_is_answered_with_a_sentence(server: RunningServer, query: str, why: str) -> None:
    answer = server.get(f"/api/v1/alerts/timeline?{query}")
    assert (answer.status_code, answer.json()) == (400, {"error": why})
