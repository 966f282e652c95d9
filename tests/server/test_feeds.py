"""A running server keeps Alertmanagers up to date of what its board says, also while alerts.yaml changes."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.house import hello, sample
from tests.server.receiver import Answer, Receiver, receiving
from tests.server.running_server import RULES, AgentClient, serving, settings_in, until

from oomwatch import wire
from oomwatch.letters import Standing
from oomwatch.notify.health import FAILING_SECONDS
from oomwatch.notify.message import compose
from oomwatch.notify.notice import Notice
from oomwatch.notify.words import Frame
from oomwatch.web.feedwatch import FeedWatch


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
        [state] = server.call(server.parts.herald.status)
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
        [state] = server.call(server.parts.herald.status)
        assert state.health == "ok"


def test_a_receiver_that_refuses_marks_the_channel(tmp_path: Path, manager: Receiver) -> None:
    manager.always(Answer(401, body=b"who are you"))
    write(tmp_path, manager)
    with serving(settings_in(tmp_path)) as server:
        until("the refusal", lambda: server.call(server.parts.herald.status)[0].health == "failed")
        [state] = server.call(server.parts.herald.status)
        assert "who are you" in str(state.last_error)


def test_a_feed_that_has_ended_by_a_defect_is_a_reason_not_to_be_ready(tmp_path: Path, manager: Receiver) -> None:
    write(tmp_path, manager)
    with serving(settings_in(tmp_path)) as server:
        until("the first request", lambda: manager.received)
        server.end_task("feed am")
        until("the problem", lambda: "nothing is sent to the channel am any more" in server.get("/readyz").text)


# ---------------------------------------------------------------- who else is told


class Memory:
    """What was told of feeds, kept as the database keeps it."""

    def __init__(self) -> None:
        self.standings: dict[str, Standing] = {}
        self.told: list[Notice] = []
        self.is_broken = False

    async def standing(self, name: str) -> Standing:
        return self.standings.get(name, Standing(name, 0.0))

    async def announce(self, standing: Standing, make: Callable[[str], Notice]) -> None:
        if self.is_broken:
            raise OSError("the disk is full")
        self.standings[standing.channel] = standing
        self.told.append(make("team"))


class Feeding:
    """One feed, as it fares over time, and a watch on it that can be restarted."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.state = wire.ChannelState(name="am", kind="alertmanager")
        self.start()

    def start(self) -> None:
        self._watch = FeedWatch(lambda: [self.state], self.memory, lambda: 1_000.0)

    def look(self, now: float, health: wire.ChannelHealth, error: str | None = None) -> list[str]:
        """What is told at that moment."""
        at = None if error is None else 1_000.0
        self.state = wire.ChannelState(
            name="am", kind="alertmanager", health=health, last_error=error, last_error_at=at, last_success_at=900.0
        )
        before = len(self.memory.told)
        asyncio.run(self._watch.look(now))
        return [compose(one, Frame()).title for one in self.memory.told[before:]]


FAILED = "Notification channel am does not deliver"
WORKS = "Notification channel am delivers again"


def test_others_are_told_of_a_feed_that_is_refused_once_and_when_it_works_again() -> None:
    feeding = Feeding()
    assert feeding.look(0, "ok") == []
    assert feeding.look(5, "failed", "401") == [FAILED]
    assert feeding.look(10, "failed", "401") == []
    assert feeding.look(15, "ok", "401") == [WORKS]
    assert feeding.look(20, "ok", "401") == []


def test_others_are_told_of_a_feed_that_is_down_for_long() -> None:
    feeding = Feeding()
    assert feeding.look(0, "failing", "no route") == []
    assert feeding.look(FAILING_SECONDS - 1, "failing", "no route") == []
    assert feeding.look(FAILING_SECONDS, "failing", "no route") == [FAILED]


def test_after_a_restart_nothing_is_told_twice_and_nothing_before_it_is_known() -> None:
    feeding = Feeding()
    feeding.look(0, "failed", "401")
    feeding.start()
    feeding.state = wire.ChannelState(name="am", kind="alertmanager")
    asyncio.run(feeding._watch.look(1.0))
    assert len(feeding.memory.told) == 1
    assert feeding.look(5, "failed", "401") == []
    assert feeding.look(10, "ok") == [WORKS]


def test_what_could_not_be_told_is_told_later() -> None:
    feeding = Feeding()
    feeding.memory.is_broken = True
    with pytest.raises(OSError, match="disk is full"):
        feeding.look(0, "failed", "401")
    feeding.memory.is_broken = False
    assert feeding.look(5, "failed", "401") == [FAILED]


def test_a_webhook_hears_that_an_alertmanager_refuses(tmp_path: Path, manager: Receiver) -> None:
    manager.always(Answer(401, body=b"who are you"))
    with receiving() as hook:
        write(tmp_path, manager, rules=f"    - {{kind: webhook, name: ops, url: '{hook.url}'}}\n{RULES}")
        with serving(settings_in(tmp_path)) as server:
            [request] = until("the message", lambda: hook.received)
            page = server.get("/metrics").text
    [alert] = request.json()["alerts"]
    assert alert["labels"] == {"alertname": "oomwatch_channel_failed", "channel": "am", "severity": "critical"}
    assert "who are you" in alert["annotations"]["description"]
    assert 'channel="am"' in page
