"""Which settings cut the batches of each phase: by number, or by tokens where dynamic batches are on.

The keys are verl's, 0.2 to 0.9. Phases are called as the engine calls them (core/phases.py).
"""

from typing import NamedTuple

from oomwatch.plan.settings import ACTOR, CRITIC, MODEL, REF, ROLLOUT


class PhaseKeys(NamedTuple):
    sequences: tuple[str, ...]  # a GPU; the first that is told counts
    sequences_of_all: str  # the deprecated setting, of all GPUs together
    dynamic: str
    tokens_max: str  # a GPU, where it is dynamic
    padding: str  # whether padding is removed
    is_update: bool = False  # cut from a mini batch; else from all that a step brings


# The phases whose memory follows the length of the responses. The rollout's is the engine's share, whatever the length.
PHASES: dict[str, PhaseKeys] = {
    "old_log_prob": PhaseKeys(
        (f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu",),
        f"{ROLLOUT}.log_prob_micro_batch_size",
        f"{ROLLOUT}.log_prob_use_dynamic_bsz",
        f"{ROLLOUT}.log_prob_max_token_len_per_gpu",
        f"{MODEL}.use_remove_padding",
    ),
    "ref": PhaseKeys(
        (f"{REF}.log_prob_micro_batch_size_per_gpu",),
        f"{REF}.log_prob_micro_batch_size",
        f"{REF}.log_prob_use_dynamic_bsz",
        f"{REF}.log_prob_max_token_len_per_gpu",
        f"{MODEL}.use_remove_padding",
    ),
    "values": PhaseKeys(
        (f"{CRITIC}.forward_micro_batch_size_per_gpu", f"{CRITIC}.ppo_micro_batch_size_per_gpu"),
        f"{CRITIC}.forward_micro_batch_size",
        f"{CRITIC}.use_dynamic_bsz",
        f"{CRITIC}.forward_max_token_len_per_gpu",
        f"{CRITIC}.model.use_remove_padding",
    ),
    "update_critic": PhaseKeys(
        (f"{CRITIC}.ppo_micro_batch_size_per_gpu",),
        f"{CRITIC}.ppo_micro_batch_size",
        f"{CRITIC}.use_dynamic_bsz",
        f"{CRITIC}.ppo_max_token_len_per_gpu",
        f"{CRITIC}.model.use_remove_padding",
        is_update=True,
    ),
    "update_actor": PhaseKeys(
        (f"{ACTOR}.ppo_micro_batch_size_per_gpu",),
        f"{ACTOR}.ppo_micro_batch_size",
        f"{ACTOR}.use_dynamic_bsz",
        f"{ACTOR}.ppo_max_token_len_per_gpu",
        f"{MODEL}.use_remove_padding",
        is_update=True,
    ),
}


def keys_of(phase: str) -> PhaseKeys:
    """Of a phase that is not known, the update's: it is the one that runs out of memory most often."""
    return PHASES.get(phase, PHASES["update_actor"])
