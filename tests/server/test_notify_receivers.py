"""Strict receivers take what is sent: one verifies signatures, one keeps Slack's limits, one throttles."""

import asyncio
import base64
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.house import hello, sample
from tests.server.notify_samples import START, channel_notice, told, transition
from tests.server.receiver import Answer, Received, Receiver, receiving
from tests.server.running_server import RULES, AgentClient, serving, settings_in, until
from tests.server.slack import violations
from tests.server.standard_webhooks import TOLERANCE_SECONDS, UnverifiedError, verify
from tests.server.test_notify_slack import HOSTILE, hostile_notice

from oomwatch import wire
from oomwatch.notify import http
from oomwatch.notify.channel import Surroundings
from oomwatch.notify.channels.slack_webhook import SlackChannel
from oomwatch.notify.channels.webhook import JsonWebhook, WebhookChannel
from oomwatch.notify.notice import NOTICE_KINDS, Notice, NoticeKind
from oomwatch.notify.outcome import Delivered, Outcome
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame

OLD, NEW = (f"whsec_{base64.b64encode(bytes([number]) * 32).decode()}" for number in (1, 2))


def send_webhook(
    receiver: Receiver, secrets: str, notice: Notice, *, clock: Callable[[], float] = time.time
) -> Received:
    async def go() -> Outcome:
        async with http.client() as client:
            section = WebhookChannel(name="ops", url=Secret(receiver.url), secret=Secret(secrets))
            opened = section.open(Surroundings(Frame(), client, {}))
            channel = JsonWebhook(section, opened._url, opened._keys, Frame(), client, clock)
            return await channel.send(notice)

    assert asyncio.run(go()) == Delivered()
    return receiver.received[-1]


@pytest.mark.parametrize("kind", NOTICE_KINDS)
def test_a_receiver_that_verifies_takes_every_kind_of_message(kind: NoticeKind) -> None:
    with receiving() as receiver:
        request = send_webhook(receiver, NEW, hostile_notice(kind, HOSTILE * 50))
    assert verify(NEW, request.headers, request.body, time.time()) == f"msg_{kind}"


def test_while_a_key_is_changed_holders_of_either_verify() -> None:
    with receiving() as receiver:
        request = send_webhook(receiver, f"{NEW} {OLD}", told(transition(3)))
    for secret in (OLD, NEW):
        assert verify(secret, request.headers, request.body, time.time())


def test_a_changed_body_another_key_and_another_time_are_noticed() -> None:
    with receiving() as receiver:
        request = send_webhook(receiver, NEW, told(transition(3)), clock=lambda: START)
    headers = request.headers
    assert verify(NEW, headers, request.body, START + TOLERANCE_SECONDS)
    for secret, changed, body, now in (
        (OLD, headers, request.body, START),
        (NEW, headers, request.body + b" ", START),
        (NEW, headers, request.body, START + TOLERANCE_SECONDS + 1),
        (NEW, headers, request.body, START - TOLERANCE_SECONDS - 1),
        (NEW, {**headers, "webhook-id": "another"}, request.body, START),
        (NEW, {**headers, "webhook-timestamp": str(int(START) + 1)}, request.body, START),
    ):
        with pytest.raises(UnverifiedError):
            verify(secret, changed, body, now)


def test_each_attempt_is_signed_anew_under_the_same_id() -> None:
    moments = iter((START, START + 600))
    with receiving() as receiver:
        first, second = (
            send_webhook(receiver, NEW, told(transition(3)), clock=lambda: next(moments)) for _ in range(2)
        )
    assert verify(NEW, first.headers, first.body, START) == verify(NEW, second.headers, second.body, START + 600)
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]


# ---------------------------------------------------------------- Slack's incoming webhook


def as_slack(request: Received) -> Answer:
    """What an incoming webhook says of a message that is not as it has to be."""
    found = violations(request.json())
    return Answer(400, body=f"invalid_blocks: {found}".encode()) if found else Answer()


@pytest.mark.parametrize("language", wire.LANGUAGES)
@pytest.mark.parametrize("length", [0, 1, 2000])
@pytest.mark.parametrize("kind", NOTICE_KINDS)
def test_slack_takes_every_kind_of_message_whatever_the_alert_says(
    kind: NoticeKind, length: int, language: wire.Language
) -> None:
    async def go(url: str) -> Outcome:
        async with http.client() as client:
            frame = Frame(language=language, external_url="https://oom.example")
            channel = SlackChannel(name="team", url=Secret(url)).open(Surroundings(frame, client, {}))
            return await channel.send(hostile_notice(kind, HOSTILE * length or "x"))

    with receiving(as_slack) as receiver:
        assert asyncio.run(go(receiver.url)) == Delivered()


def test_the_stand_in_for_slack_refuses_what_slack_refuses() -> None:
    """A receiver that takes everything would prove nothing."""
    text: dict[str, Any] = {"type": "mrkdwn", "text": "x", "verbatim": True}
    section = {"type": "section", "text": text}
    bad: list[dict[str, Any]] = [
        {"blocks": []},
        {"text": "x", "blocks": [section] * 51},
        {"text": "x", "blocks": [{"type": "section", "text": {**text, "text": "x" * 3001}}]},
        {"text": "x", "blocks": [{"type": "section", "text": {**text, "text": ""}}]},
        {"text": "x", "blocks": [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}]},
        {"text": "x", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x"}}]},
        {"text": "<!channel>", "blocks": []},
        {"text": "x" * 12_000, "blocks": []},
    ]
    assert all(violations({"text": "", **one}) for one in bad)
    assert violations({"text": "x", "blocks": [section]}) == []


# ---------------------------------------------------------------- a whole server, throttled


def test_a_throttled_receiver_hears_everything_once_in_order_and_signed(tmp_path: Path) -> None:
    """It says 429 twice: the same message comes again under the same id, and what is over is told after what began."""
    with receiving() as receiver:
        receiver.answer(Answer(429, {"Retry-After": "0"}), Answer(429, {"Retry-After": "0"}))
        (tmp_path / "key").write_text(NEW, encoding="utf-8")
        notify = (
            "notify:\n  group_interval: 0s\n  channels:\n"
            f"    - {{kind: webhook, name: ops, url: '{receiver.url}/hook', secret_file: '{tmp_path}/key'}}\n"
        )
        (tmp_path / "alerts.yaml").write_text(notify + RULES, encoding="utf-8")
        with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
            agent.greet(hello(sent_at=time.time()))
            agent.say(sample(1, 79, time.time()))
            until("the first attempt", lambda: receiver.received)
            agent.say(sample(2, 10, time.time()), sample(3, 10, time.time() + 2))
            until("the end to be told", lambda: "resolved" in [one.json()["status"] for one in receiver.received[2:]])
        requests = receiver.received
    ids = [verify(NEW, request.headers, request.body, time.time()) for request in requests]
    taken = [request.json()["status"] for request in requests[2:]]
    assert ids[0] == ids[1]
    assert taken in (["firing", "resolved"], ["resolved"])  # the latter where it was over before anyone could be told


def test_a_failed_channel_is_told_on_a_webhook_with_its_reason() -> None:
    with receiving() as receiver:
        request = send_webhook(receiver, NEW, channel_notice(error="invalid_token"))
    [alert] = request.json()["alerts"]
    assert alert["labels"]["channel"] == "team"
    assert "invalid_token" in alert["annotations"]["description"]
