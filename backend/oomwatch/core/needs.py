"""What has to be freed for a run to be safe, and what a phase will take at its longest."""

from collections.abc import Sequence

from msgspec import structs

from oomwatch.core.facts import LENGTH_DRIVEN, Facts, PhaseFacts, number
from oomwatch.core.verdict import Verdict

FULL_RATIO = 0.95  # of the card: above it a longer batch or a fragment is enough
WORK_SHARE = 0.6
HORIZON_STEPS = 50  # what is asked of a change: to hold for so many steps more, and twice as long as without it


def with_needs(facts: Facts, verdict: Verdict) -> Facts:
    """The same facts with what has to be freed: to fit what failed, what is coming, or below the rule's limit."""
    capacity, oom = facts.capacity_bytes, facts.oom
    if capacity is None or facts.peak_bytes is None:
        return facts
    top = facts.top_phase
    active = work_of(top, facts.phases) if top else None
    if oom is not None and oom.tried_bytes is not None:
        short = max(0.0, oom.tried_bytes - (oom.free_bytes or 0.0)) + (1 - FULL_RATIO) * capacity
        return structs.replace(facts, active_bytes=max(active or 0.0, oom.tried_bytes), needed_bytes=short)
    each, highest = _growth(facts, facts.peak_bytes)
    limit = verdict.limit if verdict.unit == "ratio" and verdict.limit and verdict.limit <= 1 else None
    safe = capacity * (limit if limit is not None and each == 0 else FULL_RATIO)
    longest = _at_longest(facts)
    told = max(number(verdict.facts.get(name)) or 0.0 for name in ("level_bytes", "predicted_bytes"))
    left = max(0.0, capacity - highest) / each if each > 0 else None
    ahead = max(HORIZON_STEPS, 2 * left) if left is not None else 0.0
    expected = max(facts.peak_bytes, highest + each * ahead, longest.peak_bytes if longest else 0.0, told)
    return structs.replace(
        facts,
        active_bytes=work_of(longest, facts.phases) if longest else active,
        needed_bytes=max(0.0, expected - safe),
        steps_left=left,
    )


def _growth(facts: Facts, peak_bytes: float) -> tuple[float, float]:
    """By how much memory rises a step, and the peak that rises: the highest, or the one of a phase that grows alone."""
    common = max(facts.pace_bytes, facts.residue_pace_bytes)
    rising = max(facts.phases, key=lambda one: one.peak_rise_bytes, default=None)
    if common or rising is None or facts.length_rise_tokens > 0:
        return common, peak_bytes
    alone = rising.peak_rise_bytes >= facts.peak_rise_bytes / 2  # else it rises in a moment between them
    risen, highest = (rising.peak_rise_bytes, rising.peak_bytes) if alone else (facts.peak_rise_bytes, peak_bytes)
    return risen / max(1, facts.steps - 1), highest


def work_of(phase: PhaseFacts, phases: Sequence[PhaseFacts]) -> float:
    """What a phase allocates for its own work, in proportion to what a pass holds.

    At least what its peak is above its floor. But the allocator keeps what the first pass took, so that the floor may
    hold most of it already: then a share of what it is above the lowest phase, the rest of which are loaded states.
    """
    lowest = min((one.floor_bytes for one in phases), default=phase.floor_bytes)
    return max(phase.peak_bytes - phase.floor_bytes, WORK_SHARE * (phase.peak_bytes - lowest))


def _at_longest(facts: Facts) -> PhaseFacts | None:
    """The phase that would be the highest if responses were as long as they may be, where lengths drive it."""
    cap, usual = facts.settings.response_cap_tokens, facts.length_mean_tokens
    driven = facts.length_rise_tokens > 0 or "cap_tokens" in facts.verdict  # the rule looked at how long they may be
    if not cap or not usual or not driven:
        return None
    prompt = 0.5 * (facts.settings.prompt_cap_tokens or 0)
    longer = max(1.0, (cap + prompt) / (usual + prompt))
    if facts.settings.dynamic_batches:
        longer = 1.0  # a dynamic batch holds as many tokens as before, of fewer sequences
    grown = [
        one._replace(peak_bytes=one.peak_bytes + (longer - 1) * work_of(one, facts.phases))
        for one in facts.phases
        if one.phase in LENGTH_DRIVEN
    ]
    return max(grown, key=lambda one: one.peak_bytes, default=None)
