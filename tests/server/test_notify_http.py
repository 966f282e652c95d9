"""What a receiver's answer means, and that no secret address gets out."""

import asyncio
import email.utils
import logging
import socket
import threading
import time

import pytest
from tests.server.receiver import Answer, Receiver, receiving

from oomwatch.notify import http
from oomwatch.notify.channels.slack_webhook import SlackChannel
from oomwatch.notify.channels.webhook import WebhookChannel
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret
from oomwatch.notify.trial import send_test

PATH = "/services/T0/B0/verysecret"


def post_to(url: str, *, limit_seconds: float = http.WHOLE_SECONDS) -> Outcome:
    async def go() -> Outcome:
        async with http.client() as client:
            return await http.post(client, Secret(url), b'{"a":1}', {"X-Extra": "1"}, limit_seconds=limit_seconds)

    return asyncio.run(go())


def outcome_of(answer: Answer) -> Outcome:
    with receiving() as receiver:
        receiver.always(answer)
        return post_to(receiver.url + PATH)


def test_certificates_are_loaded_for_https_alone_and_their_want_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    assert outcome_of(Answer(200)) == Delivered()
    outcome = post_to("https://127.0.0.1:1/hook")
    assert isinstance(outcome, TryAgain)
    assert "certificates" in outcome.reason


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_any_success_is_delivered(status: int) -> None:
    body = b"" if status == 204 else b"ok"
    assert outcome_of(Answer(status, body=body)) == Delivered()


@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 100\r\n\r\nok",
        b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
        b"Content-Length: 100\r\n\r\n",
    ],
    ids=["breaks off", "is malformed", "never comes"],
)
def test_a_success_stays_one_whatever_becomes_of_the_words_after_it(
    rest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "ANSWER_SECONDS", 0.1)
    over = threading.Event()

    def say() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + rest)
            if rest.endswith(b"\r\n\r\n"):
                over.wait(10)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=say)
        thread.start()
        outcome = post_to(f"http://127.0.0.1:{listening.getsockname()[1]}")
        over.set()
        thread.join()
    assert outcome == Delivered()


def test_json_is_posted_as_such() -> None:
    with receiving() as receiver:
        post_to(receiver.url + PATH)
        [request] = receiver.received
    assert (request.path, request.body) == (PATH, b'{"a":1}')
    assert request.headers["content-type"] == "application/json; charset=utf-8"
    assert (request.headers["user-agent"], request.headers["x-extra"]) == ("oomwatch", "1")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_receiver_in_trouble_is_tried_again(status: int) -> None:
    assert isinstance(outcome_of(Answer(status)), TryAgain)


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("7", 7, 7), ("0", 0, 0), ("999999", 3600, 3600), ("-5", None, None), ("soon", None, None), ("", None, None)],
)
def test_retry_after_is_read_and_bounded(header: str, least: float | None, most: float | None) -> None:
    outcome = outcome_of(Answer(429, {"Retry-After": header}))
    assert isinstance(outcome, TryAgain)
    assert outcome.after_seconds == least == most


def test_retry_after_may_be_a_date() -> None:
    outcome = outcome_of(Answer(503, {"Retry-After": email.utils.formatdate(time.time() + 60, usegmt=True)}))
    assert isinstance(outcome, TryAgain)
    assert outcome.after_seconds is not None
    assert 50 < outcome.after_seconds <= 60


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_refusal_is_final_and_is_told_in_the_receivers_words(status: int) -> None:
    outcome = outcome_of(Answer(status, body=b"no_service"))
    assert isinstance(outcome, Failed)
    assert f"answered {status}: no_service. Check the address" in outcome.reason


def test_a_redirect_is_not_followed() -> None:
    with receiving() as elsewhere, receiving() as receiver:
        receiver.always(Answer(307, {"Location": elsewhere.url + "/stolen"}))
        outcome = post_to(receiver.url + PATH)
        assert elsewhere.received == []
    assert isinstance(outcome, Failed)
    assert "redirects" in outcome.reason


def test_a_receiver_that_is_not_there_is_tried_again() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        outcome = post_to(f"http://127.0.0.1:{unused.getsockname()[1]}{PATH}")
    assert isinstance(outcome, TryAgain)
    assert outcome.reason.startswith("cannot reach http://127.0.0.1:")


def test_a_receiver_that_never_answers_is_given_up_for_now() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = f"http://127.0.0.1:{silent.getsockname()[1]}"
        outcome = post_to(place + PATH, limit_seconds=0.05)
    assert outcome == TryAgain(f"{place} did not answer within 0.05 s")


def test_of_a_huge_answer_only_the_beginning_is_kept() -> None:
    outcome = outcome_of(Answer(400, body=b"<html>\x1b[31m\n" + b"x" * 3_000_000))
    assert isinstance(outcome, Failed)
    assert len(outcome.reason) < 400
    assert "\x1b" not in outcome.reason
    assert "\n" not in outcome.reason


@pytest.mark.parametrize("status", [200, 302, 400, 503])
def test_a_secret_address_is_in_no_log_and_no_outcome_even_if_the_receiver_echoes_it(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with receiving() as receiver:
        url = receiver.url + PATH
        receiver.always(Answer(status, body=f"POST {url} ({PATH}) failed".encode()))
        outcome = post_to(url)
    assert "verysecret" not in repr(outcome)
    assert "verysecret" not in caplog.text


def send_to(receiver: Receiver, kind: type[SlackChannel | WebhookChannel]) -> Outcome:
    channel = kind(name="team", url=Secret(receiver.url + PATH), severity="critical")
    return asyncio.run(send_test(channel, "zh", external_url="https://oom.example"))


def test_a_test_message_reaches_slack_in_the_chosen_language() -> None:
    with receiving() as receiver:
        assert send_to(receiver, SlackChannel) == Delivered()
        [request] = receiver.received
    assert "这是 oomwatch 的测试消息。" in request.json()["blocks"][1]["text"]["text"]


def test_a_test_message_reaches_a_webhook() -> None:
    with receiving() as receiver:
        assert send_to(receiver, WebhookChannel) == Delivered()
        [request] = receiver.received
    document = request.json()
    assert (document["status"], document["receiver"]) == ("firing", "team")
    assert document["commonLabels"] == {"alertname": "oomwatch_test", "severity": "info"}


def test_a_test_message_to_a_refusing_receiver_says_what_it_said() -> None:
    with receiving() as receiver:
        receiver.always(Answer(403, body=b"invalid_token"))
        outcome = send_to(receiver, SlackChannel)
    assert isinstance(outcome, Failed)
    assert "invalid_token" in outcome.reason


def test_a_test_message_without_an_address_says_what_is_missing() -> None:
    outcome = asyncio.run(send_test(SlackChannel(name="team", url_env="HOOK"), "en", environ={}))
    assert outcome == Failed("notify channel team: the environment variable HOOK is not set; export it, or use a file")
