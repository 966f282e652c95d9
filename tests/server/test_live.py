"""/ws/live, over a real socket."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.server.house import hello, sample
from tests.server.running_server import DEADLINE_SECONDS, AgentClient, RunningServer, serving, settings_in
from websockets.exceptions import InvalidStatus

from oomwatch import wire

_decoder = msgspec.json.Decoder(wire.LiveMessage)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path)) as server:
        yield server


def heard(browser: Any, wanted: Callable[[wire.LiveMessage], bool]) -> wire.LiveMessage:
    """The next message of a kind; those before it are skipped."""
    while True:
        message = _decoder.decode(browser.recv(timeout=DEADLINE_SECONDS))
        if wanted(message):
            return message


def test_a_browser_gets_everything_first_and_then_each_second(server: RunningServer) -> None:
    with AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        with server.websocket("/ws/live") as browser:
            snapshot = _decoder.decode(browser.recv(timeout=DEADLINE_SECONDS))
            assert isinstance(snapshot, wire.Snapshot)
            assert [node.node for node in snapshot.nodes] == ["gpu-07"]
            assert [rule.alert for rule in snapshot.rules] == ["full"]
            agent.say(sample(1, 40, time.time()))
            tick = heard(browser, lambda message: isinstance(message, wire.Tick) and bool(message.nodes))
            assert isinstance(tick, wire.Tick)
            assert tick.nodes[0].used_mib == (40 * 1024,)


def test_a_browser_is_told_all_of_the_node_that_it_shows_and_of_others_what_ticks_tell(server: RunningServer) -> None:
    def snapshot(address: str) -> wire.Node:
        with server.websocket(address) as browser:
            first = _decoder.decode(browser.recv(timeout=DEADLINE_SECONDS))
        assert isinstance(first, wire.Snapshot)
        (node,) = first.nodes
        return node

    with AgentClient(server) as agent, server.websocket("/ws/live") as browser:
        agent.greet(hello(sent_at=time.time()))
        told = heard(browser, lambda message: isinstance(message, wire.NodeChanged))
        assert isinstance(told, wire.NodeChanged)
        assert (told.node.reading, told.node.sample) == (None, None)
        listed = (wire.GpuProcess(pid=1, used_bytes=40 * 2**30),)
        with_processes = sample(1, 40, time.time())
        agent.say(replace(with_processes, gpus=(replace(with_processes.gpus[0], processes=listed),)))
        heard(browser, lambda message: isinstance(message, wire.Tick) and bool(message.nodes))
        for address in ("/ws/live", "/ws/live?node=gpu-08"):
            node = snapshot(address)
            assert (node.sample, node.together, node.facts.gpus) == (None, None, ())
            assert [alike.gpus for alike in node.cards] == [("0",)]
            assert node.reading is not None
            assert node.reading.used_mib == (40 * 1024,)
        node = snapshot("/ws/live?node=gpu-07")
        assert node.sample is not None
        assert node.together is not None
        assert (node.facts.gpus, node.cards) == (hello().facts.gpus, ())
        assert node.sample.gpus[0].processes == node.together.gpus[0].processes == listed


def test_an_alert_reaches_the_browser_without_waiting_for_the_next_second(server: RunningServer) -> None:
    with AgentClient(server) as agent, server.websocket("/ws/live") as browser:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        changed = heard(browser, lambda message: isinstance(message, wire.AlertChanged))
        assert isinstance(changed, wire.AlertChanged)
        assert (changed.alert.alert, changed.alert.state) == ("full", "firing")
        assert changed.alert.texts["zh"].summary.startswith("gpu-07 的 GPU 0 已满")


def test_an_alert_that_ended_lately_is_in_the_snapshot(server: RunningServer) -> None:
    with AgentClient(server) as agent, server.websocket("/ws/live") as browser:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 79, time.time()), sample(2, 10, time.time()))
        ended = heard(browser, lambda one: isinstance(one, wire.AlertChanged) and one.alert.state == "resolved")
        assert isinstance(ended, wire.AlertChanged)
        with server.websocket("/ws/live") as late:
            snapshot = _decoder.decode(late.recv(timeout=DEADLINE_SECONDS))
        assert isinstance(snapshot, wire.Snapshot)
        assert snapshot.alerts == (ended.alert,)


def test_what_a_browser_sends_is_ignored(server: RunningServer) -> None:
    with server.websocket("/ws/live") as browser:
        browser.send("drop table alerts")
        heard(browser, lambda message: isinstance(message, wire.Tick))


@pytest.mark.parametrize(
    ("origin", "why"),
    [("https://evil.example", "a page of elsewhere"), ("null", "a page without an address")],
)
def test_a_page_of_elsewhere_may_not_listen(server: RunningServer, origin: str, why: str) -> None:
    with pytest.raises(InvalidStatus) as refused, server.websocket("/ws/live", additional_headers={"Origin": origin}):
        pytest.fail(f"{why} was let in")
    assert refused.value.response.status_code == 403


def test_the_page_behind_a_proxy_may_listen_where_the_settings_name_it(tmp_path: Path) -> None:
    with (
        serving(settings_in(tmp_path, external_url="https://gpus.example")) as server,
        server.websocket("/ws/live", additional_headers={"Origin": "https://gpus.example"}) as browser,
    ):
        heard(browser, lambda message: isinstance(message, wire.Tick))


def test_our_own_page_may_listen(server: RunningServer) -> None:
    with server.websocket("/ws/live", additional_headers={"Origin": server.url}) as browser:
        heard(browser, lambda message: isinstance(message, wire.Tick))


def test_changed_rules_are_in_force_and_shown_within_seconds(server: RunningServer, tmp_path: Path) -> None:
    rules = tmp_path / "alerts.yaml"
    text = rules.read_text(encoding="utf-8")
    with server.websocket("/ws/live") as browser:
        rules.write_text(text.replace("alert: full", "alert: crowded"), encoding="utf-8")
        changed = heard(browser, lambda message: isinstance(message, wire.RulesChanged))
        assert isinstance(changed, wire.RulesChanged)
        assert [rule.alert for rule in changed.rules] == ["crowded"]
        assert changed.server.rules_error is None


def test_mistakes_in_the_rules_change_nothing_and_are_shown(server: RunningServer, tmp_path: Path) -> None:
    with server.websocket("/ws/live") as browser:
        (tmp_path / "alerts.yaml").write_text("rules:\n  - alert: x\n    whem: {}\n", encoding="utf-8")
        changed = heard(browser, lambda message: isinstance(message, wire.RulesChanged))
    assert isinstance(changed, wire.RulesChanged)
    assert [rule.alert for rule in changed.rules] == ["full"]
    assert "alerts.yaml:2:" in str(changed.server.rules_error)
    assert "oomwatch_rules_reload_failed 1.0" in server.get("/metrics").text
