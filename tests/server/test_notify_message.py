"""What each kind of message says, in both languages, and what becomes of alerts that were told of."""

import pytest
from tests.server.notify_samples import LEAK, RESTART, START, channel_notice, told, transition

from oomwatch import wire
from oomwatch.notify.changes import changes
from oomwatch.notify.message import Step, compose
from oomwatch.notify.notice import NoticeKind
from oomwatch.notify.words import Frame

ANN = wire.Acknowledgement(by="ann", at=START + 90, note="looking at it")
AVOIDED = wire.Outcome(verdict="avoided", at=START + 800)
HAPPENED = wire.Outcome(verdict="happened", at=START + 750, lead_seconds=720.0)
EN, ZH = Frame(external_url="https://oom.example"), Frame(language="zh")


@pytest.mark.parametrize(
    ("kind", "frame", "title"),
    [
        ("firing", EN, "gpu_memory_high on GPU 3 of gpu-07 (run qwen7b): 90 %"),
        ("repeat", EN, "Still firing: gpu_memory_high on GPU 3 of gpu-07 (run qwen7b): 90 %"),
        ("escalation", EN, "Nobody has acknowledged: gpu_memory_high on GPU 3 of gpu-07 (run qwen7b): 90 %"),
        ("repeat", ZH, "仍在告警：gpu-07 的 GPU 3（任务 qwen7b）：gpu_memory_high，90 %"),
        ("escalation", ZH, "尚无人确认：gpu-07 的 GPU 3（任务 qwen7b）：gpu_memory_high，90 %"),
    ],
)
def test_a_title_says_why_the_message_comes(kind: NoticeKind, frame: Frame, title: str) -> None:
    assert compose(told(transition(3), kind=kind), frame).title == title


@pytest.mark.parametrize(
    ("kind", "frame", "note"),
    [
        ("repeat", EN, "It began 15 min ago and has not ended."),
        ("escalation", EN, "Nobody has acknowledged it since it began 15 min ago."),
        ("repeat", ZH, "开始于 15 分钟前，尚未结束。"),
        ("escalation", ZH, "自 15 分钟前开始以来，一直无人确认。"),
    ],
)
def test_what_goes_on_says_for_how_long(kind: NoticeKind, frame: Frame, note: str) -> None:
    assert compose(told(transition(3), kind=kind), frame).notes == (note,)


def test_a_message_says_who_takes_care_until_it_is_over() -> None:
    assert compose(told(transition(3, acknowledged=ANN)), EN).notes == ("Acknowledged by ann: looking at it",)
    assert compose(told(transition(3, acknowledged=ANN)), ZH).notes == ("ann 已确认：looking at it",)
    over = transition(3, acknowledged=ANN, state="resolved")
    assert compose(told(over, kind="resolved"), EN).notes == ()


def test_a_resolved_message_says_how_long_it_lasted_and_what_became_of_it() -> None:
    one = transition(3, state="resolved", at=START + 720, outcome=HAPPENED, reason="run ended", causes=(LEAK,))
    said = compose(told(one, kind="resolved"), EN)
    assert (said.sign, said.title) == ("✅", "Resolved: gpu_memory_high on GPU 3 of gpu-07 (run qwen7b), after 12 min")
    assert said.context == (
        "Warning",
        "Resolved after 12 min",
        "What became of it: it happened, 12 min after the alert",
        "Reason: the run ended",
    )
    assert (said.description, said.cause, said.advice) == ("", None, ())
    assert "结果：已发生（告警后 12 分钟）" in compose(told(one, kind="resolved"), ZH).context


def test_several_rules_in_one_message_are_counted_and_each_line_says_which() -> None:
    news = (transition(3), transition(None, alert="host_memory_high", severity="critical", value=0.97))
    said = compose(told(*news), EN)
    assert said.title == "2 alerts on GPU 3 of gpu-07 (run qwen7b)"
    assert said.subjects == ("gpu_memory_high gpu-07 GPU 3: 90 %", "host_memory_high gpu-07: 97 %")
    assert said.sign == "🔴"
    assert compose(told(*news), ZH).title == "gpu-07 的 GPU 3（任务 qwen7b）：2 个告警"


def test_of_several_rules_the_gravest_tells_the_story() -> None:
    news = (transition(3, value=0.99), transition(None, severity="critical", value=0.5, alert="host_memory_high"))
    assert compose(told(*news), EN).summary == "Worst of them: GPU None of gpu-07 is nearly full"


def test_where_some_are_over_the_title_tells_of_those_that_fire() -> None:
    news = (transition(3, state="resolved", at=START + 720), transition(4, value=0.95))
    said = compose(told(*news), EN)
    assert said.title == "gpu_memory_high on GPU 4 of gpu-07 (run qwen7b): 95 %"
    assert said.subjects == ("gpu-07 GPU 3: Resolved after 12 min", "gpu-07 GPU 4: 95 %")


def test_what_was_worked_out_for_the_run_takes_the_place_of_the_rules_advice() -> None:
    assert compose(told(transition(3, remedies=(RESTART,))), EN).advice == (
        Step("Start again from a checkpoint.", "trainer.save_freq=20"),
    )
    assert compose(told(transition(3)), EN).advice[0] == Step("Lower gpu_memory_utilization.")


def test_a_failed_channel_is_told_with_why_since_when_and_what_to_do() -> None:
    said = compose(channel_notice(), EN)
    assert (said.sign, said.title) == ("🔴", "Notification channel team does not deliver")
    assert said.summary == "What it said last: no_service"
    assert said.description == "The last message arrived 15 min ago.\nMessages that wait: 3\nMessages given up: 2"
    assert [step.what for step in said.advice] == [
        "Mend the channel in alerts.yaml, or its secret.",
        "Try it: oomwatch test-notify team",
    ]
    assert said.since == START
    assert compose(channel_notice(), ZH).title == "通知渠道 team 无法送达"


def test_a_channel_that_works_again_is_told_in_a_line() -> None:
    said = compose(channel_notice(state="resolved"), EN)
    assert (said.sign, said.title) == ("✅", "Notification channel team delivers again")
    assert said.advice == ()


UNTIL_SIX = wire.Mute(kind="silence", by="s1", until=START, note="reindex")
ACT = wire.Act(act="stacks", at=START, node="gpu-07", ok=True)


@pytest.mark.parametrize(
    ("news", "english", "chinese"),
    [
        (
            transition(change="acknowledged", acknowledged=ANN),
            "Acknowledged by ann: looking at it",
            "ann 已确认：looking at it",
        ),
        (transition(change="acknowledged"), "Nobody takes care of it any more", "已取消确认，目前无人处理"),
        (
            transition(change="muted", muted=(UNTIL_SIX,)),
            "Muted by a silence, until 2023-11-14 22:13 UTC: reindex",
            "已因静默规则静音，直到 2023-11-14 22:13 UTC：reindex",
        ),
        (
            transition(change="muted", muted=(wire.Mute(kind="quiet_hours", by="night"),)),
            "Muted by the quiet hours night",
            "已因免打扰时段 night 静音",
        ),
        (
            transition(change="muted", muted=(wire.Mute(kind="maintenance", by="rack 7"),)),
            "Muted by the maintenance window rack 7",
            "已因维护窗口 rack 7 静音",
        ),
        (
            transition(change="muted", muted=(wire.Mute(kind="inhibited", by="a2"),)),
            "Muted by a graver alert",
            "已被更严重的告警抑制",
        ),
        (transition(change="muted"), "No longer muted", "已解除静音"),
        (
            transition(change="severity", severity="info", lowered_from="warning"),
            "Tight but steady: Info from now on",
            "紧张但稳定：此后级别为“提示”",
        ),
        (transition(change="severity", severity="critical"), "Critical from now on", "此后级别为“严重”"),
        (transition(change="outcome", outcome=AVOIDED), "What became of it: avoided", "结果：已避免"),
        (transition(3), "gpu-07 GPU 3: 90 %", "gpu-07 GPU 3：90 %"),
    ],
)
def test_each_change_is_one_line(news: wire.Transition, english: str, chinese: str) -> None:
    assert changes(told(news, kind="update"), "en") == (english,)
    assert changes(told(news, kind="update"), "zh") == (chinese,)


def test_what_was_done_on_a_node_is_a_change_too() -> None:
    assert changes(told(transition(change="acts", acts=(ACT,)), kind="update"), "en") == ("Stacks: done on gpu-07",)


def test_the_same_change_of_many_alerts_is_said_once() -> None:
    news = [transition(gpu, change="acknowledged", acknowledged=ANN) for gpu in range(64)]
    assert changes(told(*news, kind="update"), "en") == ("Acknowledged by ann: looking at it",)
