"""What verl takes where a configuration does not say, of the settings that batches are made of.

From verl's own trainer configurations (verl/trainer/config), which agree on these from 0.4 to 0.9. A setting may follow
another one: verl writes that as an interpolation.
"""

from oomwatch import wire
from oomwatch.plan.settings import ACTOR, CRITIC, REF, ROLLOUT, Config

_VALUES: dict[str, wire.ConfigValue] = {
    "data.max_prompt_length": 512,
    "data.max_response_length": 512,
    "data.train_batch_size": 1024,
    "trainer.n_gpus_per_node": 8,
    "trainer.nnodes": 1,
    "algorithm.adv_estimator": "gae",
    f"{ACTOR}.fsdp_config.ulysses_sequence_parallel_size": 1,
    f"{ACTOR}.megatron.context_parallel_size": 1,
    f"{ACTOR}.megatron.pipeline_model_parallel_size": 1,
    f"{ACTOR}.megatron.tensor_model_parallel_size": 1,
    f"{ACTOR}.ppo_epochs": 1,
    f"{ACTOR}.ppo_max_token_len_per_gpu": 16384,
    f"{ACTOR}.ppo_mini_batch_size": 256,
    f"{ACTOR}.strategy": "fsdp",
    f"{ACTOR}.ulysses_sequence_parallel_size": 1,
    f"{ACTOR}.use_dynamic_bsz": False,
    f"{ACTOR}.use_kl_loss": False,
    f"{CRITIC}.megatron.context_parallel_size": 1,
    f"{CRITIC}.megatron.pipeline_model_parallel_size": 1,
    f"{CRITIC}.megatron.tensor_model_parallel_size": 1,
    f"{CRITIC}.ppo_max_token_len_per_gpu": 32768,
    f"{CRITIC}.ulysses_sequence_parallel_size": 1,
    f"{ROLLOUT}.data_parallel_size": 1,
    f"{ROLLOUT}.n": 1,
    f"{ROLLOUT}.pipeline_model_parallel_size": 1,
    f"{ROLLOUT}.tensor_model_parallel_size": 2,
}
_FOLLOWS = {
    f"{CRITIC}.forward_max_token_len_per_gpu": f"{CRITIC}.ppo_max_token_len_per_gpu",
    f"{CRITIC}.forward_micro_batch_size": f"{CRITIC}.ppo_micro_batch_size",
    f"{CRITIC}.forward_micro_batch_size_per_gpu": f"{CRITIC}.ppo_micro_batch_size_per_gpu",
    f"{CRITIC}.ppo_epochs": f"{ACTOR}.ppo_epochs",
    f"{CRITIC}.ppo_mini_batch_size": f"{ACTOR}.ppo_mini_batch_size",
    f"{CRITIC}.strategy": f"{ACTOR}.strategy",
    f"{CRITIC}.use_dynamic_bsz": f"{ACTOR}.use_dynamic_bsz",
    f"{REF}.log_prob_max_token_len_per_gpu": f"{ACTOR}.ppo_max_token_len_per_gpu",
    f"{REF}.log_prob_use_dynamic_bsz": f"{ACTOR}.use_dynamic_bsz",
    f"{ROLLOUT}.log_prob_max_token_len_per_gpu": f"{ACTOR}.ppo_max_token_len_per_gpu",
    f"{ROLLOUT}.log_prob_use_dynamic_bsz": f"{ACTOR}.use_dynamic_bsz",
}


def teller_of(config: Config, key: str) -> str:
    """The setting that decides: the key itself, or the one that it follows where it is not told."""
    while key not in config and key in _FOLLOWS:
        key = _FOLLOWS[key]
    return key


def default_of(key: str) -> wire.ConfigValue | None:
    return _VALUES.get(key)
