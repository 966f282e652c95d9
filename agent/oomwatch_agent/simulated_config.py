"""The configuration of a simulated run, by verl's keys: the one with which its story happens."""

from typing import Any

from oomwatch import wire
from oomwatch_agent.logs.config_keys import Values, allowed_values
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
# What the config.json of each says: the fewer GPUs share the states of the optimizer, the smaller the model.
_QWEN3_8B: Values = {
    "name": "Qwen3-8B",
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
    "attention_bias": False,
}
_QWEN3_4B = _QWEN3_8B | {
    "name": "Qwen3-4B",
    "hidden_size": 2560,
    "intermediate_size": 9728,
    "tie_word_embeddings": True,
}
_QWEN3_1_7B = _QWEN3_4B | {
    "name": "Qwen3-1.7B",
    "num_hidden_layers": 28,
    "hidden_size": 2048,
    "num_attention_heads": 16,
    "intermediate_size": 6144,
}


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
            "ref": {"log_prob_micro_batch_size_per_gpu": 16, "fsdp_config": {"param_offload": True}},
            "rollout": _rollout(story),
        },
    }
    return wire.Config(values=allowed_values(config), framework="verl", version="0.9.1", model=_model(gpus))


def _model(gpus: int) -> Values:
    """One with which the story's phases have the room that they take."""
    if gpus == 1:
        return _QWEN3_1_7B
    return _QWEN3_4B if gpus < 4 else _QWEN3_8B  # noqa: PLR2004 - from here on the states of 8B fit


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
