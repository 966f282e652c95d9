"""Fleets of which something is foreseen: cards, hosts and disks that will be full, with people taking care of some."""

import msgspec
from tests.browser import scenes

from oomwatch import wire

GIB = scenes.GIB


def _when(kind: str) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode({"kind": kind}))


RULES = (
    *scenes.RULES,
    wire.Rule(
        alert="memory_forecast",
        severity="warning",
        scope="gpu",
        for_seconds=0,
        keep_firing_for_seconds=0,
        when=(_when("forecast"),),
    ),
)


def card(
    at: float, node: str, gpu: str, seconds: float, steps: int | None = None, severity: wire.Severity = "warning"
) -> wire.Alert:
    """The forecast that a GPU will be full."""
    said = scenes.alert(
        at,
        key=f"f-{node}-{gpu}",
        severity=severity,
        labels={"node": node, "gpu": gpu, "run": scenes.RUN},
        english=f"GPU {gpu} of {node} will be full in about {seconds / 60:.0f} min",
        chinese=f"{node} 的 GPU {gpu} 约 {seconds / 60:.0f} 分钟后显存耗尽",
    )
    facts: dict[str, wire.Fact] = {"eta_seconds": seconds, "phase": "update_actor", "usable_bytes": 79 * GIB}
    if steps is not None:
        facts["eta_steps"] = steps
    return msgspec.structs.replace(
        said, alert="memory_forecast", value=seconds, limit=1800.0, unit="seconds", facts=facts
    )


def host(at: float, node: str, seconds: float) -> wire.Alert:
    """The forecast that a node's host memory will be at 95 %."""
    return msgspec.structs.replace(
        card(at, node, "0", seconds),
        id=f"f-{node}",
        alert="host_memory_forecast",
        labels={"node": node},
        facts={"eta_seconds": seconds, "until_ratio": 0.95, "limit_bytes": 1024 * GIB},
    )


def disk(at: float, node: str, seconds: float, path: str = "/mnt/spill") -> wire.Alert:
    """The forecast that the disk which Ray spills to will be full."""
    facts: dict[str, wire.Fact] = {
        "eta_seconds": seconds,
        "path": path,
        "used_bytes": 800 * GIB,
        "limit_bytes": 1000 * GIB,
    }
    return msgspec.structs.replace(host(at, node, seconds), id=f"f-{node}-disk", alert="spill_disk", facts=facts)


def fleet(at: float) -> wire.Snapshot:
    """The troubled fleet, of which three cards, a host and a disk run out; one is taken care of, and one is muted."""
    before = scenes.troubled(at)
    replace = msgspec.structs.replace
    taken = replace(card(at, "gpu-03", "1", 5400), acknowledged=wire.Acknowledgement(by="ada", at=at - 60))
    muted = replace(card(at, "gpu-03", "4", 3000), muted=(wire.Mute(kind="silence", by="s1"),))
    alerts = (
        *before.alerts,
        card(at, "gpu-01", "2", 840, 6, "critical"),
        card(at, "gpu-01", "4", 1500, 12),
        host(at, "gpu-04", 10800),
        disk(at, "gpu-01", 2400),
        taken,
        muted,
    )
    return replace(before, alerts=alerts, rules=RULES)
