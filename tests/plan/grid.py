"""Configurations to compare on: each differs from one that verl takes in a few settings, drawn with a fixed seed.

Of settings that stop verl by themselves a few are drawn at a time, so that what is behind them is seen as well.
"""

from random import Random
from typing import Any, Literal, NamedTuple

from oomwatch.plan import verlkeys
from oomwatch.plan.settings import ACTOR, CRITIC, MODEL, REF, ROLLOUT

Strategy = Literal["fsdp", "fsdp2", "megatron"]
Settings = dict[str, Any]
HERE: dict[str, list[Any]] = {  # of every configuration: most values go together
    "trainer.nnodes": [1, 1, 1, 2],
    "trainer.n_gpus_per_node": [1, 2, 4, 6, 8, 8],
    f"{ROLLOUT}.n": [1, 4, 8, 8, 12],
    f"{ROLLOUT}.tensor_model_parallel_size": [1, 1, 2, 2, 4],
    f"{ROLLOUT}.name": ["vllm", "vllm", "sglang"],
    f"{ROLLOUT}.agent.num_workers": [1, 2, 4, 8],
    "algorithm.adv_estimator": ["grpo", "grpo", "gae"],
    f"{ACTOR}.use_kl_loss": [True, False],
    "trainer.balance_batch": [True, True, False],
}
PROMPTS = [16, 32, 48, 60, 64, 64, 96, 128, 100]
MICRO = [1, 2, 4, 4, 8, 8, 3, 7]
ODD: dict[str, list[Any]] = {  # drawn for one or two configurations in three
    "algorithm.use_kl_in_reward": [True],
    f"{ACTOR}.loss_agg_mode": ["seq-mean-token-mean", "token-sum", "mean"],
    f"{ACTOR}.ppo_micro_batch_size": [8, 16, 64],
    f"{ACTOR}.ppo_mini_batch_size": [1, 2, 7, 30, 512],
    f"{ACTOR}.ppo_max_token_len_per_gpu": [512, 1024, 2048, 24000],
    f"{CRITIC}.fsdp.ulysses_sequence_parallel_size": [2],
    f"{CRITIC}.model.use_remove_padding": [True, False],
    f"{CRITIC}.ppo_micro_batch_size": [16, 64],
    f"{CRITIC}.ppo_mini_batch_size": [4, 15, 32, 256],
    f"{CRITIC}.ulysses_sequence_parallel_size": [2],
    f"{CRITIC}.use_dynamic_bsz": [True],
    "data.max_prompt_length": [1024],
    "data.max_response_length": [1024, 3072],
    f"{MODEL}.lora_rank": [32, 512, 513],
    f"{MODEL}.use_remove_padding": [True, False],
    f"{REF}.log_prob_micro_batch_size": [16],
    f"{REF}.log_prob_use_dynamic_bsz": [True],
    "reward_model.enable": [True],
    "reward_model.micro_batch_size": [8, 32],
    "reward_model.micro_batch_size_per_gpu": [4],
    f"{ROLLOUT}.data_parallel_size": [2],
    f"{ROLLOUT}.expert_parallel_size": [2, 4],
    f"{ROLLOUT}.log_prob_micro_batch_size": [16, 32],
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": [3, 5],
    f"{ROLLOUT}.mode": ["sync", "async"],
    f"{ROLLOUT}.multi_turn.enable": [True],
    f"{ROLLOUT}.pipeline_model_parallel_size": [2],
    f"{ROLLOUT}.temperature": [0, 0.7],
    f"{ROLLOUT}.tensor_model_parallel_size": [3, 8],
    f"{ROLLOUT}.val_kwargs.do_sample": [True],
    "trainer.use_v1": [False],
}
LEFT_OUT = ("ppo_micro_batch_size_per_gpu", "log_prob_micro_batch_size_per_gpu")


class Case(NamedTuple):
    strategy: Strategy
    settings: Settings


def cases(release: str, count: int) -> list[Case]:
    """As many configurations for a release, always the same ones."""
    draw = Random(release)
    return [_case(draw, release) for _ in range(count)]


def _case(draw: Random, release: str) -> Case:
    strategy: Strategy = draw.choice(["fsdp", "fsdp", "fsdp2", "megatron"])
    prompts = draw.choice(PROMPTS)
    settings: Settings = {
        "data.train_batch_size": prompts,
        f"{ACTOR}.strategy": strategy,
        f"{CRITIC}.strategy": strategy,
        f"{ACTOR}.ppo_mini_batch_size": draw.choice([prompts, prompts, prompts // 2, prompts // 4]),
        **{key: draw.choice(values) for key, values in HERE.items()},
        **{f"{section}_micro_batch_size_per_gpu": draw.choice(MICRO) for section in _micro_batches(draw)},
    }
    settings.update(_groups(draw, strategy, settings))
    if draw.random() < 0.3:
        settings[f"{ACTOR}.use_dynamic_bsz"] = True
    for key in draw.sample(sorted(ODD), draw.choice([0, 0, 1, 1, 2, 3])):
        settings[key] = draw.choice(ODD[key])
    return Case(strategy, {key: value for key, value in settings.items() if _is_of(release, strategy, key)})


def _micro_batches(draw: Random) -> list[str]:
    """All of them; now and then one is not set."""
    every = [f"{ACTOR}.ppo", f"{ROLLOUT}.log_prob", f"{REF}.log_prob", f"{CRITIC}.ppo"]
    return draw.sample(every, 3) if draw.random() < 0.15 else every


def _groups(draw: Random, strategy: Strategy, settings: Settings) -> Settings:
    """Groups of GPUs. Ulysses' always fit: where they do not, it is torch that refuses, which is not here."""
    gpus = settings["trainer.nnodes"] * settings["trainer.n_gpus_per_node"]
    if strategy == "megatron":
        ways = {key: draw.choice([1, 1, 2]) for key in ("tensor_model", "pipeline_model", "context")}
        sections = (f"{ACTOR}.megatron", f"{REF}.megatron", f"{CRITIC}.megatron")
        return {f"{one}.{key}_parallel_size": way for one in sections for key, way in ways.items()}
    ways_of = [way for way in (1, 1, 1, 2, 4) if gpus % way == 0]
    found = {f"{ACTOR}.ulysses_sequence_parallel_size": draw.choice(ways_of)}
    return found | ({f"{MODEL}.use_remove_padding": True} if draw.random() < 0.8 else {})


def _is_of(release: str, strategy: Strategy, key: str) -> bool:
    """What a release does not have as a setting would stop it by that alone."""
    return verlkeys.takes(key, release, "megatron" if strategy == "megatron" else "fsdp")
