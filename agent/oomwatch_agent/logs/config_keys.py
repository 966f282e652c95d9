"""Which settings of a run may leave the node, and why. Everything else stays: paths, names, addresses, tokens.

Of the models, sizes leave and names of public families: logs/model_keys.py.

The keys are verl's (0.2 to 0.9). A key is here because memory depends on it, or because advice on memory names it.
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from oomwatch import wire

Values: TypeAlias = dict[str, wire.ConfigValue]


_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,-")
_LONGEST_WORD = 60
_LONGEST_LIST = 64

# Suffix below a section -> the sections that have it.
_ACTOR, _REF, _CRITIC = "actor_rollout_ref.actor", "actor_rollout_ref.ref", "critic"
_ROLLOUT, _MODEL = "actor_rollout_ref.rollout", "actor_rollout_ref.model"
_FSDP = (f"{_ACTOR}.fsdp_config", f"{_REF}.fsdp_config", f"{_CRITIC}.fsdp", f"{_CRITIC}.model.fsdp_config")
_MEGATRON = (f"{_ACTOR}.megatron", f"{_REF}.megatron", f"{_CRITIC}.megatron")
_MODELS = (_MODEL, f"{_CRITIC}.model")
_ROLES = (_ACTOR, _REF, _CRITIC)

_TABLE: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    # why, sections, keys
    (
        "how many sequences a step has, and how long they may get",
        ("data",),
        ("train_batch_size", "gen_batch_size", "val_batch_size", "max_prompt_length", "max_response_length",
         "truncation", "filter_overlong_prompts"),
    ),
    ("how many cards there are", ("trainer", _ROLLOUT), ("nnodes", "n_gpus_per_node", "device")),
    ("whether trainer and engine share the cards", ("actor_rollout_ref",), ("hybrid_engine",)),
    (
        "which steps are longer than others, and what the run logs",
        ("trainer",),
        ("logger", "save_freq", "test_freq", "val_before_train", "critic_warmup", "balance_batch"),
    ),
    ("whether there is a critic and a reference model", ("algorithm",), ("adv_estimator", "use_kl_in_reward")),
    ("whether there is a critic", (_CRITIC,), ("enable",)),
    ("whether there is a reference model", (_ACTOR,), ("use_kl_loss", "ppo_epochs")),
    (
        "size of the batches that set the peak",
        (*_ROLES, _ROLLOUT),
        ("ppo_mini_batch_size", "ppo_micro_batch_size", "ppo_micro_batch_size_per_gpu", "ppo_max_token_len_per_gpu",
         "log_prob_micro_batch_size", "log_prob_micro_batch_size_per_gpu", "log_prob_max_token_len_per_gpu",
         "log_prob_use_dynamic_bsz", "forward_micro_batch_size", "forward_micro_batch_size_per_gpu",
         "forward_max_token_len_per_gpu", "ppo_infer_max_token_len_per_gpu", "use_dynamic_bsz", "rollout_n"),
    ),
    (
        "how activations, logits and entropy are kept",
        _ROLES,
        ("strategy", "ulysses_sequence_parallel_size", "use_remove_padding", "use_torch_compile", "use_fused_kernels",
         "entropy_from_logits_with_chunking", "entropy_checkpointing", "entropy_coeff", "calculate_entropy"),
    ),
    (
        "what is sharded, what is offloaded, and in which precision it is kept",
        _FSDP,
        ("param_offload", "optimizer_offload", "offload_policy", "reshard_after_forward", "fsdp_size", "model_dtype",
         "dtype", "forward_prefetch", "ulysses_sequence_parallel_size", "use_no_sync_for_gradient_accumulation"),
    ),
    (
        "the same for Megatron",
        _MEGATRON,
        ("param_offload", "grad_offload", "optimizer_offload", "tensor_model_parallel_size",
         "pipeline_model_parallel_size", "virtual_pipeline_model_parallel_size", "context_parallel_size",
         "expert_model_parallel_size", "expert_tensor_parallel_size", "sequence_parallel",
         "use_distributed_optimizer", "dtype", "override_transformer_config.recompute_granularity"),
    ),
    (
        "which activations are stored, and how much of the model is trained",
        _MODELS,
        ("enable_gradient_checkpointing", "enable_activation_offload", "use_remove_padding", "use_fused_kernels",
         "use_liger", "lora_rank", "lora_alpha", "target_modules", "lora.rank", "lora.alpha",
         "gradient_checkpointing_kwargs.activations_checkpoint_granularity"),
    ),
    (
        "how much of the optimizer works on the host",
        (_ACTOR, _CRITIC),
        ("optim.override_optimizer_config.optimizer_offload_fraction",),
    ),
    (
        "what the rollout engine takes, and whether it gives it back",
        (_ROLLOUT,),
        ("name", "mode", "n", "tensor_model_parallel_size", "data_parallel_size", "pipeline_model_parallel_size",
         "expert_parallel_size",
         "gpu_memory_utilization", "free_cache_engine", "enforce_eager", "cudagraph_capture_sizes",
         "multi_stage_wake_up", "max_num_batched_tokens", "max_num_seqs", "max_model_len", "prompt_length",
         "response_length", "dtype", "load_format", "layered_summon", "enable_chunked_prefill",
         "enable_prefix_caching", "quantization", "checkpoint_engine.update_weights_bucket_megabytes",
         "update_weights_bucket_megabytes", "multi_turn.enable", "agent.num_workers"),
    ),
    (
        "the reward model's share",
        ("reward_model", "reward.reward_model"),
        ("enable", "strategy", "micro_batch_size_per_gpu", "use_dynamic_bsz", "enable_resource_pool",
         "n_gpus_per_node", "nnodes", "rollout.name", "rollout.gpu_memory_utilization",
         "rollout.tensor_model_parallel_size"),
    ),
    (
        "keys of articles and forks: advice may name them only to a run that has them",
        (_ROLLOUT, _MODEL, _ACTOR, "data"),
        ("buffer_size", "rollout_steps_per_update", "static_sharding", "producer_buffer_limit", "consumer_batch_size",
         "offload_ratio", "max_length", "pack_sequences", "max_packed_length", "async_mode", "cpu_offload"),
    ),
)  # fmt: skip

ALLOWED: dict[str, str] = {
    f"{section}.{key}": why for why, sections, keys in _TABLE for section in sections for key in keys
}


def allowed_values(config: Mapping[str, object]) -> Values:
    """The settings of a nested configuration that may leave the node, by their dotted keys."""
    return {key: value for key, raw in _flat(config, "") if key in ALLOWED and (value := _value(raw)) is not None}


def _flat(config: Mapping[str, object], above: str) -> Iterator[tuple[str, object]]:
    for name, value in config.items():
        key = f"{above}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, key + ".")
        else:
            yield key, value


def _value(raw: object) -> wire.ConfigValue | None:
    """A value as the wire takes it. References that were left as text ("${...}") are none, and neither is null."""
    if isinstance(raw, bool) or (isinstance(raw, int) and abs(raw) <= 2**53):
        return raw
    if isinstance(raw, float):
        return raw if abs(raw) < float("inf") else None
    if isinstance(raw, str):
        return raw if 0 < len(raw) <= _LONGEST_WORD and _WORD.issuperset(raw) else None
    if isinstance(raw, list | tuple) and len(raw) <= _LONGEST_LIST:
        words = [_value(one) for one in raw if isinstance(one, str | int)]
        joined = ",".join(str(word) for word in words if word is not None)
        return joined[:200] or None
    return None
