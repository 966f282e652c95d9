"""Runs that die in their first steps, or later at one stroke: only arithmetic can see them come."""

from bench.warnings.draft import Draft
from bench.warnings.memory import resident_of
from bench.warnings.nature import Growth
from bench.warnings.settings import ACTOR, CRITIC, MODEL, ROLLOUT
from bench.warnings.shapes import QWEN_3B
from bench.warnings.spec import Spec

TOO_MUCH = (1.04, 1.3)  # of the card, at a usual batch


def _elsewhere(draft: Draft, but: str) -> None:
    """All phases but one fit well."""
    draft.fill_all(draft.dice.uniform(0.6, 0.8), rollout=draft.dice.uniform(0.6, 0.82), but=(but,))


def _too_much(draft: Draft, phase: str) -> None:
    draft.fill(phase, draft.dice.uniform(*TOO_MUCH), median=draft.nature.lengths.start)


def log_prob_first(draft: Draft) -> Spec:
    """A log-probability micro batch that never fits."""
    _elsewhere(draft, "old_log_prob")
    _too_much(draft, "old_log_prob")
    return draft.spec("first_step", "log_prob_micro_batch", alike=("entropy_logits",))


def entropy_first(draft: Draft) -> Spec:
    """The update holds the logits of too many tokens."""
    _elsewhere(draft, "update_actor")
    _too_much(draft, "update_actor")
    return draft.spec("first_step", "entropy_logits", alike=("actor_update",))


def update_first(draft: Draft) -> Spec:
    """Activations of an update without checkpointing."""
    draft.config |= {f"{MODEL}.enable_gradient_checkpointing": False, f"{MODEL}.use_fused_kernels": True}
    _elsewhere(draft, "update_actor")
    _too_much(draft, "update_actor")
    return draft.spec("first_step", "actor_update")


def critic_first(draft: Draft) -> Spec:
    """The critic's update does not fit."""
    draft.with_critic()
    draft.config |= {f"{CRITIC}.model.enable_gradient_checkpointing": False}
    _elsewhere(draft, "update_critic")
    _too_much(draft, "update_critic")
    return draft.spec("first_step", "critic_update")


def switch_first(draft: Draft) -> Spec:
    """The first wake-up: weights, buckets, and a pool that does not wait."""
    draft.config |= {f"{ROLLOUT}.multi_stage_wake_up": False}
    draft.config |= {f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes": draft.dice.choice((2048, 4096))}
    _elsewhere(draft, "update_weights")
    _rollout_beside(draft, "update_weights")
    return draft.spec("first_step", "weight_sync", alike=("rollout_kv_budget",))


def _rollout_beside(draft: Draft, phase: str) -> None:
    """The smallest share for the engine with which `phase` does not fit."""
    key = f"{ROLLOUT}.gpu_memory_utilization"
    for hundredths in range(30, 92):
        draft.config[key] = hundredths / 100
        if draft.fixed_bytes(phase) > 1.01 * draft.card.usable_bytes:
            return


def kv_first(draft: Draft) -> Spec:
    """The engine's share leaves too little for what the trainer keeps: the optimizer's states come with step 1."""
    draft.config |= {f"{ACTOR}.fsdp_config.optimizer_offload": False, f"{ACTOR}.fsdp_config.param_offload": False}
    _elsewhere(draft, "rollout")
    has = resident_of(draft.preset.model, draft.settings, None)
    share = 1 - (has.params + 0.6 * has.optimizer + draft.nature.context_bytes) / draft.card.usable_bytes
    draft.config[f"{ROLLOUT}.gpu_memory_utilization"] = round(share, 2)
    return draft.spec("first_step", "rollout_kv_budget", alike=("weight_sync",))


def reward_first(draft: Draft) -> Spec:
    """A reward model that scores too many sequences at once."""
    draft.with_reward_model(QWEN_3B)
    _elsewhere(draft, "reward")
    draft.fill("reward", draft.dice.uniform(*TOO_MUCH), median=draft.nature.lengths.start)
    return draft.spec("first_step", "reward_model")


def host_first(draft: Draft) -> Spec:
    """Offloaded states that the container has no room for."""
    draft.config |= {f"{ACTOR}.fsdp_config.{key}_offload": True for key in ("param", "optimizer")}
    draft.fill_all(draft.dice.uniform(0.6, 0.8), rollout=draft.dice.uniform(0.6, 0.8))
    draft.fit_host(draft.dice.uniform(0.93, 0.948))
    draft.set(pinned=draft.dice.uniform(0.02, 0.06))
    return draft.spec("first_step", "host_offload", alike=("engine_host_copies",))


# ---------------------------------------------------------------- later, at one stroke


def longest_update(draft: Draft) -> Spec:
    """Usual batches fit well; the one that is far longer does not."""
    _rare_long(draft, "update_actor")
    return draft.spec("sudden", "longest_batch", alike=("entropy_logits", "actor_update"))


def longest_log_prob(draft: Draft) -> Spec:
    """The same in the log-probabilities, whose micro batch was meant for shorter ones."""
    _rare_long(draft, "old_log_prob")
    return draft.spec("sudden", "log_prob_micro_batch", alike=("longest_batch",))


def _rare_long(draft: Draft, phase: str) -> None:
    draft.lengths(long_batch_every=draft.dice.randrange(25, 60), long_batch_times=draft.dice.uniform(2.2, 3.0))
    _elsewhere(draft, phase)
    long = draft.nature.lengths.start * draft.nature.lengths.long_batch_times
    draft.fill(phase, draft.dice.uniform(1.02, 1.12), median=long)


def longest_update_no_checkpointing(draft: Draft) -> Spec:
    """The rare long batch, where activations are what is dear."""
    draft.config |= {f"{MODEL}.enable_gradient_checkpointing": False, f"{MODEL}.use_fused_kernels": True}
    _rare_long(draft, "update_actor")
    return draft.spec("sudden", "actor_update", alike=("longest_batch",))


def longest_critic(draft: Draft) -> Spec:
    """The rare long batch, in the critic."""
    draft.with_critic()
    _rare_long(draft, "update_critic")
    return draft.spec("sudden", "critic_update", alike=("longest_batch",))


def switch_tail(draft: Draft) -> Spec:
    """Each switch needs a little more or less, and once too much."""
    draft.fill_all(draft.dice.uniform(0.6, 0.82), rollout=draft.dice.uniform(0.6, 0.8))
    room = 1 - draft.fixed_bytes("update_weights") / draft.card.usable_bytes
    draft.set(sync_noise=room / draft.dice.uniform(3.0, 4.5))
    return draft.spec("sudden", "weight_sync")


def other_process_arrives(draft: Draft) -> Spec:
    """Somebody starts a program on one of the cards."""
    draft.fill_all(draft.dice.uniform(0.8, 0.93), rollout=draft.dice.uniform(0.8, 0.9))
    onset = draft.dice.randrange(20, 90)
    if draft.dice.random() < 0.5:
        jump, each = draft.dice.uniform(0.22, 0.4), 0.0
    else:  # it fits at first, and is not done
        jump, each = draft.dice.uniform(0.04, 0.08), draft.dice.uniform(0.005, 0.02)
    usable = draft.card.usable_bytes
    draft.set(tenant=Growth(each * usable, onset, jump=jump * usable))
    return draft.spec("sudden", "other_process", onset=onset)


def checkpoint_first(draft: Draft) -> Spec:
    """Each checkpoint gathers the whole model on rank 0, and one of the first does not fit."""
    draft.config |= {"trainer.save_freq": draft.dice.choice((10, 20, 30))}
    draft.fill_all(draft.dice.uniform(0.6, 0.85), rollout=draft.dice.uniform(0.6, 0.85))
    room = draft.card.usable_bytes - draft.fixed_bytes("save_checkpoint")
    draft.set(checkpoint_device=draft.dice.uniform(0.85, 1.1) * room / draft.preset.model.parameters)
    draft.set(checkpoint_noise=0.08)
    return draft.spec("sudden", "checkpoint_spike", onset=draft.number("trainer.save_freq"))
