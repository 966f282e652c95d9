"""Transitions for the tests of notifications."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from oomwatch import wire
from oomwatch.core.rule import severity_of
from oomwatch.notify.grouping import told_labels
from oomwatch.notify.notice import Notice, NoticeKind
from oomwatch.notify.pool import Pool
from oomwatch.notify.route import Router, Timing

START = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC


def transition(
    gpu: int | None = 0,
    *,
    state: wire.AlertState = "firing",
    alert: str = "gpu_memory_high",
    severity: wire.Severity = "warning",
    node: str | None = "gpu-07",
    run: str | None = "qwen7b",
    at: float = START + 30,
    started_at: float = START,
    value: float | None = 0.9,
    limit: float | None = 0.85,
    unit: str | None = "ratio",
    simulated: bool = False,
    reason: wire.TransitionReason | None = None,
    facts: dict[str, wire.Fact] | None = None,
    texts: dict[str, wire.AlertText] | None = None,
    causes: tuple[wire.Cause, ...] = (),
    remedies: tuple[wire.Remedy, ...] = (),
    change: wire.TransitionChange = "state",
    outcome: wire.Outcome | None = None,
    muted: tuple[wire.Mute, ...] = (),
    acknowledged: wire.Acknowledgement | None = None,
    acts: tuple[wire.Act, ...] = (),
    lowered_from: wire.Severity | None = None,
) -> wire.Transition:
    """A GPU (by default 0 of gpu-07 in run qwen7b) whose memory is 90 % full."""
    subject = {"node": node, "gpu": None if gpu is None else str(gpu), "run": run}
    labels = {name: text for name, text in subject.items() if text is not None}
    return wire.Transition(
        id=f"{alert}-{severity}-{node}-{gpu}-{started_at:.0f}",
        alert=alert,
        severity=severity,
        state=state,
        at=at,
        started_at=started_at,
        labels=labels,
        value=value,
        limit=limit,
        unit=unit,
        facts=facts or {},
        reason=reason,
        texts=_texts(gpu, node) if texts is None else texts,
        simulated=simulated,
        causes=causes,
        remedies=remedies,
        change=change,
        outcome=outcome,
        muted=muted,
        acknowledged=acknowledged,
        acts=acts,
        lowered_from=lowered_from,
    )


def notice(news: Iterable[wire.Transition], *, now: float = START + 60) -> Notice:
    """The one message that tells of these."""
    pool = Pool("ops", severity="info", send_resolved=True, edits=False)
    for one in news:
        (target,) = Router(None, ["ops"], Timing(0.0, 0.0, 0.0)).targets(told_labels(one))
        if one.state == "resolved":
            pool.recall(msgspec.structs.replace(one, state="firing", at=one.started_at, reason=None), target, now, None)
        pool.add(one, target, now, 0.0)
    [(message, _)] = pool.take(now, now)
    return message


def told(*news: wire.Transition, kind: NoticeKind = "firing", now: float = START + 900) -> Notice:
    """A message of any kind, of alerts that need not have anything in common."""
    severity = max((severity_of(one) for one in news), key=wire.SEVERITIES.index)
    runs = {one.labels.get("run") for one in news}
    run = runs.pop() if len(runs) == 1 else None
    return Notice(
        id=f"msg_{kind}",
        kind=kind,
        incident="i1",
        made_at=now,
        labels={} if run is None else {"run": run},
        severity=severity,
        state="resolved" if kind == "resolved" else "firing",
        news=news,
        everything=news,
        simulated=any(one.simulated for one in news),
    )


def channel_notice(*, state: Literal["firing", "resolved"] = "firing", error: str = "no_service") -> Notice:
    """That the channel "team" has failed five minutes ago, or works again."""
    return Notice(
        id="msg_channel",
        kind="channel",
        incident="channel-team",
        made_at=START + 900,
        labels={"channel": "team"},
        severity="critical",
        state=state,
        news=(),
        channel=wire.ChannelState(
            name="team",
            kind="slack",
            health="failed" if state == "firing" else "ok",
            waiting=3,
            failed_total=2,
            last_success_at=START,
            last_error_at=START + 600,
            last_error=error,
        ),
    )


# A section of alerts.yaml of each kind, with nothing but what it needs.
SECTIONS: dict[str, dict[str, object]] = {
    "alertmanager": {"kind": "alertmanager", "name": "d", "url": "http://127.0.0.1:9"},
    "apprise": {"kind": "apprise", "name": "e", "url": "json://127.0.0.1:9/hook"},
    "slack": {"kind": "slack", "name": "a", "url": "http://127.0.0.1:9/hook"},
    "slack_bot": {"kind": "slack_bot", "name": "b", "channel": "C1234", "token": "xoxb-1"},
    "webhook": {"kind": "webhook", "name": "c", "url": "http://127.0.0.1:9/hook"},
}

LEAK = wire.Cause(
    cause="leak",
    score=0.8,
    texts={"en": "A leak", "zh": "泄漏"},
    evidence=(
        wire.Evidence(key="floors_rise", texts={"en": "all phases gained 9 GiB", "zh": "各阶段都增加 9 GiB"}),
        wire.Evidence(key="allocated_rises", texts={"en": "torch allocated 8 GiB more", "zh": "torch 多分配 8 GiB"}),
    ),
)
RESTART = wire.Remedy(
    remedy="restart_periodically",
    cause="leak",
    key="trainer.save_freq",
    value_to=20,
    override="trainer.save_freq=20",
    texts={"en": "Start again from a checkpoint.", "zh": "从检查点重启。"},
)
LOOK = wire.Remedy(remedy="find_what_is_kept", cause="leak", texts={"en": "Find what is kept.", "zh": "查找残留。"})


def _texts(gpu: int | None, node: str | None) -> dict[str, wire.AlertText]:
    return {
        "en": wire.AlertText(
            summary=f"GPU {gpu} of {node} is nearly full",
            description="The peak of every step comes closer to the limit.",
            advice=("Lower gpu_memory_utilization.", "Use smaller micro batches."),
        ),
        "zh": wire.AlertText(
            summary=f"{node} 的 GPU {gpu} 显存即将用尽",
            description="每一步的峰值都更接近上限。",
            advice=("降低 gpu_memory_utilization。",),
        ),
    }
