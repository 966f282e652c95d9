"""A configuration in verl's keys, read once into what the arithmetic needs."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from oomwatch import wire

Config: TypeAlias = Mapping[str, wire.ConfigValue]

ACTOR, REF, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.ref", "actor_rollout_ref.rollout"
MODEL, CRITIC = "actor_rollout_ref.model", "critic"

HALF = ("bf16", "bfloat16", "fp16", "float16")
FEW_GRAPHS = 0.3  # of their memory, where sizes are chosen

# verl 0.9.1's defaults, of the keys that are read here.
DEFAULTS: dict[str, wire.ConfigValue] = {
    "data.train_batch_size": 64,
    "data.max_prompt_length": 1024,
    "data.max_response_length": 4096,
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 2,
    "trainer.save_freq": -1,
    "trainer.test_freq": -1,
    "trainer.balance_batch": True,
    "algorithm.adv_estimator": "grpo",
    f"{MODEL}.enable_gradient_checkpointing": True,
    f"{MODEL}.enable_activation_offload": False,
    f"{MODEL}.use_remove_padding": True,
    f"{MODEL}.use_fused_kernels": False,
    f"{MODEL}.lora_rank": 0,
    f"{ACTOR}.strategy": "fsdp",
    f"{ACTOR}.use_kl_loss": True,
    f"{ACTOR}.ppo_mini_batch_size": 64,
    f"{ACTOR}.ppo_micro_batch_size_per_gpu": 8,
    f"{ACTOR}.use_dynamic_bsz": False,
    f"{ACTOR}.ppo_max_token_len_per_gpu": 16_384,
    f"{ACTOR}.ulysses_sequence_parallel_size": 1,
    f"{ACTOR}.entropy_from_logits_with_chunking": False,
    f"{ACTOR}.entropy_checkpointing": False,
    f"{ACTOR}.fsdp_config.model_dtype": "fp32",
    f"{ACTOR}.fsdp_config.param_offload": False,
    f"{ACTOR}.fsdp_config.optimizer_offload": False,
    f"{REF}.log_prob_micro_batch_size_per_gpu": 8,
    f"{REF}.fsdp_config.param_offload": True,
    f"{REF}.entropy_from_logits_with_chunking": False,
    f"{ROLLOUT}.name": "vllm",
    f"{ROLLOUT}.mode": "async",
    f"{ROLLOUT}.n": 8,
    f"{ROLLOUT}.tensor_model_parallel_size": 1,
    f"{ROLLOUT}.gpu_memory_utilization": 0.5,
    f"{ROLLOUT}.free_cache_engine": True,
    f"{ROLLOUT}.enforce_eager": False,
    f"{ROLLOUT}.max_num_seqs": 256,
    f"{ROLLOUT}.multi_stage_wake_up": True,
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 8,
    f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes": 2048,
}
# Of a run with a critic (PPO); GRPO prints them too, and uses none.
CRITIC_DEFAULTS: dict[str, wire.ConfigValue] = {
    f"{CRITIC}.ppo_micro_batch_size_per_gpu": 8,
    f"{CRITIC}.use_dynamic_bsz": False,
    f"{CRITIC}.ppo_max_token_len_per_gpu": 32_768,
    f"{CRITIC}.forward_micro_batch_size_per_gpu": 8,
    f"{CRITIC}.model.enable_gradient_checkpointing": True,
    f"{CRITIC}.model.fsdp_config.param_offload": False,
    f"{CRITIC}.model.fsdp_config.optimizer_offload": False,
}
# Of a run with a reward model on the same cards.
REWARD_DEFAULTS: dict[str, wire.ConfigValue] = {
    "reward_model.enable": False,
    "reward_model.enable_resource_pool": False,  # cards of its own
    "reward_model.micro_batch_size_per_gpu": 16,
}


class Batching(NamedTuple):
    """How a rank cuts its sequences into micro batches: by number, or by tokens (dynamic batches)."""

    sequences: int
    tokens_max: int | None
    parallel: int  # Ulysses: so many ranks share the tokens of a micro batch


class Settings(NamedTuple):
    prompts: int
    responses_per_prompt: int
    prompt_tokens_max: int
    response_tokens_max: int
    gpus: int
    save_every: int | None
    test_every: int | None
    balanced: bool
    old_log_prob: Batching
    ref: Batching | None
    update_actor: Batching
    update_critic: Batching | None
    reward: Batching | None  # of a reward model
    checkpointed: bool  # gradient checkpointing: activations are computed again
    activations_offloaded: bool
    critic_checkpointed: bool
    fused: bool  # logits are never held whole
    chunked: bool
    entropy_checkpointed: bool
    lora_rank: int
    param_bytes: int  # a parameter, as the trainer keeps it
    params_offloaded: bool
    optimizer_offloaded: bool
    ref_offloaded: bool
    critic_params_offloaded: bool
    critic_optimizer_offloaded: bool
    utilization: float
    sleeps: bool
    graphs: float  # share of the CUDA graphs that are captured
    sequences_at_once: int
    staged: bool
    tensor_parallel: int
    bucket_bytes: int

    @property
    def sequences(self) -> int:
        """Of one step."""
        return self.prompts * self.responses_per_prompt

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence that may be."""
        return self.prompt_tokens_max + self.response_tokens_max


class _Reader:
    def __init__(self, config: Config) -> None:
        self._config = {**DEFAULTS, **CRITIC_DEFAULTS, **REWARD_DEFAULTS, **config}

    def number(self, key: str) -> int:
        return int(self._config[key])

    def ratio(self, key: str) -> float:
        return float(self._config[key])

    def is_on(self, key: str) -> bool:
        value = self._config.get(key, False)
        return value.lower() == "true" if isinstance(value, str) else bool(value)

    def every(self, key: str) -> int | None:
        steps = self.number(key)
        return steps if steps > 0 else None

    def batching(self, section: str, prefix: str) -> Batching:
        """Of `section`, whose keys begin with ppo_ or log_prob_. What the rollout and ref lack is the actor's."""
        actor = f"{CRITIC}." if section == CRITIC else f"{ACTOR}."
        switch = self._first(
            f"{section}.{prefix}use_dynamic_bsz", f"{section}.use_dynamic_bsz", f"{actor}use_dynamic_bsz"
        )
        tokens = self._first(f"{section}.{prefix}max_token_len_per_gpu", f"{actor}ppo_max_token_len_per_gpu")
        sequences = self.number(f"{section}.{prefix}micro_batch_size_per_gpu")
        parallel = 1 if section == CRITIC else self.number(f"{ACTOR}.ulysses_sequence_parallel_size")
        return Batching(max(1, sequences), self.number(tokens) if self.is_on(switch) else None, parallel)

    def _first(self, *keys: str) -> str:
        return next(key for key in keys if key in self._config)

    def graphs(self) -> float:
        """Of the default's sizes, fewer or none."""
        if self.is_on(f"{ROLLOUT}.enforce_eager"):
            return 0.0
        return FEW_GRAPHS if self._config.get(f"{ROLLOUT}.cudagraph_capture_sizes") else 1.0

    def settings(self) -> Settings:
        is_on, number = self.is_on, self.number
        has_critic = self._config["algorithm.adv_estimator"] == "gae"
        critic_fsdp = f"{CRITIC}.model.fsdp_config"
        return Settings(
            prompts=number("data.train_batch_size"),
            responses_per_prompt=number(f"{ROLLOUT}.n"),
            prompt_tokens_max=number("data.max_prompt_length"),
            response_tokens_max=number("data.max_response_length"),
            gpus=number("trainer.n_gpus_per_node"),
            save_every=self.every("trainer.save_freq"),
            test_every=self.every("trainer.test_freq"),
            balanced=is_on("trainer.balance_batch"),
            old_log_prob=self.batching(ROLLOUT, "log_prob_"),
            ref=self.batching(REF, "log_prob_") if is_on(f"{ACTOR}.use_kl_loss") else None,
            update_actor=self.batching(ACTOR, "ppo_"),
            update_critic=self.batching(CRITIC, "ppo_") if has_critic else None,
            reward=Batching(number("reward_model.micro_batch_size_per_gpu"), None, 1)
            if is_on("reward_model.enable") and not is_on("reward_model.enable_resource_pool")
            else None,
            checkpointed=is_on(f"{MODEL}.enable_gradient_checkpointing"),
            activations_offloaded=is_on(f"{MODEL}.enable_activation_offload"),
            critic_checkpointed=is_on(f"{CRITIC}.model.enable_gradient_checkpointing"),
            fused=is_on(f"{MODEL}.use_fused_kernels") or is_on(f"{ACTOR}.use_fused_kernels"),
            chunked=is_on(f"{ACTOR}.entropy_from_logits_with_chunking"),
            entropy_checkpointed=is_on(f"{ACTOR}.entropy_checkpointing"),
            lora_rank=number(f"{MODEL}.lora_rank"),
            param_bytes=2 if str(self._config[f"{ACTOR}.fsdp_config.model_dtype"]) in HALF else 4,
            params_offloaded=is_on(f"{ACTOR}.fsdp_config.param_offload"),
            optimizer_offloaded=is_on(f"{ACTOR}.fsdp_config.optimizer_offload"),
            ref_offloaded=is_on(f"{REF}.fsdp_config.param_offload"),
            critic_params_offloaded=is_on(f"{critic_fsdp}.param_offload"),
            critic_optimizer_offloaded=is_on(f"{critic_fsdp}.optimizer_offload"),
            utilization=self.ratio(f"{ROLLOUT}.gpu_memory_utilization"),
            sleeps=is_on(f"{ROLLOUT}.free_cache_engine"),
            graphs=self.graphs(),
            sequences_at_once=number(f"{ROLLOUT}.max_num_seqs"),
            staged=is_on(f"{ROLLOUT}.multi_stage_wake_up"),
            tensor_parallel=number(f"{ROLLOUT}.tensor_model_parallel_size"),
            bucket_bytes=number(f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes") * 2**20,
        )


def settings_of(config: Config) -> Settings:
    """What a run with this configuration does. Raises KeyError for no key: what is not given has verl's default."""
    return _Reader(config).settings()
