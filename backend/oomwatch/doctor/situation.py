"""An estimate as the situation that remedies are weighed by: what is measured of a live run is worked out here."""

from collections.abc import Iterator

from oomwatch import wire
from oomwatch.core.facts import Facts, PhaseFacts
from oomwatch.core.settings import settings_of
from oomwatch.doctor.case import Look, excess_of
from oomwatch.plan.memory import PhaseEstimate
from oomwatch.plan.memory.part import staying

_CAUSES = {
    "rollout": "rollout_kv_budget",
    "old_log_prob": "log_prob_micro_batch",
    "ref": "log_prob_micro_batch",
    "values": "critic_update",
    "update_critic": "critic_update",
    "update_actor": "actor_update",
    "update_weights": "weight_sync",
}
_WITH_LOGITS = ("old_log_prob", "ref", "update_actor")


def facts_of(look: Look, phase: PhaseEstimate) -> Facts:
    """The numbers that a live run would have measured."""
    return Facts(
        topic="device",
        phase=phase.phase,
        settings=settings_of(look.config),
        capacity_bytes=phase.capacity_bytes,
        peak_bytes=phase.high_bytes,
        phases=tuple(
            PhaseFacts(one.phase, one.expected_bytes, one.expected_bytes - work_of(one)) for one in look.phases
        ),
        active_bytes=work_of(phase),
        needed_bytes=min(excess_of(phase), phase.capacity_bytes),
    )


def causes_of(phase: PhaseEstimate) -> Iterator[wire.Cause]:
    """What makes a phase too large: its pass, or the logits in it, by their part of its work."""
    if phase.trouble is not None:
        yield wire.Cause(cause="kv_pressure", score=1.0, phase=phase.phase)
        return
    work = work_of(phase)
    logits = sum(part.bytes for part in phase.parts if part.name == "logits") / work if work else 0.0
    share = logits if phase.phase in _WITH_LOGITS else 0.0
    yield wire.Cause(cause=_CAUSES[phase.phase], score=1 - 0.5 * share, phase=phase.phase)
    if share:
        yield wire.Cause(cause="entropy_logits", score=share, phase=phase.phase)


def work_of(phase: PhaseEstimate) -> int:
    """What a phase takes for the tokens of one pass: what a smaller batch makes smaller."""
    return staying(phase.parts, "per_token")
