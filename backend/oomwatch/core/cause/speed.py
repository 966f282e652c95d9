"""Causes of slowness: what makes a rollout long, and is no failure yet."""

from oomwatch.core.cause.finding import NONE, Finding, evidence, share
from oomwatch.core.facts import Facts

KV_FULL_RATIO = 0.9
LONGER_RATIO = 1.3
SLOWER_RATIO = 1.5
SURE, LIKELY = 0.9, 0.6


def kv_pressure(facts: Facts) -> Finding:
    """The KV cache is full: sequences wait, or are preempted and computed again."""
    used = facts.kv_used_ratio
    if used is None or used < KV_FULL_RATIO:
        return NONE
    seen = [evidence("kv_full", kv_used_ratio=used)]
    if facts.requests_waiting:
        seen.append(evidence("requests_waiting", requests=facts.requests_waiting))
    return Finding(LIKELY + (0.2 if facts.requests_waiting else 0.0), tuple(seen))


def longer_responses(facts: Facts) -> Finding:
    """The rollout is long rather than slow."""
    now, usual = (facts.verdict.get(f"{when}response_length_mean_tokens") for when in ("", "usual_"))
    if not isinstance(now, int | float) or not isinstance(usual, int | float) or not 0 < LONGER_RATIO * usual <= now:
        return NONE
    longer = evidence("length_jump", length_tokens=round(now), usual_length_tokens=round(usual))
    slower = facts.verdict.get("increase_ratio")
    explained = share(now / usual - 1, slower) if isinstance(slower, int | float) else 0.5
    return Finding(SURE * explained, (longer,))


def slow_reward(facts: Facts) -> Finding:
    """The articles' case: the reward model ran out of memory and fell back to the CPU."""
    now, usual = facts.reward_seconds, facts.reward_before_seconds
    if now is None or not usual or now < SLOWER_RATIO * usual:
        return NONE
    return Finding(LIKELY, (evidence("reward_slow", reward_seconds=now, usual_seconds=usual),))
