"""A running server keeps Alertmanagers up to date of what its board says, also while alerts.yaml changes."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.house import hello, sample
from tests.server.receiver import Answer, Receiver, receiving
from tests.server.running_server import RULES, AgentClient, serving, settings_in, until


@pytest.fixture
def manager() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def told(receiver: Receiver) -> list[dict[str, Any]]:
    """Every alert of every request, oldest first."""
    return [one for request in receiver.received for one in request.json()]


def names(receiver: Receiver) -> list[str]:
    return [one["labels"]["alertname"] for one in told(receiver)]


def write(folder: Path, receiver: Receiver, more: str = "", *, path: str = "", rules: str = RULES) -> None:
    """alerts.yaml with one Alertmanager, put in place in one step."""
    channel = f"    - {{kind: alertmanager, name: am, url: '{receiver.url}{path}'{more}}}\n"
    fresh = folder / "alerts.new"
    fresh.write_text(f"notify:\n  channels:\n{channel}{rules}", encoding="utf-8")
    fresh.replace(folder / "alerts.yaml")


def test_a_full_card_is_told_with_the_watchdog_beside_it(tmp_path: Path, manager: Receiver) -> None:
    write(tmp_path, manager)
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        until("the alert", lambda: "full" in names(manager))
        until("the watchdog", lambda: "Watchdog" in names(manager))
        [state] = server.call(server.parts.feeds.status)
        assert (state.name, state.kind, state.health) == ("am", "alertmanager", "ok")


def test_what_the_severity_leaves_out_is_not_told(tmp_path: Path, manager: Receiver) -> None:
    write(tmp_path, manager, ", severity: critical")
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        until("the alert to fire", lambda: server.get("/api/v1/alerts?state=firing").json())
        until("the watchdog", lambda: "Watchdog" in names(manager))
        assert "full" not in names(manager)


def test_a_changed_address_is_taken_and_an_unchanged_file_tells_nothing_anew(tmp_path: Path, manager: Receiver) -> None:
    write(tmp_path, manager)
    with serving(settings_in(tmp_path)) as server:
        until("the first request", lambda: manager.received)
        write(tmp_path, manager, rules=RULES.replace("above: 85%", "above: 86%"))
        until("the rules to be taken", lambda: "86" in server.get("/api/v1/rules").text)
        assert len(manager.received) == 1
        write(tmp_path, manager, path="/other")
        until("the other address", lambda: manager.received[1:])
        assert manager.received[1].path == "/other/api/v2/alerts"


def test_a_file_whose_channel_cannot_be_used_changes_nothing(tmp_path: Path, manager: Receiver) -> None:
    write(tmp_path, manager)
    with serving(settings_in(tmp_path)) as server:
        until("the first request", lambda: manager.received)
        write(tmp_path, manager, ", token_env: NO_SUCH_VARIABLE")
        until("the mistake", lambda: "NO_SUCH_VARIABLE" in server.get("/api/v1/state").text)
        [state] = server.call(server.parts.feeds.status)
        assert state.health == "ok"


def test_a_receiver_that_refuses_marks_the_channel(tmp_path: Path, manager: Receiver) -> None:
    manager.always(Answer(401, body=b"who are you"))
    write(tmp_path, manager)
    with serving(settings_in(tmp_path)) as server:
        until("the refusal", lambda: server.call(server.parts.feeds.status)[0].health == "failed")
        [state] = server.call(server.parts.feeds.status)
        assert "who are you" in str(state.last_error)


def test_a_feed_that_has_ended_by_a_defect_is_a_reason_not_to_be_ready(tmp_path: Path, manager: Receiver) -> None:
    write(tmp_path, manager)
    with serving(settings_in(tmp_path)) as server:
        until("the first request", lambda: manager.received)
        server.end_task("feed am")
        until("the problem", lambda: "alerts are not sent to the channel am" in server.get("/readyz").text)
