"""Titles, places and figures as people read them, in both languages."""

import pytest
from tests.server.notify_samples import START, notice, transition

from oomwatch import wire
from oomwatch.notify import words
from oomwatch.notify.words import Frame


def title(*news: wire.Transition, language: wire.Language = "en") -> str:
    return words.title(notice(news), language)


EIGHT = [transition(gpu, value=0.86 + gpu / 100) for gpu in range(8)]


def test_eight_gpus_of_a_run_are_named_together_with_the_worst_value() -> None:
    assert title(*EIGHT) == "gpu_memory_high on 8 GPUs of gpu-07 (run qwen7b): up to 93 %"
    assert title(*EIGHT, language="zh") == "gpu-07 的 8 块 GPU（任务 qwen7b）：gpu_memory_high，最高 93 %"


@pytest.mark.parametrize(
    ("news", "expected"),
    [
        ([transition(3, run=None)], "gpu_memory_high on GPU 3 of gpu-07: 90 %"),
        (
            [transition(0), transition(0, node="gpu-08")],
            "gpu_memory_high on 2 GPUs of 2 nodes (run qwen7b): up to 90 %",
        ),
        ([transition(None, run=None)], "gpu_memory_high on gpu-07: 90 %"),
        ([transition(None, node=None)], "gpu_memory_high on run qwen7b: 90 %"),
        ([transition(None, node=None, run=None)], "gpu_memory_high: 90 %"),
        ([transition(run=None, value=None)], "gpu_memory_high on GPU 0 of gpu-07"),
        (
            [transition(0, value=0.2, limit=0.3), transition(1, value=0.1, limit=0.3)],
            "gpu_memory_high on 2 GPUs of gpu-07 (run qwen7b): down to 10 %",
        ),
        ([transition(run=None, simulated=True)], "DEMO (simulated data): gpu_memory_high on GPU 0 of gpu-07: 90 %"),
    ],
    ids=["one GPU", "two nodes", "a node", "a run", "nothing", "no value", "low is bad", "demo"],
)
def test_titles_say_what_and_where(news: list[wire.Transition], expected: str) -> None:
    assert title(*news) == expected


def test_that_something_happened_is_said_without_a_count() -> None:
    """One failure on each GPU: "1" would say nothing."""
    once = [transition(gpu, run=None, value=1.0, limit=None, unit="count") for gpu in (3, 4)]
    assert title(once[0]) == "gpu_memory_high on GPU 3 of gpu-07"
    assert title(*once) == "gpu_memory_high on 2 GPUs of gpu-07"
    assert words.subject(once[0], "en") == "gpu-07 GPU 3"


def test_a_count_that_was_held_against_a_limit_is_said() -> None:
    assert title(transition(3, run=None, value=7.0, limit=5.0, unit="count")) == (
        "gpu_memory_high on GPU 3 of gpu-07: 7"
    )


@pytest.mark.parametrize(("limit", "expected"), [(600.0, "最短 1 分钟 16 秒"), (60.0, "最长 2 分钟")])
def test_an_end_of_times_is_called_long_or_short_in_chinese(limit: float, expected: str) -> None:
    news = [transition(gpu, value=seconds, limit=limit, unit="seconds") for gpu, seconds in ((0, 76.0), (1, 120.0))]
    assert title(*news, language="zh").endswith(f"，{expected}")


def test_a_subject_and_its_value_are_parted_by_a_colon_of_the_language() -> None:
    assert words.subject(transition(3), "en") == "gpu-07 GPU 3: 90 %"
    assert words.subject(transition(3), "zh") == "gpu-07 GPU 3：90 %"


def test_a_resolved_title_says_how_long_it_lasted() -> None:
    one = transition(3, state="resolved", run=None, at=START + 720)
    assert title(one) == "Resolved: gpu_memory_high on GPU 3 of gpu-07, after 12 min"
    assert title(one, language="zh") == "已解除：gpu-07 的 GPU 3：gpu_memory_high，历时 12 分钟"


def test_a_resolved_title_of_several_says_how_long_the_longest_lasted() -> None:
    news = [transition(gpu, state="resolved", at=START + 60 * (gpu + 1)) for gpu in range(3)]
    assert title(*news) == "Resolved: gpu_memory_high on 3 GPUs of gpu-07 (run qwen7b), after up to 3 min"


def test_a_language_that_the_rule_lacks_falls_back_to_english_and_then_to_the_alerts_name() -> None:
    english = {"en": wire.AlertText(summary="Full", description="")}
    assert words.text_of(transition(texts=english), "zh").summary == "Full"
    assert words.text_of(transition(texts={}), "zh").summary == "gpu_memory_high"


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (None, None),
        ("recovered", None),
        ("run ended", "任务已结束"),
        ("rule removed", "规则已删除"),
        ("node removed", "节点已移除"),
    ],
)
def test_a_resolution_without_recovery_says_why(reason: wire.TransitionReason | None, expected: str | None) -> None:
    assert words.reason(transition(state="resolved", reason=reason), "zh") == expected


def test_links_lead_to_the_alert_on_the_page() -> None:
    assert Frame(external_url="https://oom.example/").link("a1") == "https://oom.example/#/alerts?id=a1"
    assert Frame().link("a1") is None
