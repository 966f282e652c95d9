"""What a run's configuration says that its memory depends on, by names of our own. Absent is None.

The keys are verl's (0.2 to 0.9); which version has which is in plan/verlkeys.json.
"""

from msgspec import Struct

from oomwatch.plan.batches import has_critic
from oomwatch.plan.reader import reader_of
from oomwatch.plan.settings import CRITIC, Config, count, flag, ratio, text

_ACTOR, _ROLLOUT, _MODEL = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.model"


class Settings(Struct, frozen=True, kw_only=True):
    known: bool = False  # whether a configuration was told at all
    engine: str | None = None  # "vllm", "sglang"
    kv_share: float | None = None  # the engine's share of the card
    free_cache_engine: bool | None = None
    dynamic_batches: bool | None = None
    log_prob_micro_batch: int | None = None  # sequences a GPU
    update_micro_batch: int | None = None
    token_cap: int | None = None  # of a dynamic batch
    prompt_cap_tokens: int | None = None
    response_cap_tokens: int | None = None
    chunked_entropy: bool | None = None
    fused_kernels: bool | None = None
    checkpointing: bool | None = None
    param_offload: bool | None = None
    optimizer_offload: bool | None = None
    has_critic: bool | None = None
    lora_rank: int | None = None
    layered_summon: bool | None = None

    @property
    def length_cap_tokens(self) -> int | None:
        """The longest sequence that the run allows."""
        caps = (self.prompt_cap_tokens, self.response_cap_tokens)
        return sum(cap for cap in caps if cap) if self.response_cap_tokens else None

    def micro_batch_tokens(self, phase: str) -> float | None:
        """How many tokens one pass of a phase may hold."""
        if self.dynamic_batches and self.token_cap:
            return float(self.token_cap)
        batch = self.update_micro_batch if phase.startswith("update") else self.log_prob_micro_batch
        return float(batch * self.length_cap_tokens) if batch and self.length_cap_tokens else None


def settings_of(config: Config) -> Settings:
    """The settings that a configuration tells; a value of another kind than expected is none."""
    return Settings(
        known=bool(config),
        engine=text(config, f"{_ROLLOUT}.name"),
        kv_share=ratio(config, f"{_ROLLOUT}.gpu_memory_utilization"),
        free_cache_engine=flag(config, f"{_ROLLOUT}.free_cache_engine"),
        dynamic_batches=flag(config, f"{_ACTOR}.use_dynamic_bsz"),
        log_prob_micro_batch=count(config, f"{_ROLLOUT}.log_prob_micro_batch_size_per_gpu"),
        update_micro_batch=count(config, f"{_ACTOR}.ppo_micro_batch_size_per_gpu"),
        token_cap=count(config, f"{_ACTOR}.ppo_max_token_len_per_gpu"),
        prompt_cap_tokens=count(config, "data.max_prompt_length"),
        response_cap_tokens=response_cap_of(config),
        chunked_entropy=flag(config, f"{_ACTOR}.entropy_from_logits_with_chunking"),
        fused_kernels=flag(config, f"{_MODEL}.use_fused_kernels", f"{_ACTOR}.use_fused_kernels"),
        checkpointing=flag(config, f"{_MODEL}.enable_gradient_checkpointing"),
        param_offload=flag(config, f"{_ACTOR}.fsdp_config.param_offload", f"{_ACTOR}.megatron.param_offload"),
        optimizer_offload=flag(
            config, f"{_ACTOR}.fsdp_config.optimizer_offload", f"{_ACTOR}.megatron.optimizer_offload"
        ),
        has_critic=_has_critic(config),
        lora_rank=count(config, f"{_MODEL}.lora_rank"),
        layered_summon=flag(config, f"{_ROLLOUT}.layered_summon"),
    )


def response_cap_of(config: Config) -> int | None:
    """The longest response that a configuration allows, in tokens: the rollout's own bound is usually the data's."""
    caps = (count(config, key) for key in ("data.max_response_length", f"{_ROLLOUT}.response_length"))
    return next((cap for cap in caps if cap is not None and cap > 0), None)


def _has_critic(config: Config) -> bool | None:
    """As verl sees it; None where nothing tells."""
    tells = any(key in config for key in (f"{CRITIC}.enable", "algorithm.adv_estimator"))
    return has_critic(reader_of(config, None)) if tells else None
