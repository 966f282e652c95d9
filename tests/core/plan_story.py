"""A run whose plan is known: Qwen3-8B on eight GPUs of 80 GiB, as its configuration and its model's sizes say."""

from tests.core.step_story import Told
from tests.core.story import Story

from oomwatch import wire

CONFIG: dict[str, wire.ConfigValue] = {
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 8,
    "data.train_batch_size": 64,
    "data.max_prompt_length": 512,
    "data.max_response_length": 1536,
    "algorithm.adv_estimator": "grpo",
    "actor_rollout_ref.model.use_remove_padding": True,
    "actor_rollout_ref.model.enable_gradient_checkpointing": True,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 64,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4,
    "actor_rollout_ref.actor.fsdp_config.param_offload": True,
    "actor_rollout_ref.actor.fsdp_config.optimizer_offload": True,
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": 8,
    "actor_rollout_ref.rollout.name": "vllm",
    "actor_rollout_ref.rollout.n": 8,
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
    "actor_rollout_ref.rollout.tensor_model_parallel_size": 1,
}
MODEL: dict[str, wire.ConfigValue] = {
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
}
# In GiB, with what is expected at most: rollout 53.7, old_log_prob 33.9, update_actor 40.1.
AS_PLANNED = Told(rollout=50.0, old_log_prob=28.0, update_actor=34.0, length_mean=400.0, tokens_total=512 * 500.0)
ABOVE = AS_PLANNED._replace(update_actor=45.0)
FULL = AS_PLANNED._replace(update_actor=76.0)
BELOW = AS_PLANNED._replace(rollout=20.0, old_log_prob=10.0, update_actor=15.0)


def configured(
    story: Story, model: dict[str, wire.ConfigValue] = MODEL, version: str | None = "0.9.1", **more: wire.ConfigValue
) -> Story:
    """`more`: settings by their keys below actor_rollout_ref, a dot written as two underscores."""
    changed = {f"actor_rollout_ref.{key.replace('__', '.')}": value for key, value in more.items()}
    return story.event(wire.Config(values=CONFIG | changed, framework="verl", version=version, model=model))
