"""Text and Markdown say the same, keep a limit in bytes, and let nothing of an alert become markup or call anybody."""

import re
from collections.abc import Callable

import pytest
from tests.server.notify_samples import LEAK, RESTART, channel_notice, told, transition
from tests.server.test_notify_slack import HOSTILE, hostile_notice

from oomwatch import wire
from oomwatch.notify import plain
from oomwatch.notify.message import Message, compose
from oomwatch.notify.notice import NOTICE_KINDS, NoticeKind
from oomwatch.notify.words import Frame

EN = Frame(external_url="https://oom.example")


def said(*news: wire.Transition, frame: Frame = EN) -> Message:
    return compose(told(*news), frame)


def test_a_text_tells_the_whole_story() -> None:
    message = said(transition(3, causes=(LEAK,), remedies=(RESTART,)), transition(4, value=0.8))
    assert plain.title(message, 250) == "🟠 gpu_memory_high on 2 GPUs of gpu-07 (run qwen7b): up to 90 %"
    assert plain.text(message, "en", 5000).splitlines() == [
        "Worst of them: GPU 3 of gpu-07 is nearly full",
        "",
        "The peak of every step comes closer to the limit.",
        "• gpu-07 GPU 3: 90 %",
        "• gpu-07 GPU 4: 80 %",
        "",
        "Probable cause: A leak (all phases gained 9 GiB; torch allocated 8 GiB more)",
        "",
        "What to do:",
        "1. Start again from a checkpoint.",
        "   trainer.save_freq=20",
        "",
        f"Warning · since 2023-11-14 22:13 UTC https://oom.example/#/alerts?id={transition(3).id}",
    ]


def test_markdown_says_the_same_with_emphasis_and_a_link() -> None:
    message, message_id = said(transition(3, remedies=(RESTART,))), transition(3).id
    assert plain.markdown(message, "en", 5000).splitlines() == [
        "GPU 3 of gpu-07 is nearly full",
        "",
        "The peak of every step comes closer to the limit.",
        "",
        "**What to do**",
        "1. Start again from a checkpoint. `trainer.save_freq=20`",
        "",
        f"Warning · since 2023-11-14 22:13 UTC · [Open in oomwatch](https://oom.example/#/alerts?id={message_id})",
    ]


@pytest.mark.parametrize("write", [plain.text, plain.markdown])
def test_a_chinese_message_has_no_colon_of_half_a_width_between_its_words(
    write: Callable[[Message, wire.Language, int], str],
) -> None:
    frame = Frame(language="zh")
    body = write(said(transition(3, causes=(LEAK,)), transition(4), frame=frame), "zh", 5000)
    assert re.search(r"可能的原因(\*\*)?：泄漏", body)
    assert ": " not in body
    assert not re.search(r":$", body, re.MULTILINE)


@pytest.mark.parametrize("limit", [100, 300, 1000])
@pytest.mark.parametrize("language", wire.LANGUAGES)
def test_a_limit_is_kept_in_bytes_and_the_link_with_it(language: wire.Language, limit: int) -> None:
    message = said(*(transition(gpu) for gpu in range(64)), frame=Frame(language=language, external_url="https://o.x"))
    for write in (plain.text, plain.markdown):
        body = write(message, language, limit)
        assert len(body.encode()) <= limit
        assert "https://o.x/#/alerts?id=" in body or limit < 200
    assert len(plain.title(message, limit).encode()) <= limit


def test_of_many_gpus_the_first_are_listed_and_the_rest_is_counted() -> None:
    body = plain.text(said(*(transition(gpu) for gpu in range(64))), "en", 10_000)
    assert body.count("• ") == plain.SUBJECTS_SHOWN + 1
    assert "• and 44 more" in body


@pytest.mark.parametrize("language", wire.LANGUAGES)
@pytest.mark.parametrize("kind", NOTICE_KINDS)
@pytest.mark.parametrize("length", [1, 500])
def test_hostile_texts_call_nobody_and_are_no_markup(language: wire.Language, kind: NoticeKind, length: int) -> None:
    message = compose(hostile_notice(kind, (HOSTILE + "@everyone [x](http://evil) # head\n") * length), EN)
    for body in (
        plain.title(message, 250),
        plain.text(message, language, 4000),
        plain.markdown(message, language, 4000),
    ):
        assert not re.search(r"@(?![\u200b…])|<(?=[!@#])", body)
        assert all(char.isprintable() or char in "\n\u200b" for char in body)
    marked = plain.markdown(message, language, 100_000).rpartition("](")[0]
    assert not re.search(r"(?<!\\)\[(?!Open in oomwatch|在 oomwatch 中打开)", marked)
    assert not re.search(r"(?<!\\)<", marked)


def test_a_failed_channel_is_told_with_what_to_do() -> None:
    body = plain.text(compose(channel_notice(), EN), "en", 4000)
    assert "What it said last: no_service" in body
    assert "2. Try it: oomwatch test-notify team" in body


@pytest.mark.parametrize(
    ("words", "limit", "expected"),
    [("short", 5, "short"), ("longer", 5, "lo…"), ("内存不足", 9, "内存…"), ("内存不足", 8, "内…"), ("", 0, "")],
)
def test_nothing_is_cut_within_a_character(words: str, limit: int, expected: str) -> None:
    assert plain.cut(words, limit) == expected
