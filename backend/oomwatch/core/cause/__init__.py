"""From facts to a ranked list of causes. Each cause is one small function; this is the list of them.

Scores are weighed against each other, so that an alert's causes add up to 1 at most. What a rule measures and nothing
else (`told_by`) is certain once it fires, but as far as another cause leads to it (`unless`); the others stay as what
may lie behind it.
"""

from math import floor

from oomwatch import wire
from oomwatch.core.cause import growth, host, phases, speed
from oomwatch.core.cause.finding import Finding, Hypothesis, evidence
from oomwatch.core.facts import Facts

CAUSES_MAX = 4
SCORE_MIN = 0.1
EVIDENCE_MAX = 4
TOLD_SCORE = 0.9

HYPOTHESES = (
    Hypothesis("rollout_kv_budget", ("device",), phases.rollout_kv_budget),
    Hypothesis("log_prob_micro_batch", ("device",), phases.log_prob_micro_batch),
    Hypothesis("entropy_logits", ("device",), phases.entropy_logits),
    Hypothesis("actor_update", ("device",), phases.actor_update),
    Hypothesis("critic_update", ("device",), phases.critic_update),
    Hypothesis("reward_model", ("device",), phases.reward_model),
    Hypothesis(
        "weight_sync", ("device", "switch"), phases.weight_sync, told_by=("reshard_cycles", "reshard_step_ratio")
    ),
    Hypothesis("sleep_residue", ("device",), growth.sleep_residue),
    Hypothesis("fragmentation", ("device",), growth.fragmentation, told_by=("fragmentation",)),
    Hypothesis("leak", ("device",), growth.leak),
    Hypothesis("length_growth", ("device",), growth.length_growth),
    Hypothesis(
        "longest_batch", ("device",), growth.longest_batch, told_by=("worst_case",), unless=growth.leads_to_longest
    ),
    Hypothesis("imbalance", ("device",), growth.imbalance, told_by=("imbalance",)),
    Hypothesis("other_process", ("device",), growth.other_process),
    Hypothesis("checkpoint_spike", ("device",), phases.checkpoint_spike),
    Hypothesis("host_offload", ("host",), host.host_offload),
    Hypothesis("engine_host_copies", ("host",), host.engine_host_copies),
    Hypothesis("driver_process", ("host",), host.driver_process),
    Hypothesis("host_leak", ("host",), host.host_leak),
    Hypothesis("object_store", ("host", "disk"), host.object_store, told_by=("shm_small",)),
    Hypothesis("disk_spill", ("disk",), host.disk_spill),
    Hypothesis("kv_pressure", ("speed",), speed.kv_pressure, told_by=("kv_pressure",)),
    Hypothesis("length_growth", ("speed",), speed.longer_responses, told_by=("lengths",)),
    Hypothesis("reward_model", ("speed",), speed.slow_reward),
)


def rank(facts: Facts) -> tuple[wire.Cause, ...]:
    """What is probably behind an alert, most likely first: at most four, and none below SCORE_MIN. May be empty."""
    found = [(one.cause, _judged(one, facts)) for one in HYPOTHESES if facts.topic in one.topics]
    total = max(1.0, sum(finding.score for _, finding in found))
    causes = [_cause(cause, finding, facts, total) for cause, finding in found if finding.score / total >= SCORE_MIN]
    return tuple(sorted(causes, key=lambda one: -one.score)[:CAUSES_MAX])


def _judged(hypothesis: Hypothesis, facts: Facts) -> Finding:
    finding = hypothesis.judge(facts)
    if facts.watched not in hypothesis.told_by:
        return finding
    seen = (*finding.evidence, evidence("rule_measures"))
    certain = 1.0 - hypothesis.unless(facts)
    return Finding(2 * max(TOLD_SCORE, finding.score) * certain, seen, finding.phase or facts.phase)


def _cause(cause: str, finding: Finding, facts: Facts, total: float) -> wire.Cause:
    return wire.Cause(
        cause=cause,
        score=floor(1000 * finding.score / total) / 1000,
        phase=finding.phase or (facts.named_phase if facts.topic == "device" else None),
        evidence=finding.evidence[:EVIDENCE_MAX],
    )
