"""Causes that are a phase's own demand: the phase that failed, that the rule names, or whose peak is highest.

The articles' rule of thumb is the first input: trouble in rollout -> the rollout's batch, in update -> the data batch,
in the critic -> the critic's batch. How near other phases come, and what the memory of a token says, are the others.
"""

from math import inf

from oomwatch import wire
from oomwatch.core.cause.finding import NONE, Finding, evidence, share
from oomwatch.core.cause.growth import GROWN_RATIO, RISE_RATIO_MIN, grows, kept_by_saving, risen, split
from oomwatch.core.facts import LENGTH_DRIVEN, Facts, PhaseFacts

NEAR_RATIO = 0.1  # of the card: a phase that peaks so much lower is not the one
STRONG = 0.85
WHILE_GROWING = 0.1  # where memory grows, the phase is only where it will end
OWN_RATIO = 0.5  # of a phase's rise: if other phases and longer responses explain less, it is the phase's own
SAME_PEAK_RATIO = 0.001
UNNAMED = 0.25  # of a phase that is near, while failure or rule name another
KV_SHARE_USUAL = 0.5  # verl's default; it advises 0.5 to 0.7
# Bytes a token. Logits of 151,936 words in 16 bit and their copies in 32 take 4 + 2 + 1 bytes a word and token, 1 MB;
# what a layer keeps of a token is 34 times the hidden size at most, 120 KB for 3,584.
LOGITS_TOKEN_BYTES = 400_000.0
ONE_LOGITS_TOKEN_BYTES = 100_000.0  # a single request: 64,000 words in 16 bit
LOG_PROB = ("old_log_prob", "ref")


def demand(facts: Facts, *phases: str) -> Finding:
    """How much one of these phases is where it is tight, from 0 to 1, with what says so."""
    named = facts.told_phase
    if named in phases:
        key = "phase_named" if facts.oom is None else "wake_up_failed" if facts.oom.is_wake_up else "phase_failed"
        return Finding(_weight(facts, named), (evidence(key, phase=named), *_peak(facts, named)), named)
    here = [one for one in facts.phases if one.phase in phases]
    top = max((one.peak_bytes for one in facts.phases), default=0.0)
    if not here or not facts.capacity_bytes:
        return NONE
    best = max(here, key=lambda one: one.peak_bytes)
    near = max(0.0, 1 - (top - best.peak_bytes) / (NEAR_RATIO * facts.capacity_bytes))
    if any(_is_its_own(facts, one) for one in here):
        best = max(here, key=lambda one: one.peak_rise_bytes)
        rising = evidence("phase_rises", phase=best.phase, peak_rise_bytes=best.peak_rise_bytes)
        return Finding(1.0, (rising, *_peak(facts, best.phase)), best.phase)
    weight = near * (UNNAMED if named else 1.0) * _weight(facts, best.phase)
    return Finding(weight, _peak(facts, best.phase), best.phase)


def _weight(facts: Facts, phase: str) -> float:
    own = any(_is_its_own(facts, one) for one in facts.phases if one.phase == phase)
    growth = share(risen(facts), GROWN_RATIO * (facts.capacity_bytes or float("inf")))
    return 1.0 if own else 1 - (1 - WHILE_GROWING) * growth


def _is_its_own(facts: Facts, phase: PhaseFacts) -> bool:
    """Whether this phase grows by itself: others do not as much, and responses do not get longer.

    Where it is the only one known, there is nothing that it could be told from.
    """
    sharing = [one.phase for one in facts.phases if _shares_peak(one, phase)]
    if "update_weights" in sharing and phase.phase != "update_weights":
        return False  # a pass that works on the same lengths does not grow by itself; what the switch keeps does
    others = max((one.peak_rise_bytes for one in facts.phases if one.phase not in sharing), default=inf)
    longer = facts.length_rise_tokens > 0 and phase.phase in LENGTH_DRIVEN
    common = max(others, split(facts).total_bytes)  # what stays in all phases may show in few of them
    enough = phase.peak_rise_bytes > 2 * RISE_RATIO_MIN * (facts.capacity_bytes or float("inf"))
    return enough and not longer and common < OWN_RATIO * phase.peak_rise_bytes


def _shares_peak(one: PhaseFacts, other: PhaseFacts) -> bool:
    """The same, or two that meet at a reading which counts for both."""
    return abs(one.peak_bytes - other.peak_bytes) <= SAME_PEAK_RATIO * other.peak_bytes


def _peak(facts: Facts, phase: str) -> tuple[wire.Evidence, ...]:
    known = next((one for one in facts.phases if one.phase == phase), None)
    if known is None or facts.capacity_bytes is None:
        return ()
    return (evidence("phase_peak", phase=phase, peak_bytes=known.peak_bytes, capacity_bytes=facts.capacity_bytes),)


def _scaled(finding: Finding, by: float, *more: wire.Evidence) -> Finding:
    return Finding(finding.score * by, (*finding.evidence, *more), finding.phase) if finding.score > 0 else NONE


def rollout_kv_budget(facts: Facts) -> Finding:
    kv_share = facts.settings.kv_share
    told = (evidence("kv_share", kv_share_ratio=kv_share),) if kv_share is not None else ()
    finding = demand(facts, "rollout")
    if finding.score == 0 and not facts.phases and facts.oom is None and kv_share is not None and not grows(facts):
        return Finding(0.5 * share(kv_share, KV_SHARE_USUAL), told)  # no step is known: the one thing that is certain
    likely = 0.8 if kv_share is None else 0.5 + 0.5 * share(kv_share - 0.2, KV_SHARE_USUAL - 0.2)
    return _scaled(finding, STRONG * likely, *told)


def log_prob_micro_batch(facts: Facts) -> Finding:
    batch = facts.settings.log_prob_micro_batch
    told = (evidence("log_prob_batch", micro_batch=batch),) if batch and not facts.settings.dynamic_batches else ()
    return _scaled(demand(facts, *LOG_PROB), STRONG * (1 - _logits(facts)), *told)


def actor_update(facts: Facts) -> Finding:
    batch = facts.settings.update_micro_batch
    told = (evidence("update_batch", micro_batch=batch),) if batch and not facts.settings.dynamic_batches else ()
    return _scaled(demand(facts, "update_actor"), STRONG * (1 - _logits(facts)), *told)


def entropy_logits(facts: Facts) -> Finding:
    """Tokens times vocabulary: either the phase takes so much a token, or the request that failed was as large."""
    finding = demand(facts, *LOG_PROB, "update_actor")
    token_bytes = _token_bytes(facts)
    more = [evidence("token_memory", token_kib=round(token_bytes / 1024))] if token_bytes else []
    if facts.settings.chunked_entropy is False and not facts.settings.fused_kernels:
        more.append(evidence("not_chunked"))
    return _scaled(finding, STRONG * _logits(facts), *more)


def critic_update(facts: Facts) -> Finding:
    if facts.settings.has_critic is False:
        return NONE
    return _scaled(demand(facts, "update_critic", "values"), STRONG)


def reward_model(facts: Facts) -> Finding:
    return _scaled(demand(facts, "reward"), STRONG)


def weight_sync(facts: Facts) -> Finding:
    """At the switch, residue, trainer, the rollout's weights and the buffers that carry them are there at once."""
    if facts.told_phase in (None, "update_weights") and _peaks_between(facts):
        highest = max(one.peak_bytes for one in facts.phases)
        seen = evidence("peak_between", peak_bytes=facts.peak_bytes, highest_bytes=highest)
        return Finding(STRONG, (seen,), "update_weights")
    return _scaled(demand(facts, "update_weights"), STRONG)


def _peaks_between(facts: Facts) -> bool:
    """Whether the step peaks higher than all its phases that are long enough to be read, and that peak alone grows."""
    if not facts.phases or not facts.capacity_bytes or facts.peak_bytes is None:
        return False
    enough = RISE_RATIO_MIN * facts.capacity_bytes
    above = facts.peak_bytes - max(one.peak_bytes for one in facts.phases)
    shown = max(*(one.peak_rise_bytes for one in facts.phases), split(facts).total_bytes)
    return above > enough and facts.peak_rise_bytes > 2 * enough and shown < OWN_RATIO * facts.peak_rise_bytes


def checkpoint_spike(facts: Facts) -> Finding:
    """It does not fit beside the rest, or each one leaves something behind."""
    parts = split(facts)
    left = kept_by_saving(facts) * (parts.kept or 0.0)
    if left > 0 and parts.total_bytes > RISE_RATIO_MIN * (facts.capacity_bytes or inf):
        seen = evidence(
            "rises_with_saving", saved_ratio=round(facts.saved_share, 2), floor_rise_bytes=parts.total_bytes
        )
        return Finding(STRONG * left, (seen,), "save_checkpoint")
    return _scaled(demand(facts, "save_checkpoint"), STRONG)


def _token_bytes(facts: Facts) -> float | None:
    """What one token of a micro batch costs in the log-prob pass, where nothing is stored for a backward pass."""
    known = [one for one in facts.phases if one.phase in LOG_PROB]
    tokens = facts.settings.micro_batch_tokens("old_log_prob")
    if not known or not tokens:
        return None
    return max(one.peak_bytes - one.floor_bytes for one in known) / tokens


def _logits(facts: Facts) -> float:
    """How likely it is that logits are what fills a phase."""
    if facts.settings.chunked_entropy or facts.settings.fused_kernels:
        return 0.05
    tokens = facts.settings.micro_batch_tokens(facts.named_phase or "old_log_prob")
    if facts.oom is not None and facts.oom.tried_bytes and tokens:
        return 0.7 if facts.oom.tried_bytes / tokens >= ONE_LOGITS_TOKEN_BYTES else 0.15
    token_bytes = _token_bytes(facts)
    if token_bytes is None:
        return 0.3
    return 0.1 + 0.6 * share(token_bytes, LOGITS_TOKEN_BYTES) ** 2
