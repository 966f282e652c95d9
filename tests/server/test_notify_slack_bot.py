"""The Slack bot keeps one message an incident, says what is new in its thread, and posts nothing twice."""

import asyncio
import io
import logging
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from PIL import Image
from tests.server.notify_samples import START, channel_notice, told, transition
from tests.server.receiver import Answer
from tests.server.slack import CHANNEL, TOKEN, Slack, refused, slack
from tests.server.test_notify_slack import HOSTILE, hostile_notice

from oomwatch import wire
from oomwatch.notify import http
from oomwatch.notify.channel import Charts, Curve, Surroundings
from oomwatch.notify.channels.slack_bot import SlackBot, SlackBotChannel
from oomwatch.notify.notice import NOTICE_KINDS, Notice, NoticeKind
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret
from oomwatch.notify.slackapi import REMEDIES
from oomwatch.notify.trial import send_test
from oomwatch.notify.words import Frame
from oomwatch.options import SettingError

EN = Frame(external_url="https://oom.example")
ANN = wire.Acknowledgement(by="ann", at=START + 90)
ONE, TWO = transition(3), transition(4, value=0.95)
OVER = (transition(3, state="resolved", at=START + 720), transition(4, state="resolved", at=START + 600))


def section(service: Slack, channel: str = CHANNEL) -> SlackBotChannel:
    return SlackBotChannel(name="team", channel=channel, token=Secret(TOKEN), api_url=service.api_url)


def with_bot(
    service: Slack,
    story: Callable[[SlackBot], Awaitable[list[Outcome]]],
    *,
    channel: str = CHANNEL,
    charts: Charts | None = None,
    frame: Frame = EN,
    born_at: float = START,
) -> list[Outcome]:
    """Open a bot and let it live through a story. `born_at`: when the server started, by its clock."""

    async def go() -> list[Outcome]:
        async with http.client() as client:
            config = section(service, channel)
            bot = config.open(Surroundings(frame, client, {}, charts))
            bot = SlackBot(config, bot._api, frame, charts, clock=lambda: born_at)
            outcomes = await story(bot)
            await asyncio.gather(*bot._pictures)
            return outcomes

    return asyncio.run(go())


def sending(*notices: Notice) -> Callable[[SlackBot], Awaitable[list[Outcome]]]:
    async def story(bot: SlackBot) -> list[Outcome]:
        return [await bot.send(notice) for notice in notices]

    return story


def later(kind: NoticeKind, *news: wire.Transition, everything: tuple[wire.Transition, ...], receipt: str) -> Notice:
    """A notice of an incident of which the first message is there."""
    return msgspec.structs.replace(told(*news, kind=kind), id=f"later_{kind}", everything=everything, receipt=receipt)


def receipt_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Delivered)
    assert outcome.receipt is not None
    return outcome.receipt


def test_the_first_message_tells_all_and_its_receipt_finds_it_again() -> None:
    with slack() as service:
        [outcome] = with_bot(service, sending(told(ONE)))
        [message] = service.messages
    assert receipt_of(outcome) == f"{CHANNEL}:{message['ts']}"
    assert message["text"] == "🟠 gpu_memory_high on GPU 3 of gpu-07 (run qwen7b): 90 %"
    assert message["metadata"]["event_payload"] == {"id": "msg_firing", "incident": "i1"}
    assert (message["unfurl_links"], message["unfurl_media"]) == (False, False)


def test_new_gpus_change_the_message_and_are_told_in_its_thread() -> None:
    with slack() as service:
        [first] = with_bot(service, sending(told(ONE)))
        with_bot(service, sending(later("firing", TWO, everything=(ONE, TWO), receipt=receipt_of(first))))
        [main] = service.main()
        [reply] = service.thread(main["ts"])
    assert main["text"] == "🟠 gpu_memory_high on 2 GPUs of gpu-07 (run qwen7b): up to 95 %"
    assert reply["text"] == "🟠 gpu_memory_high on GPU 4 of gpu-07 (run qwen7b): 95 %"
    assert reply["reply_broadcast"] is False


def test_an_incident_that_is_over_says_so_in_its_message_and_tells_the_verdict_in_the_thread() -> None:
    outcome = wire.Outcome(verdict="avoided", at=START + 720)
    over = tuple(msgspec.structs.replace(one, outcome=outcome) for one in OVER)
    with slack() as service:
        [first] = with_bot(service, sending(told(ONE, TWO)))
        with_bot(service, sending(later("resolved", *over, everything=over, receipt=receipt_of(first))))
        [main] = service.main()
        [reply] = service.thread(main["ts"])
    resolved = "✅ Resolved: gpu_memory_high on 2 GPUs of gpu-07 (run qwen7b), after up to 12 min"
    assert (main["text"], reply["text"]) == (resolved, resolved)
    assert "What became of it: avoided" in reply["blocks"][0]["text"]["text"]


def test_while_some_fire_the_message_says_that_it_goes_on() -> None:
    with slack() as service:
        [first] = with_bot(service, sending(told(ONE, TWO)))
        with_bot(service, sending(later("resolved", OVER[0], everything=(OVER[0], TWO), receipt=receipt_of(first))))
        [main] = service.main()
        [reply] = service.thread(main["ts"])
    assert main["text"] == "🟠 gpu_memory_high on GPU 4 of gpu-07 (run qwen7b): 95 %"
    assert reply["text"].startswith("✅ Resolved: gpu_memory_high on GPU 3")


def test_an_acknowledgement_is_told_in_a_line_and_shown_in_the_message() -> None:
    taken = msgspec.structs.replace(ONE, change="acknowledged", acknowledged=ANN)
    with slack() as service:
        [first] = with_bot(service, sending(told(ONE)))
        with_bot(service, sending(later("update", taken, everything=(taken,), receipt=receipt_of(first))))
        [main] = service.main()
        [reply] = service.thread(main["ts"])
    assert reply["text"] == "Acknowledged by ann"
    assert "*Acknowledged by ann*" in main["blocks"][1]["text"]["text"]


@pytest.mark.parametrize("kind", ["repeat", "escalation"])
def test_what_somebody_has_to_see_is_shown_in_the_channel_as_well(kind: NoticeKind) -> None:
    with slack() as service:
        [first] = with_bot(service, sending(told(ONE)))
        with_bot(service, sending(later(kind, ONE, everything=(ONE,), receipt=receipt_of(first))))
        [reply] = service.thread(service.main()[0]["ts"])
    assert reply["reply_broadcast"] is True


def test_a_message_that_somebody_deleted_is_posted_anew() -> None:
    with slack() as service:
        [outcome] = with_bot(service, sending(later("firing", TWO, everything=(ONE, TWO), receipt=f"{CHANNEL}:1.2")))
        [message] = service.messages
    assert receipt_of(outcome) == f"{CHANNEL}:{message['ts']}"
    assert "2 GPUs" in message["text"]


def test_a_change_of_what_was_never_told_says_nothing() -> None:
    with slack() as service:
        assert with_bot(service, sending(told(ONE, kind="update"))) == [Delivered()]
        assert service.calls == []


def test_a_failed_channel_is_a_message_of_its_own() -> None:
    with slack() as service:
        with_bot(service, sending(channel_notice()))
        assert service.messages[0]["text"] == "🔴 Notification channel team does not deliver"


# ---------------------------------------------------------------- never twice


def test_a_message_whose_answer_was_lost_is_found_again_and_not_posted_twice() -> None:
    with slack() as service:
        service.lose.add("chat.postMessage")
        lost, found = with_bot(service, sending(told(ONE), told(ONE)))
        [message] = service.messages
    assert isinstance(lost, TryAgain)
    assert receipt_of(found) == f"{CHANNEL}:{message['ts']}"


def test_a_message_posted_just_before_the_server_died_is_found_again() -> None:
    with slack() as service:
        with_bot(service, sending(told(ONE)))
        [outcome] = with_bot(service, sending(told(ONE)), born_at=START + 10_000)
        [message] = service.messages
    assert receipt_of(outcome) == f"{CHANNEL}:{message['ts']}"


def test_a_reply_whose_answer_was_lost_is_not_posted_twice() -> None:
    with slack() as service:
        [first] = with_bot(service, sending(told(ONE)))
        more = later("firing", TWO, everything=(ONE, TWO), receipt=receipt_of(first))
        service.lose.add("chat.postMessage")
        lost, again = with_bot(service, sending(more, more))
        assert len(service.thread(service.main()[0]["ts"])) == 1
    assert isinstance(lost, TryAgain)
    assert again == Delivered()


def test_without_the_scope_to_look_it_posts_rather_than_keeps_silent() -> None:
    with slack() as service:
        service.refuse["conversations.history"] = [refused("missing_scope", needed="channels:history")]
        [outcome] = with_bot(service, sending(told(ONE)), born_at=START + 10_000)
        assert len(service.messages) == 1
    assert isinstance(outcome, Delivered)


def test_news_that_is_surely_new_is_not_looked_for() -> None:
    with slack() as service:
        with_bot(service, sending(told(ONE)))
        assert service.calls == ["chat.postMessage"]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("error", sorted(REMEDIES))
def test_what_a_person_has_to_mend_is_final_and_says_what_to_do(error: str) -> None:
    with slack() as service:
        service.refuse["chat.postMessage"] = [refused(error)]
        [outcome] = with_bot(service, sending(told(ONE)))
    assert outcome == Failed(f"Slack's chat.postMessage answered {error}: {REMEDIES[error]}")


def test_a_missing_scope_is_named() -> None:
    with slack() as service:
        service.refuse["chat.postMessage"] = [refused("missing_scope", needed="chat:write")]
        [outcome] = with_bot(service, sending(told(ONE)))
    assert isinstance(outcome, Failed)
    assert outcome.reason.endswith("install it anew (chat:write)")


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (refused("ratelimited", status=429, Retry_After=30), 30.0),
        (refused("ratelimited", Retry_After=7), 7.0),
        (refused("internal_error"), None),
        (refused("service_unavailable", status=503), None),
        (Answer(502, body=b"<html>bad gateway"), None),
        (Answer(200, body=b"not JSON"), None),
    ],
)
def test_what_may_work_later_is_tried_again_when_slack_says(answer: Answer, seconds: float | None) -> None:
    with slack() as service:
        service.refuse["chat.postMessage"] = [answer]
        [outcome] = with_bot(service, sending(told(ONE)))
    assert isinstance(outcome, TryAgain)
    assert outcome.after_seconds == seconds


def test_a_wrong_channel_says_how_to_find_the_right_one() -> None:
    with slack() as service:
        [outcome] = with_bot(service, sending(told(ONE)), channel="C0OTHER")
    assert isinstance(outcome, Failed)
    assert "/invite" in outcome.reason


def test_a_change_that_is_refused_for_now_sends_no_reply_either() -> None:
    with slack() as service:
        [first] = with_bot(service, sending(told(ONE)))
        service.refuse["chat.update"] = [refused("ratelimited", status=429, Retry_After=2)]
        more = later("firing", TWO, everything=(ONE, TWO), receipt=receipt_of(first))
        [outcome] = with_bot(service, sending(more))
        assert service.thread(service.main()[0]["ts"]) == []
    assert isinstance(outcome, TryAgain)


def test_the_token_is_in_no_outcome_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with slack() as service:
        echo = Answer(400, body=f"bad token {TOKEN}".encode())
        word = refused(TOKEN)
        service.refuse["chat.postMessage"] = [echo, word]
        outcomes = with_bot(service, sending(told(ONE), told(ONE)))
    assert "canary" not in repr(outcomes) + caplog.text


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("language", wire.LANGUAGES)
@pytest.mark.parametrize("length", [1, 2000])
@pytest.mark.parametrize("kind", NOTICE_KINDS)
def test_hostile_texts_of_every_kind_of_message_are_within_slacks_limits(
    language: wire.Language, length: int, kind: NoticeKind
) -> None:
    one = hostile_notice(kind, HOSTILE * length)
    with slack() as service:
        first = Frame(language=language, external_url="https://oom.example")
        [begun] = with_bot(service, sending(hostile_notice("firing", HOSTILE * length)), frame=first)
        follow = msgspec.structs.replace(one, receipt=receipt_of(begun), id="another")
        assert isinstance(with_bot(service, sending(follow), frame=first)[0], Delivered)


# ---------------------------------------------------------------- pictures

CURVE = Curve(tuple(START + 10 * n for n in range(90)), tuple(0.5 + n / 200 for n in range(90)), "ratio", limit=0.85)


def curve_of(curve: Curve | None, asked: list[str] | None = None) -> Charts:
    async def charts(transition: wire.Transition, now: float) -> Curve | None:
        if asked is not None:
            asked.append(f"{transition.labels['gpu']} {now - START:.0f}")
        return curve

    return charts


def test_a_picture_of_the_worst_gpu_comes_into_the_thread() -> None:
    asked: list[str] = []
    with slack() as service:
        with_bot(service, sending(told(ONE, TWO)), charts=curve_of(CURVE, asked))
        [file] = service.files
        ts = service.main()[0]["ts"]
    assert asked == ["4 900"]
    assert (file["channel_id"], file["thread_ts"]) == (CHANNEL, ts)
    assert file["title"] == "Memory of gpu-07 GPU 4, the last 15 minutes"
    with Image.open(io.BytesIO(file["content"])) as image:
        assert (image.format, image.size) == ("PNG", (720, 240))


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
def test_a_picture_that_fails_costs_no_message(method: str, caplog: pytest.LogCaptureFixture) -> None:
    with slack() as service:
        service.refuse[method] = [refused("missing_scope", needed="files:write")]
        [outcome] = with_bot(service, sending(told(ONE)), charts=curve_of(CURVE))
        assert (len(service.messages), service.files) == (1, [])
    assert isinstance(outcome, Delivered)
    assert "no picture" in caplog.text
    assert "files:write" in caplog.text


def test_a_defect_in_drawing_costs_no_message(caplog: pytest.LogCaptureFixture) -> None:
    async def charts(_transition: wire.Transition, _now: float) -> Curve | None:
        raise RuntimeError("the disk is gone")

    with slack() as service:
        [outcome] = with_bot(service, sending(told(ONE)), charts=charts)
    assert isinstance(outcome, Delivered)
    assert "no picture: RuntimeError" in caplog.text


def test_where_nothing_is_known_no_picture_is_drawn() -> None:
    with slack() as service:
        with_bot(service, sending(told(ONE)), charts=curve_of(None))
        assert service.calls == ["chat.postMessage"]


# ---------------------------------------------------------------- settings


def test_a_channel_needs_exactly_one_token() -> None:
    with pytest.raises(ValueError, match="exactly one of token, token_env"):
        SlackBotChannel(name="team", channel="C1")


def test_a_token_that_no_header_can_carry_is_refused_without_showing_it() -> None:
    config = SlackBotChannel(name="team", channel="C1", token=Secret("xoxb-canary\nX-Evil: 1"))

    async def go() -> None:
        async with http.client() as client:
            config.open(Surroundings(EN, client, {}))

    with pytest.raises(SettingError) as caught:
        asyncio.run(go())
    assert "canary" not in str(caught.value)


def test_a_test_message_arrives_and_a_refusal_is_told() -> None:
    with slack() as service:
        assert isinstance(asyncio.run(send_test(section(service), "zh")), Delivered)
        assert "这是 oomwatch 的测试消息。" in service.messages[0]["blocks"][1]["text"]["text"]
        outcome = asyncio.run(send_test(section(service, "C0OTHER"), "en"))
    assert isinstance(outcome, Failed)
    assert "channel_not_found" in outcome.reason
