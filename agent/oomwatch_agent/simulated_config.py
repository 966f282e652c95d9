"""The configuration of a simulated run, by verl's keys: the one with which its story happens."""

from typing import Any

from oomwatch import wire
from oomwatch_agent.logs.config_keys import allowed_values
from oomwatch_agent.scenario import (
    CARD_USABLE_GIB,
    MAX_RESPONSE_TOKENS,
    SEQUENCES_PER_STEP,
    SLEEPING_ENGINE_GIB,
    Story,
    rollout_gib,
)

_RESPONSES_PER_PROMPT = 8
_MINI_BATCH_PROMPTS = 64  # verl wants whole micro batches of 8 on each of 1, 2, 4 or 8 GPUs


def configured(story: Story, gpus: int) -> wire.Config:
    """What verl 0.9.1 would print for this run on so many GPUs: the keys that may leave a node."""
    prompts = SEQUENCES_PER_STEP // _RESPONSES_PER_PROMPT
    config: dict[str, Any] = {
        "data": {
            "train_batch_size": prompts,
            "max_prompt_length": 1024,
            "max_response_length": MAX_RESPONSE_TOKENS,
        },
        "trainer": {"nnodes": 1, "n_gpus_per_node": gpus, "device": "cuda", "val_before_train": False},
        "algorithm": {"adv_estimator": "grpo", "use_kl_in_reward": False},
        "actor_rollout_ref": {
            "model": {"enable_gradient_checkpointing": True, "use_remove_padding": True},
            "actor": _actor(),
            "ref": {"log_prob_micro_batch_size_per_gpu": 8, "fsdp_config": {"param_offload": True}},
            "rollout": _rollout(story),
        },
    }
    return wire.Config(values=allowed_values(config), framework="verl", version="0.9.1")


def _actor() -> dict[str, Any]:
    """Micro batches by number and not by tokens: what makes long responses dear."""
    return {
        "strategy": "fsdp",
        "use_kl_loss": True,
        "ppo_mini_batch_size": _MINI_BATCH_PROMPTS,
        "ppo_micro_batch_size_per_gpu": 8,
        "use_dynamic_bsz": False,
        "fsdp_config": {"param_offload": True, "optimizer_offload": True},
    }


def _rollout(story: Story) -> dict[str, Any]:
    """An engine of one GPU, with the share of the card that it has in the story."""
    return {
        "name": "vllm",
        "mode": "async",
        "n": _RESPONSES_PER_PROMPT,
        "tensor_model_parallel_size": 1,
        "gpu_memory_utilization": round((rollout_gib(story) - SLEEPING_ENGINE_GIB) / CARD_USABLE_GIB, 2),
        "free_cache_engine": True,
        "enforce_eager": False,
        "log_prob_micro_batch_size_per_gpu": 8,
    }
