"""A fleet in trouble that people have begun to handle: 64 GPUs of a run at once, silences, channels that fail."""

import msgspec
from tests.browser import scenes

from oomwatch import wire

NODES = 8
replace = msgspec.structs.replace


def silence(at: float) -> wire.Silence:
    return wire.Silence(
        id="s-4f1c2a9e07b3",
        matchers=(
            wire.Matcher(label="alert", value="gpu_memory_high"),
            wire.Matcher(label="node", op="=~", value="gpu-0[78]"),
            wire.Matcher(label="severity", op="!=", value="critical"),
        ),
        starts_at=at - 600,
        ends_at=at + 6600,
        created_by="wei",
        created_at=at - 600,
        note="new cards are being burnt in",
    )


def channels(at: float) -> tuple[wire.ChannelState, ...]:
    return (
        wire.ChannelState(name="team", kind="slack", delivered_total=41, last_success_at=at - 280),
        wire.ChannelState(
            name="pager",
            kind="webhook",
            health="failing",
            waiting=2,
            retries_total=3,
            last_success_at=at - 7200,
            last_error_at=at - 20,
            last_error="the receiver answered 503",
        ),
        wire.ChannelState(
            name="boss",
            kind="slack_webhook",
            health="failed",
            failed_total=4,
            last_error_at=at - 200,
            last_error="Slack answered 404: no_service",
        ),
    )


def _tight(at: float, number: int) -> wire.Alert:
    node, gpu = f"gpu-{1 + number // 8:02d}", str(number % 8)
    used = 96 + (number * 7 % 30) / 10
    made = scenes.alert(
        at,
        key=f"n{number}",
        severity="critical",
        labels={"node": node, "gpu": gpu, "run": scenes.RUN},
        english=f"GPU {gpu} of {node}: {used:.0f} % of its memory is in use",
        chinese=f"{node} 的 GPU {gpu}：显存已用 {used:.0f} %",
    )
    return replace(made, value=used / 100, started_at=at - 320 + number, causes=scenes.CAUSES)


def _muted(at: float, key: str, node: str, mute: wire.Mute) -> wire.Alert:
    made = scenes.alert(
        at,
        key=key,
        severity="warning",
        labels={"node": node, "gpu": "1"},
        english=f"GPU 1 of {node}: 88 % of its memory is in use",
        chinese=f"{node} 的 GPU 1：显存已用 88 %",
    )
    return replace(made, value=0.88, limit=0.85, muted=(mute,))


def _taken(at: float) -> wire.Alert:
    made = scenes.alert(
        at,
        key="host",
        severity="warning",
        labels={"node": "gpu-03"},
        english="gpu-03: 90 % of the container's host memory is in use",
        chinese="gpu-03：主机内存（容器）已用 90 %",
    )
    word = wire.Acknowledgement(by="wei", at=at - 120, note="moving the data loader")
    return replace(made, alert="host_memory_high", value=0.9, limit=0.88, acknowledged=word)


def fleet(at: float) -> wire.Snapshot:
    """Eight nodes of one run, all of whose GPUs are nearly full."""
    views = tuple(scenes.node(number, at, level=0.7) for number in range(1, NODES + 1))
    made = silence(at)
    muted = (
        _muted(at, "m1", "gpu-07", wire.Mute(kind="silence", by=made.id, until=made.ends_at, note=made.note)),
        _muted(at, "m2", "gpu-08", wire.Mute(kind="inhibited", by="n56", note="gpu_memory_high")),
        _muted(at, "m3", "gpu-04", wire.Mute(kind="quiet_hours", by="night", until=at + 30000)),
    )
    upcoming = replace(
        made,
        id="s-later",
        matchers=(wire.Matcher(label="run", value="llama8b_ppo"),),
        starts_at=at + 86400,
        ends_at=at + 90000,
        created_by="ada",
        note=None,
    )
    return wire.Snapshot(
        at=at,
        server=scenes.SERVER,
        nodes=views,
        runs=(scenes.run(at, tuple(view.node for view in views)),),
        alerts=(*(_tight(at, number) for number in range(64)), _taken(at), *muted),
        rules=scenes.RULES,
        silences=(made, upcoming),
        channels=channels(at),
    )


def mixed(at: float) -> wire.Snapshot:
    """Everything that a page can show at once: every trouble, and what people did about some of it."""
    handled = fleet(at)
    troubled = scenes.troubled(at)
    few = tuple(one for one in handled.alerts if not one.id.startswith("n"))
    return replace(troubled, alerts=troubled.alerts + few, silences=handled.silences, channels=handled.channels)
