"""Messages to Slack keep its limits and cannot be made to mention anyone, whatever an alert says."""

from typing import Any

import msgspec
import pytest
from tests.server.notify_samples import LEAK, LOOK, RESTART, START, channel_notice, notice, told, transition

from oomwatch import wire
from oomwatch.notify.blockkit import body, fit
from oomwatch.notify.message import compose as compose_message
from oomwatch.notify.notice import NOTICE_KINDS, Notice, NoticeKind
from oomwatch.notify.words import Frame

HOSTILE = '<!channel> <@U123> <https://evil.example|click> & "quoted" \\ \x00\x1b\u202e `*_~\n'


def compose(*news: wire.Transition, frame: Frame | None = None) -> Any:
    return body_of(notice(news), frame or Frame())


def body_of(one: Notice, frame: Frame) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body(compose_message(one, frame), frame.language)))


def texts_of(body: Any) -> list[str]:
    found = [body["text"]]
    for block in body["blocks"]:
        found += [part["text"] for part in [block.get("text"), *block.get("elements", [])] if part]
    return found


def assert_within_slacks_limits(body: Any) -> None:
    assert len(msgspec.json.encode(body).decode()) < 12_000
    assert len(body["blocks"]) <= 50
    assert body["text"]
    for block in body["blocks"]:
        if block["type"] == "header":
            assert block["text"]["type"] == "plain_text"
            assert 0 < len(block["text"]["text"]) <= 150
        if block["type"] == "section":
            assert 0 < len(block["text"]["text"]) <= 3000


def test_a_message_holds_title_story_advice_and_link() -> None:
    body = compose(transition(3), frame=Frame(external_url="https://oom.example"))
    assert body["text"] == "🟠 gpu_memory_high on GPU 3 of gpu-07 (run qwen7b): 90 %"
    header, story, advice, context = body["blocks"]
    assert header["text"]["text"] == body["text"]
    assert story["text"]["text"] == "GPU 3 of gpu-07 is nearly full\nThe peak of every step comes closer to the limit."
    assert advice["text"]["text"] == ("*What to do*\n1. Lower gpu_memory_utilization.\n2. Use smaller micro batches.")
    assert context["elements"][0]["text"] == (
        "Warning · since <!date^1700000000^{date_short_pretty} {time_secs}|2023-11-14 22:13:20 UTC>"
        f" · <https://oom.example/#/alerts?id={transition(3).id}|Open in oomwatch>"
    )


def test_a_message_in_chinese_is_chinese_throughout() -> None:
    body = compose(transition(3, severity="critical"), frame=Frame(language="zh"))
    assert body["text"] == "🔴 gpu-07 的 GPU 3（任务 qwen7b）：gpu_memory_high，90 %"
    _, story, advice, context = body["blocks"]
    assert story["text"]["text"] == "gpu-07 的 GPU 3 显存即将用尽\n每一步的峰值都更接近上限。"
    assert advice["text"]["text"] == "*处理建议*\n1. 降低 gpu_memory_utilization。"
    assert context["elements"][0]["text"].startswith("严重 · 自 ")


def test_several_gpus_are_listed_with_their_values() -> None:
    body = compose(transition(0, value=0.88), transition(1, value=0.93))
    story, subjects = body["blocks"][1:3]
    assert story["text"]["text"].startswith("Worst of them: GPU 1 of gpu-07 is nearly full")
    assert subjects["text"]["text"] == "• gpu-07 GPU 0: 88 %\n• gpu-07 GPU 1: 93 %"


def test_a_resolved_message_says_how_long_and_gives_no_advice() -> None:
    one = transition(3, state="resolved", at=START + 720, reason="run ended")
    body = compose(one)
    assert body["text"].startswith("✅ Resolved: gpu_memory_high on GPU 3")
    assert [block["type"] for block in body["blocks"]] == ["header", "section", "context"]
    assert body["blocks"][2]["elements"][0]["text"].startswith(
        "Warning · Resolved after 12 min · Reason: the run ended · since <!date^"
    )


def test_simulated_alerts_say_so_in_title_and_text() -> None:
    body = compose(transition(3, simulated=True))
    assert body["text"].startswith("🟠 DEMO (simulated data): ")
    assert body["blocks"][1]["text"]["text"].startswith("*DEMO (simulated data): no real GPU is concerned.*\n")


def test_five_hundred_gpus_are_one_message_within_the_limits_and_count_the_rest() -> None:
    news = [transition(gpu % 8, node=f"gpu-{gpu // 8:02}") for gpu in range(500)]
    body = compose(*news, frame=Frame(external_url="https://oom.example"))
    assert_within_slacks_limits(body)
    assert "500 GPUs of 63 nodes" in body["text"]
    lines = body["blocks"][2]["text"]["text"].splitlines()
    listed = len(lines) - 1
    assert listed > 10
    assert lines[-1] == f"and {500 - listed} more"


def hostile_notice(kind: NoticeKind, text: str) -> Notice:
    """A message of this kind of which every text that somebody else wrote is `text`."""
    if kind == "channel":
        return channel_notice(error=text)
    words = wire.AlertText(summary=text, description=text, advice=(text,) * 30)
    care = wire.Acknowledgement(by=text[:200], at=START, note=text)
    outcome = wire.Outcome(verdict="happened", at=START, lead_seconds=60.0)
    state: wire.AlertState = "resolved" if kind == "resolved" else "firing"
    news = [
        transition(gpu, node=text[:200], run=text[:200], alert=text[:200] + str(gpu % 2), state=state,
                   reason="run ended", unit=text, texts={"en": words, "zh": words}, outcome=outcome,
                   acknowledged=care, simulated=True)
        for gpu in range(20)
    ]  # fmt: skip
    return told(*news, kind=kind)


@pytest.mark.parametrize("language", wire.LANGUAGES)
@pytest.mark.parametrize("length", [1, 50, 2000])
@pytest.mark.parametrize("kind", NOTICE_KINDS)
def test_hostile_text_of_any_size_stays_text_within_the_limits(
    language: wire.Language, length: int, kind: NoticeKind
) -> None:
    text = HOSTILE * length
    frame = Frame(language=language, external_url="https://oom.example/" + text[:100])
    body = body_of(hostile_notice(kind, text), frame)
    assert_within_slacks_limits(body)
    for written in texts_of(body):
        opened = [part for part in written.split("<")[1:] if not part.startswith(("!date^", "https://oom.example/"))]
        assert opened == []
        assert "\x00" not in written
        assert "\x1b" not in written
        assert "\u202e" not in written


def test_markdown_is_sent_verbatim_so_that_slack_finds_no_mentions_in_it() -> None:
    body = compose(transition(0), transition(1))
    parts = [part for block in body["blocks"] for part in [block.get("text"), *block.get("elements", [])] if part]
    assert all(part["verbatim"] for part in parts if part["type"] == "mrkdwn")


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("short", 5, "short"),
        ("longer", 5, "long…"),
        ("a&b", 7, "a&amp;b"),
        ("a&bc", 7, "a&amp;…"),
        ("a&b", 5, "a…"),
        ("<<<", 9, "&lt;&lt;…"),
        ("", 5, ""),
    ],
)
def test_text_is_cut_after_escaping_and_never_within_an_entity(text: str, limit: int, expected: str) -> None:
    assert fit(text, limit) == expected


def test_a_message_says_the_cause_and_what_was_worked_out_instead_of_the_rules_advice() -> None:
    body = compose(transition(causes=(LEAK,), remedies=(RESTART, LOOK)))
    texts = texts_of(body)
    assert "*Probable cause*\nA leak (all phases gained 9 GiB; torch allocated 8 GiB more)" in texts
    steps = next(text for text in texts if text.startswith("*What to do*"))
    assert steps == ("*What to do*\n1. Start again from a checkpoint.\n`trainer.save_freq=20`\n2. Find what is kept.")
    assert_within_slacks_limits(body)


def test_a_cause_and_remedies_of_any_length_keep_slacks_limits() -> None:
    long = dict.fromkeys(wire.LANGUAGES, HOSTILE * 200)
    cause = msgspec.structs.replace(LEAK, texts=long)
    remedies = (msgspec.structs.replace(RESTART, texts=long, override=HOSTILE * 20),) * 3
    text: dict[str, wire.AlertText] = dict.fromkeys(
        wire.LANGUAGES, wire.AlertText(summary=HOSTILE * 99, description=HOSTILE * 99)
    )
    assert_within_slacks_limits(compose(transition(causes=(cause,), remedies=remedies, texts=text)))


def test_what_is_over_needs_no_change() -> None:
    texts = texts_of(compose(transition(state="resolved", causes=(LEAK,), remedies=(RESTART,))))
    assert not any("leak" in text or "save_freq" in text for text in texts)
