"""Runs to give advice to: their configuration, and what is known of their memory."""

from collections.abc import Mapping
from typing import Any

from tests.core.story import GIB

from oomwatch import wire
from oomwatch.core.facts import Facts, PhaseFacts
from oomwatch.core.parts import Part
from oomwatch.core.settings import settings_of
from oomwatch.core.subject import Topic

ACTOR, ROLLOUT, MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"

# The articles' worked example: 60 prompts on 6 GPUs, 12 samples each, micro batches of 8.
CONFIG: dict[str, wire.ConfigValue] = {
    "data.train_batch_size": 120,
    "data.max_prompt_length": 1024,
    "data.max_response_length": 4096,
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 6,
    "trainer.save_freq": -1,
    "trainer.balance_batch": False,
    "algorithm.adv_estimator": "gae",
    f"{MODEL}.enable_gradient_checkpointing": True,
    f"{MODEL}.enable_activation_offload": False,
    f"{MODEL}.use_remove_padding": True,
    f"{MODEL}.use_fused_kernels": False,
    f"{MODEL}.lora_rank": 0,
    f"{ACTOR}.strategy": "fsdp",
    f"{ACTOR}.ppo_mini_batch_size": 60,
    f"{ACTOR}.ppo_micro_batch_size_per_gpu": 8,
    f"{ACTOR}.ppo_max_token_len_per_gpu": 16384,
    f"{ACTOR}.use_dynamic_bsz": False,
    f"{ACTOR}.ulysses_sequence_parallel_size": 1,
    f"{ACTOR}.entropy_from_logits_with_chunking": False,
    f"{ACTOR}.entropy_checkpointing": False,
    f"{ACTOR}.fsdp_config.param_offload": False,
    f"{ACTOR}.fsdp_config.optimizer_offload": False,
    f"{ACTOR}.fsdp_config.model_dtype": "fp32",
    "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu": 8,
    "actor_rollout_ref.ref.fsdp_config.param_offload": False,
    "actor_rollout_ref.ref.entropy_from_logits_with_chunking": False,
    f"{ROLLOUT}.name": "vllm",
    f"{ROLLOUT}.mode": "sync",
    f"{ROLLOUT}.n": 12,
    f"{ROLLOUT}.tensor_model_parallel_size": 1,
    f"{ROLLOUT}.gpu_memory_utilization": 0.6,
    f"{ROLLOUT}.free_cache_engine": True,
    f"{ROLLOUT}.enforce_eager": False,
    f"{ROLLOUT}.max_num_seqs": 256,
    f"{ROLLOUT}.multi_stage_wake_up": False,
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 8,
    f"{ROLLOUT}.log_prob_max_token_len_per_gpu": 16384,
    f"{ROLLOUT}.layered_summon": False,
    f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes": 2048,
    "critic.ppo_micro_batch_size_per_gpu": 8,
    "critic.forward_micro_batch_size_per_gpu": 8,
    "critic.ppo_max_token_len_per_gpu": 32768,
    "critic.use_dynamic_bsz": False,
    "critic.model.enable_gradient_checkpointing": True,
    "critic.fsdp.optimizer_offload": False,
    "reward.reward_model.enable_resource_pool": False,
    "reward.reward_model.rollout.gpu_memory_utilization": 0.5,
}
# verl 0.4 with SGLang, padded, and all of it offloaded.
OLD: dict[str, wire.ConfigValue] = {
    **{key: value for key, value in CONFIG.items() if not key.startswith(("reward.", "critic.fsdp"))},
    f"{ROLLOUT}.name": "sglang",
    f"{MODEL}.use_remove_padding": False,
    f"{ACTOR}.fsdp_config.param_offload": True,
    f"{ACTOR}.fsdp_config.optimizer_offload": True,
    "actor_rollout_ref.ref.fsdp_config.param_offload": True,
    "reward_model.micro_batch_size_per_gpu": 16,
}
MEGATRON: dict[str, wire.ConfigValue] = {
    **{key: value for key, value in CONFIG.items() if ".fsdp_config." not in key and "fsdp" not in key},
    f"{ACTOR}.strategy": "megatron",
    f"{ACTOR}.megatron.param_offload": False,
    f"{ACTOR}.megatron.optimizer_offload": False,
}
FORK: dict[str, wire.ConfigValue] = {
    **OLD,
    f"{ROLLOUT}.buffer_size": 2048,
    f"{ROLLOUT}.rollout_steps_per_update": 1,
    f"{ROLLOUT}.static_sharding": False,
    f"{ROLLOUT}.producer_buffer_limit": 256,
    f"{ACTOR}.offload_ratio": 0.4,
}


def device(phase: str, config: Mapping[str, wire.ConfigValue] = CONFIG, **known: Any) -> Facts:
    """A card of 80 GiB, of which this phase takes 76: 30 for what stays, and 46 for its work."""
    phases = tuple(
        PhaseFacts(name, (76.0 if name == phase else 40.0) * GIB, 30.0 * GIB)
        for name in dict.fromkeys(("old_log_prob", "update_actor", "ref", phase))
    )
    defaults: dict[str, Any] = {
        "topic": "device",
        "phase": phase,
        "settings": settings_of(config),
        "capacity_bytes": 80.0 * GIB,
        "peak_bytes": 76.0 * GIB,
        "phases": phases,
        "active_bytes": 46.0 * GIB,
        "needed_bytes": 8.0 * GIB,
        "steps": 30,
    }
    return Facts(**(defaults | known))


def host(limited_by: str, topic: Topic = "host") -> Facts:
    """A host whose worker grows, with too little shared memory."""
    return Facts(
        topic=topic,
        settings=settings_of(CONFIG),
        limited_by=limited_by,
        host_limit_bytes=500.0 * GIB,
        host_parts=(Part("worker", 300.0 * GIB, 40.0 * GIB, "ray::WorkerDict"),),
        shm_total_bytes=8.0 * GIB,
    )


def speed() -> Facts:
    """A full KV cache on a card that has room."""
    return Facts(
        topic="speed",
        settings=settings_of(CONFIG),
        capacity_bytes=80.0 * GIB,
        peak_bytes=50.0 * GIB,
        kv_used_ratio=0.99,
    )


def switch() -> Facts:
    return Facts(topic="switch", settings=settings_of(CONFIG), capacity_bytes=80.0 * GIB, peak_bytes=50.0 * GIB)
