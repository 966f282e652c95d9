"""All scenarios, how often each is drawn, and how a run is made of one."""

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from bench.warnings import failing_sudden, failing_trends, healthy
from bench.warnings.draft import Draft, OutOfReachError
from bench.warnings.simulate import Story, simulate
from bench.warnings.spec import Spec

ATTEMPTS = 60
FIRST_STEPS = 3
Scenario = Callable[[Draft], Spec]

# Tuning is done on one range of seeds, reporting on another: no seed is in both.
TUNING_SEEDS = range(1_000_000)
REPORTING_SEEDS = range(1_000_000, 2_000_000)

_WEIGHTS: dict[Scenario, int] = {
    healthy.roomy: 5, healthy.tight: 6, healthy.packed: 6, healthy.packed_rollout: 3, healthy.dynamic: 3,
    healthy.spikes: 4, healthy.plateau: 6, healthy.restarts: 4, healthy.tenant_constant: 3, healthy.noisy_lengths: 5,
    healthy.warm_up: 5, healthy.fragmentation_saturates: 4, healthy.few_retries: 2, healthy.host_cache: 4,
    healthy.host_full: 3, healthy.kv_pressure: 2, healthy.awake: 2, healthy.critic: 3, healthy.lora: 2,
    healthy.reward_model: 2, healthy.cap_far_off: 2,
    failing_trends.leak_slow: 7, failing_trends.leak_fast: 5, failing_trends.leak_when_full: 4,
    failing_trends.residue_fast: 3, failing_trends.residue_slow: 5, failing_trends.length_growth: 8,
    failing_trends.fragmentation: 5, failing_trends.other_process_grows: 4, failing_trends.checkpoint_kept: 3,
    failing_trends.sync_kept: 3, failing_trends.imbalance: 3,
    failing_trends.driver_grows: 5, failing_trends.worker_grows: 4, failing_trends.pinned_grows: 3,
    failing_trends.engine_copies: 3, failing_trends.object_store: 4, failing_trends.disk_spill: 3,
    failing_sudden.log_prob_first: 2, failing_sudden.entropy_first: 2, failing_sudden.update_first: 2,
    failing_sudden.critic_first: 2, failing_sudden.switch_first: 2, failing_sudden.kv_first: 2,
    failing_sudden.reward_first: 1, failing_sudden.host_first: 1,
    failing_sudden.longest_update: 4, failing_sudden.longest_log_prob: 4,
    failing_sudden.longest_update_no_checkpointing: 2, failing_sudden.longest_critic: 2,
    failing_sudden.switch_tail: 3, failing_sudden.other_process_arrives: 2, failing_sudden.checkpoint_first: 2,
}  # fmt: skip
SCENARIOS: dict[str, Scenario] = {_name: _one for _one in _WEIGHTS for _name in [_one.__name__]}


class Made(NamedTuple):
    spec: Spec
    story: Story  # with its own configuration


def names_for(seeds: range) -> list[str]:
    """The scenario of each seed."""
    names, weights = list(SCENARIOS), list(_WEIGHTS.values())
    return [Random(f"{seed}/scenario").choices(names, weights)[0] for seed in seeds]


def make(scenario: str, seed: int) -> Made:
    """The run of a seed. Drafts that do not end as the scenario means are thrown away: what is left is true by physics.

    Raises RuntimeError where no draft does, which is a defect of the scenario.
    """
    for attempt in range(ATTEMPTS):
        try:
            spec = SCENARIOS[scenario](Draft(scenario, seed, attempt))
        except OutOfReachError:
            continue
        story = simulate(spec)
        if _ends_as_meant(spec, story):
            return Made(spec, story)
    raise RuntimeError(f"{scenario}, seed {seed}: no draft of {ATTEMPTS} ends as the scenario says")


def _ends_as_meant(spec: Spec, story: Story) -> bool:
    ending = story.ending
    if ending is None or spec.family == "healthy":
        return (ending is None) == (spec.family == "healthy")
    if spec.family == "first_step":
        return ending.step <= FIRST_STEPS
    on_host = ending.kind in ("host", "disk")
    meant = on_host == (spec.family == "host")
    return meant and ending.step > spec.onset - (spec.family == "sudden") and ending.step > FIRST_STEPS
