"""Messages through Apprise reach the service that the address names, and its secrets reach nobody else."""

import asyncio
import contextlib
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.notify_samples import START, channel_notice, told, transition
from tests.server.receiver import Answer, Receiver, receiving
from tests.server.test_notify_slack import HOSTILE, hostile_notice

from oomwatch.notify import http
from oomwatch.notify.channel import Surroundings
from oomwatch.notify.channels.apprise import LOCAL, AppriseChannel, AppriseService, harmless
from oomwatch.notify.notice import NOTICE_KINDS, Notice, NoticeKind
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret
from oomwatch.notify.trial import send_test
from oomwatch.notify.words import Frame
from oomwatch.options import SettingError

ONE = told(transition(3, severity="critical"))
EN = Frame(external_url="https://oom.example")


def opened(url: str, frame: Frame = EN) -> AppriseService:
    async def go() -> AppriseService:
        async with http.client() as client:
            return AppriseChannel(name="all", url=Secret(url)).open(Surroundings(frame, client, {}))

    return asyncio.run(go())


def sent(url: str, *notices: Notice, frame: Frame = EN) -> list[Outcome]:
    service = opened(url, frame)

    async def go() -> list[Outcome]:
        return [await service.send(notice) for notice in notices or (ONE,)]

    return asyncio.run(go())


def as_json(receiver: Receiver, path: str = "/hook") -> str:
    return receiver.url.replace("http", "json", 1) + path


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Apprise itself waits between two requests of one object, by the service's rate."""
    from apprise.plugins.base import NotifyBase  # noqa: PLC0415

    monkeypatch.setattr(NotifyBase, "request_rate_per_sec", 0)


def test_a_message_arrives_with_title_and_body() -> None:
    with receiving() as receiver:
        assert sent(as_json(receiver)) == [Delivered()]
        [request] = receiver.received
    body = request.json()
    assert request.path == "/hook"
    assert body["title"] == "🔴 gpu_memory_high on GPU 3 of gpu-07 (run qwen7b): 90 %"
    assert body["message"].startswith("GPU 3 of gpu-07 is nearly full")
    assert body["message"].endswith(f"https://oom.example/#/alerts?id={transition(3, severity='critical').id}")
    assert body["type"] == "failure"


def test_what_is_over_is_a_success_and_a_warning_a_warning() -> None:
    over = told(transition(3, state="resolved", at=START + 60), kind="resolved")
    with receiving() as receiver:
        sent(as_json(receiver), over, told(transition(3)), told(transition(3, severity="info")))
        kinds = [request.json()["type"] for request in receiver.received]
    assert kinds == ["success", "warning", "info"]


# ---------------------------------------------------------------- the services of the house


@contextlib.contextmanager
def service_on_loopback(
    monkeypatch: pytest.MonkeyPatch, module: str, plugin: str, path: str, answer: bytes
) -> Iterator[Receiver]:
    """A service whose address is within Apprise, as a receiver of ours."""
    with receiving() as receiver:
        receiver.always(Answer(body=answer))
        module_ = __import__(f"apprise.plugins.{module}", fromlist=[plugin])
        monkeypatch.setattr(getattr(module_, plugin), "notify_url", receiver.url + path)
        yield receiver


OK = b'{"code": 0, "errcode": 0, "errmsg": "ok"}'


def test_feishu_is_sent_text_and_a_card_where_the_address_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with service_on_loopback(monkeypatch, "feishu", "NotifyFeishu", "/hook/{token}", OK) as receiver:
        assert sent("feishu://abcDEF123") == sent("feishu://abcDEF123?format=markdown") == [Delivered()]
        text, card = (request.json() for request in receiver.received)
        assert receiver.received[0].path == "/hook/abcDEF123"
    assert text["msg_type"] == "text"
    assert text["content"]["text"].startswith("🔴 gpu_memory_high on GPU 3")
    assert card["msg_type"] == "interactive"
    assert card["card"]["header"]["title"]["content"].startswith("🔴 gpu_memory_high")
    assert "**What to do**" in card["card"]["elements"][0]["text"]["content"]


def test_dingtalk_is_sent_a_signed_message(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/robot/send?access_token={token}"
    with service_on_loopback(monkeypatch, "dingtalk", "NotifyDingTalk", path, OK) as receiver:
        assert sent("dingtalk://SECabc@token123") == [Delivered()]
        [request] = receiver.received
    assert "access_token=token123" in request.path
    assert "sign=" in request.path
    assert "gpu_memory_high" in msgspec.json.encode(request.json()).decode()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_wecom_is_sent_no_more_bytes_than_it_takes(monkeypatch: pytest.MonkeyPatch, language: Any) -> None:
    many = told(*(transition(gpu) for gpu in range(64)))
    with service_on_loopback(monkeypatch, "wecombot", "NotifyWeComBot", "/send?key={key}", OK) as receiver:
        assert sent("wecombot://abc-123", many, frame=Frame(language=language)) == [Delivered()]
        [request] = receiver.received
    body = request.json()
    content = body[body["msgtype"]]["content"]
    assert "gpu_memory_high" in content
    assert len(content.encode()) <= 2048


def test_a_refusal_within_an_answer_of_success_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = b'{"code": 19001, "msg": "param invalid: incoming webhook access token invalid"}'
    with service_on_loopback(monkeypatch, "feishu", "NotifyFeishu", "/hook/{token}", refusal):
        [outcome] = sent("feishu://abcDEF123")
    assert isinstance(outcome, TryAgain)
    assert "19001" in outcome.reason


def test_pagerduty_is_told_of_one_incident_and_of_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from apprise.plugins import pagerduty  # noqa: PLC0415

    over = told(transition(3, state="resolved", at=START + 60), kind="resolved")
    with receiving() as receiver:
        receiver.always(Answer(202, body=b"{}"))
        monkeypatch.setattr(
            pagerduty, "PAGERDUTY_API_LOOKUP", dict.fromkeys(pagerduty.PAGERDUTY_API_LOOKUP, receiver.url)
        )
        assert sent("pagerduty://A0BRFDUAJ@ABCDEF?action=map", ONE, over) == [Delivered(), Delivered()]
        bodies = [request.json() for request in receiver.received]
    assert [body["event_action"] for body in bodies] == ["trigger", "resolve"]
    assert [body["dedup_key"] for body in bodies] == [ONE.incident, ONE.incident]
    assert bodies[0]["payload"]["severity"] in ("critical", "error")


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("status", "kind"), [(500, TryAgain), (429, TryAgain), (503, TryAgain), (401, Failed), (404, Failed)]
)
def test_a_status_means_what_it_means_elsewhere(status: int, kind: type[Outcome]) -> None:
    with receiving() as receiver:
        receiver.always(Answer(status))
        [outcome] = sent(as_json(receiver))
    assert isinstance(outcome, kind)
    assert str(status) in repr(outcome)


def test_a_service_that_is_not_there_is_tried_again() -> None:
    [outcome] = sent("json://127.0.0.1:9/hook")
    assert isinstance(outcome, TryAgain)


def test_redirects_are_not_followed() -> None:
    with receiving() as elsewhere, receiving() as receiver:
        receiver.always(Answer(307, {"Location": elsewhere.url + "/stolen"}))
        [outcome] = sent(as_json(receiver))
        assert elsewhere.received == []
    assert isinstance(outcome, TryAgain)


def test_a_message_that_takes_too_long_is_awaited_and_not_sent_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[AppriseService.__module__]
    monkeypatch.setattr(module, "SEND_SECONDS", 0.05)
    hold = threading.Event()
    with receiving() as receiver:
        receiver.always(Answer(hold=hold))
        service = opened(as_json(receiver))

        async def go() -> list[Outcome]:
            first = await service.send(ONE)
            other = await service.send(channel_notice())
            hold.set()
            while not isinstance(again := await service.send(ONE), Delivered):
                pass
            return [first, other, again]

        outcomes = asyncio.run(go())
        assert len(receiver.received) == 1
    assert [type(one) for one in outcomes] == [TryAgain, TryAgain, Delivered]


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    "url", ["syslog://", "nonsense", "file:///etc/canary", "exec://canary", "feishu://", "http://canary"]
)
def test_an_address_that_cannot_be_used_is_a_mistake_that_is_not_shown(url: str) -> None:
    with pytest.raises(SettingError) as caught:
        opened(url)
    assert str(caught.value).startswith("notify channel all: ")
    assert "canary" not in str(caught.value)


def test_a_service_of_this_machine_is_refused_with_a_reason() -> None:
    with pytest.raises(SettingError, match="where nobody looks"):
        opened("syslog://")


def test_every_local_service_that_apprise_has_is_refused() -> None:
    """By what a plugin's source imports: the desktop's bus, the system's log, a program to run."""
    opened("json://127.0.0.1:9/hook")  # it loads them all
    folder = Path(str(sys.modules["apprise.plugins"].__file__)).parent
    local = re.compile(r"^\s*(import|from) (dbus|gi|syslog|win32\w*|subprocess|blink1)\b", re.MULTILINE)
    speaking = {path.stem for path in folder.rglob("*.py") if local.search(path.read_text(encoding="utf-8"))}
    assert {"dbus", "gnome", "macosx", "syslog", "windows"} <= speaking
    assert speaking - LOCAL == set()


# ---------------------------------------------------------------- secrets and limits


@pytest.mark.parametrize("answer", [Answer(), Answer(404), Answer(500)])
def test_what_stands_in_the_address_is_in_no_outcome_and_no_log(
    answer: Answer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with receiving() as receiver:
        receiver.always(answer)
        url = as_json(receiver, "/canary-path?+X-Token=canary-header").replace("://", "://canary-user:canary-pass@")
        outcomes = sent(url)
        assert "canary-path" in receiver.received[0].path
    seen = repr(outcomes) + caplog.text + "".join(capfd.readouterr())
    assert "canary" not in seen


def test_a_reason_is_one_line_without_anything_of_the_address() -> None:
    url = Secret("tgram://123456:tok%20en/98765/?format=markdown")
    words = "sent to 98765\nwith tok en 123456:tok%20en \x1b[31m failed " + "x" * 500
    found = harmless(words, url)
    assert "98765" not in found
    assert "123456" not in found
    assert "tok en" not in found
    assert "\n" not in found
    assert "\x1b" not in found
    assert len(found) <= 200


@pytest.mark.parametrize("kind", NOTICE_KINDS)
def test_hostile_texts_of_every_kind_arrive(kind: NoticeKind) -> None:
    with receiving() as receiver:
        assert sent(as_json(receiver), hostile_notice(kind, HOSTILE * 500)) == [Delivered()]
        body = receiver.received[0].json()
    assert len(body["title"].encode()) <= 250
    assert len(body["message"].encode()) <= 32768


def test_apprise_is_loaded_for_those_who_use_it_only() -> None:
    code = "import sys, oomwatch.notify.channels; print('apprise' in sys.modules, 'PIL' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_test_message_arrives_and_a_refusal_is_told() -> None:
    with receiving() as receiver:
        channel = AppriseChannel(name="all", url=Secret(as_json(receiver)))
        assert asyncio.run(send_test(channel, "zh")) == Delivered()
        assert receiver.received[0].json()["message"].startswith("这是 oomwatch 的测试消息。")
        receiver.always(Answer(403))
        assert isinstance(asyncio.run(send_test(channel, "en")), Failed)
