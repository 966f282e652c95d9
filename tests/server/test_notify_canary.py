"""Whatever kind of channel holds a secret, it is in no log, no outcome, no page, no answer of the API and no error."""

import asyncio
import logging
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.server.house import hello, sample
from tests.server.notify_samples import SECTIONS, told, transition
from tests.server.receiver import Answer, receiving
from tests.server.running_server import RULES, AgentClient, serving, settings_in, until

from oomwatch.__main__ import main
from oomwatch.notify import http
from oomwatch.notify.channel import Feed, Item, Surroundings
from oomwatch.notify.channels import ChannelConfig
from oomwatch.notify.config import NotifyConfig, decode_hook
from oomwatch.notify.outcome import Outcome
from oomwatch.notify.trial import send_test
from oomwatch.notify.words import Frame

KEY = "Y2FuYXJ5" * 8  # "canary", in base64, long enough for a key
SEEN = ("canary", KEY, "Y2FuYXJ5")
KINDS = sorted(str(kind.__struct_config__.tag) for kind in ChannelConfig.__args__)


def secretive(kind: str, url: str) -> dict[str, Any]:
    """A section of this kind, with a canary in every place where a secret can be. `url`: of the receiver."""
    path = f"{url}/canary-path?token=canary-query"
    return {
        "alertmanager": {"url": f"{url}/canary-path", "username": "oom", "password": "canary-password"},
        "apprise": {"url": f"json://canary-user:canary-pass@{url.removeprefix('http://')}/canary-path"},
        "slack": {"url": path},
        "slack_bot": {"channel": "C1234", "token": "xoxb-canary-token", "api_url": url},
        "webhook": {"url": path, "secret": KEY},
    }[kind] | {"kind": kind, "name": "team", "severity": "info"}


# What a receiver of each kind is sent of it, and could send back.
ECHOES = {
    "alertmanager": "/canary-path/api/v2/alerts canary-password b29tOmNhbmFyeS1wYXNzd29yZA==",
    "apprise": "/canary-path canary-pass canary-user",
    "slack": "/canary-path?token=canary-query",
    "slack_bot": "xoxb-canary-token",
    "webhook": "/canary-path?token=canary-query",
}


def section(kind: str, url: str) -> Any:
    found = msgspec.convert({"channels": [secretive(kind, url)]}, NotifyConfig, dec_hook=decode_hook)
    return found.channels[0]


def test_every_kind_is_here() -> None:
    assert sorted(SECTIONS) == KINDS


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [200, 307, 400, 503])
def test_no_outcome_and_no_log_shows_it_even_if_the_receiver_echoes_it(
    kind: str, status: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with receiving() as receiver:
        receiver.always(Answer(status, {"Location": "/canary-path"}, f"{ECHOES[kind]} failed".encode()))
        channel = section(kind, receiver.url)
        outcomes = [asyncio.run(send_test(channel, "en")), asyncio.run(_news(channel))]
        assert len(receiver.received) >= 2
    _assert_unseen(repr(channel), repr(outcomes), caplog.text, *capfd.readouterr())


async def _news(channel: Any) -> Outcome:
    async with http.client() as client:
        opened = channel.open(Surroundings(Frame(), client, {}))
        if isinstance(opened, Feed):
            return await opened.post(opened.addresses[0], [Item(None, time.time() + 60)], time.time())
        outcome: Outcome = await opened.send(told(transition(3)))
        return outcome


def _assert_unseen(*texts: str) -> None:
    for text in texts:
        assert not any(word in text for word in SEEN), text


@pytest.mark.parametrize("kind", KINDS)
def test_no_answer_of_a_server_and_nothing_in_its_database_shows_it(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="oomwatch")
    with receiving() as receiver:
        receiver.always(Answer(403, body=b"no"))
        _write(tmp_path, secretive(kind, receiver.url))
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            agent.greet(hello(sent_at=time.time()))
            agent.say(sample(1, 79, time.time()))
            until("an attempt", lambda: receiver.received)
            with server.websocket("/ws/live") as live:
                snapshot = live.recv(timeout=10)
            paths = [
                "/api/v1/state",
                "/api/v1/alerts",
                "/api/v1/rules",
                "/api/v1/rules/file",
                "/metrics",
                "/readyz",
                "/",
            ]
            answers = [server.get(path).text for path in paths]
    stored = "".join(path.read_bytes().decode("latin-1") for path in tmp_path.glob("oomwatch.db*"))
    _assert_unseen(str(snapshot), *answers, caplog.text, stored)


def _write(folder: Path, channel: dict[str, Any]) -> None:
    text = yaml.safe_dump({"notify": {"channels": [channel]}})
    (folder / "alerts.yaml").write_text(text + RULES, encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_shows_it(kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rules = tmp_path / "alerts.yaml"
    with receiving() as receiver:
        receiver.always(Answer(403, body=b"no"))
        _write(tmp_path, secretive(kind, receiver.url))
        assert main(["test-notify", "--rules", str(rules)]) == 1
        main(["check", str(rules)])
        rules.write_text(rules.read_text(encoding="utf-8").replace("kind: " + kind, "kind: nonsense"), encoding="utf-8")
        main(["check", str(rules)])
    shown = "".join(capfd.readouterr())
    assert f"team ({kind}): " in shown
    _assert_unseen(shown)
