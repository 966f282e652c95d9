"""A real Alertmanager takes our alerts, tells them once however often they are sent, and ends what is over."""

import asyncio
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from tests.prometheus.servers import Alertmanager, alertmanager, need, until
from tests.server.house import hello, sample
from tests.server.notify_samples import LEAK, RESTART, transition
from tests.server.receiver import Receiver, receiving
from tests.server.running_server import RULES, AgentClient, serving, settings_in

from oomwatch import wire
from oomwatch.notify import http
from oomwatch.notify.channel import Item, Surroundings
from oomwatch.notify.channels.alertmanager import AlertmanagerChannel
from oomwatch.notify.feed import AHEAD_SECONDS, BATCH
from oomwatch.notify.outcome import Delivered, Outcome
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame
from oomwatch.story import alert_view

HOSTILE = '{{ .Values }} "quoted" \\ \x00\x1b ☃ <b>\n' * 30


def telling(receiver: Receiver) -> str:
    """Alertmanager's configuration: each alert is told at once, on its own."""
    hook = [{"url": f"{receiver.url}/am", "send_resolved": True}]
    route = {
        "receiver": "hook",
        "group_by": ["..."],
        "group_wait": "0s",
        "group_interval": "1s",
        "repeat_interval": "1h",
    }
    return msgspec.json.encode({"route": route, "receivers": [{"name": "hook", "webhook_configs": hook}]}).decode()


def section(manager: Alertmanager, **settings: Any) -> AlertmanagerChannel:
    return AlertmanagerChannel(name="am", url=Secret(manager.url), **settings)


def post(manager: Alertmanager, items: Iterable[Item]) -> list[Outcome]:
    """As the feeder does, in its batches."""
    held = list(items)

    async def go() -> list[Outcome]:
        async with http.client() as client:
            feed = section(manager).open(Surroundings(Frame(external_url="https://oom.example"), client, {}))
            batches = [held[start : start + BATCH] for start in range(0, len(held), BATCH)]
            return [await feed.post(feed.addresses[0], batch, time.time()) for batch in batches]

    return asyncio.run(go())


def alert(gpu: int, now: float, **changes: Any) -> wire.Alert:
    one = transition(gpu, started_at=now - 60, at=now - 30, causes=(LEAK,), remedies=(RESTART,))
    return msgspec.structs.replace(alert_view(one, fired_at=now - 30), **({"told_at": now - 30} | changes))


def names(receiver: Receiver, status: str) -> list[str]:
    """The alerts that Alertmanager has told its receiver, in order."""
    bodies = [one.json() for one in receiver.received]
    return [one["labels"]["alertname"] for body in bodies for one in body["alerts"] if one["status"] == status]


def test_a_server_feeds_it_and_what_it_told_ends_when_the_card_is_free_again(tmp_path: Path) -> None:
    with receiving() as receiver, alertmanager(telling(receiver)) as manager:
        notify = f"notify:\n  channels:\n    - {{kind: alertmanager, name: am, url: '{manager.url}'}}\n"
        (tmp_path / "alerts.yaml").write_text(notify + RULES, encoding="utf-8")
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            agent.greet(hello(sent_at=time.time()))
            agent.say(sample(1, 79, time.time()))
            found = {one["labels"]["alertname"]: one for one in manager.wait_for_alerts(2)}
            assert set(found) == {"Watchdog", "full"}
            assert found["full"]["labels"] == {
                "alertname": "full", "severity": "warning", "node": "gpu-07", "gpu": "0"
            }  # fmt: skip
            assert found["full"]["annotations"]["summary"].startswith("GPU 0 of gpu-07 is 9")
            until("the alert to be told", lambda: "full" in names(receiver, "firing"))
            agent.say(sample(2, 10, time.time()))
            agent.say(sample(3, 10, time.time() + 2))
            until("its end to be told", lambda: "full" in names(receiver, "resolved"))
            assert [one["labels"]["alertname"] for one in manager.alerts()] == ["Watchdog"]
            [state] = server.call(server.parts.herald.status)
            assert (state.health, state.failed_total) == ("ok", 0)
    assert names(receiver, "firing").count("full") == 1


def test_what_is_sent_again_is_the_same_alert_and_is_told_once() -> None:
    now = time.time()
    with receiving() as receiver, alertmanager(telling(receiver)) as manager:
        first = Item(alert(3, now), now + AHEAD_SECONDS)
        changed = Item(alert(3, now, value=0.99), now + AHEAD_SECONDS + 60)
        assert post(manager, [first]) == post(manager, [changed]) == [Delivered()]
        [held] = until("the newer figures", lambda: [one for one in manager.alerts() if _value(one) == "0.99"])
        until("the alert to be told", lambda: receiver.received)
        over = alert(3, now, state="resolved", ended_at=now)
        assert post(manager, [Item(over, now)]) == [Delivered()]
        until("its end to be told", lambda: names(receiver, "resolved"))
    assert held["generatorURL"].startswith("https://oom.example/#/alerts?id=")
    assert names(receiver, "firing") == ["gpu_memory_high"]


def _value(one: dict[str, Any]) -> str:
    value: str = one["annotations"]["value"]
    return value


def test_amtool_shows_them_with_their_labels() -> None:
    now = time.time()
    with receiving() as receiver, alertmanager(telling(receiver)) as manager:
        post(manager, [Item(alert(3, now), now + AHEAD_SECONDS), Item(None, now + AHEAD_SECONDS)])
        manager.wait_for_alerts(2)
        command = [need("amtool"), f"--alertmanager.url={manager.url}", "alert", "query", "-o", "extended"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for word in ("gpu_memory_high", 'node="gpu-07"', "Watchdog", "GPU 3 of gpu-07 is nearly full"):
        assert word in shown


def test_hostile_names_and_texts_are_taken() -> None:
    now = time.time()
    texts: dict[str, wire.AlertText] = {"en": wire.AlertText(summary=HOSTILE, description=HOSTILE)}
    one = alert(3, now, alert=HOSTILE[:200], labels={"node": HOSTILE, "gpu": "MIG-1/2/3", "run": "训练"}, texts=texts)
    facts: dict[str, wire.Fact] = {"odd name": 1, "2nd": "x", "päth": HOSTILE, "pid": 7}
    with receiving() as receiver, alertmanager(telling(receiver)) as manager:
        item = Item(msgspec.structs.replace(one, facts=facts), now + AHEAD_SECONDS)
        assert post(manager, [item]) == [Delivered()]
        [held] = manager.wait_for_alerts(1)
    assert held["labels"]["run"] == "训练"
    assert held["annotations"]["pid"] == "7"


def test_ten_thousand_alerts_are_taken() -> None:
    now = time.time()
    quiet = '{"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}'
    with alertmanager(quiet) as manager:
        many = [Item(alert(gpu, now), now + AHEAD_SECONDS) for gpu in range(10_000)]
        assert set(post(manager, many)) == {Delivered()}
        manager.wait_for_alerts(10_000)
