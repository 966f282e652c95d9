"""Transitions for the tests of notifications."""

from oomwatch import wire

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
    )


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
