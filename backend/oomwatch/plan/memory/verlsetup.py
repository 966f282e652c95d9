"""verl's configuration as models, an engine and passes. Of the formulas the files verl* and largest know its keys.

What verl does with a key was read in its code, 0.4 to 0.9: workers/fsdp_workers.py, workers/actor/dp_actor.py,
workers/engine/fsdp/transformer_impl.py and workers/megatron_workers.py.
"""

import re
from collections.abc import Iterator

from oomwatch.plan.batches import Batches, batches_of
from oomwatch.plan.memory.names import Assumed
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.verlengine import engine_of
from oomwatch.plan.memory.verlmodels import actor_of, critic_of, reference_of
from oomwatch.plan.memory.verlpasses import Lengths, pass_of
from oomwatch.plan.memory.workload import Pass
from oomwatch.plan.reader import Reader, reader_of
from oomwatch.plan.settings import Config
from oomwatch.plan.shape import ModelShape

# From here on weights wake, are sent, and only then the cache wakes: vLLM by its tags, SGLang always from 0.7.
_STAGED_SINCE = {"vllm": "0.4.0", "sglang": "0.7.0"}
# A prompt of GSM8K with the template, about 120, and a solution in words, about 280: what verl's tuned scripts fit by.
GSM8K_TOKENS = 400.0
# Models that write their thoughts first, at any length.
_THINKS = re.compile(r"qwen-?3(?!.*(?:base|instruct|coder))|qwq|think|reason|(?<![a-z])r1(?!\d)", re.IGNORECASE)
_BUCKETS = (
    "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes",
    "actor_rollout_ref.rollout.update_weights_bucket_megabytes",
)


def setup_of(
    config: Config,
    shape: ModelShape,
    version: str | None = None,
    critic_shape: ModelShape | None = None,
    mean_length_tokens: float | None = None,
) -> Setup:
    """A run as the formulas see it.

    `mean_length_tokens`: of prompt and response, where it is known that sequences are shorter than the caps. Where it
    is not told, that of the data set, if it is known; else all are taken to be as long as is allowed.
    """
    told, batches = reader_of(config, version), batches_of(config, version)
    has_critic = batches.phase("update_critic") is not None
    mean = mean_length_tokens if mean_length_tokens is not None else _known_length(told)
    lengths = lengths_of(told, mean)
    return Setup(
        gpus=batches.gpus or 1,
        nodes=told.positive("trainer.nnodes", otherwise=1),
        actor=actor_of(told, shape, batches),
        critic=critic_of(told, critic_shape or shape, batches) if has_critic else None,
        reference=reference_of(told, shape, batches) if batches.phase("ref") else None,
        engine=engine_of(told, shape),
        passes=dict(_passes(told, batches, lengths)),
        longest_tokens=lengths.longest,
        bucket_bytes=told.positive(*_BUCKETS, otherwise=512) * 2**20,
        wakes_in_stages=_wakes_in_stages(told),
        dataset_sequences=batches.sequences_per_step or 0,
        assumed=tuple(_assumed(told, shape, mean_length_tokens)),
    )


def _assumed(told: Reader, shape: ModelShape, mean_length_tokens: float | None) -> Iterator[Assumed]:
    """What the estimate takes for granted or leaves out."""
    if mean_length_tokens is None:
        yield "longest_batch" if _known_length(told) is None else "known_lengths"
    if told.is_on("reward_model.enable") or told.is_on("reward.reward_model.enable"):
        yield "no_reward_model"
    if shape.other_parameters:
        yield "no_images"


def lengths_of(told: Reader, mean_tokens: float | None) -> Lengths:
    prompt = told.positive("data.max_prompt_length", otherwise=512)
    response = told.positive("data.max_response_length", "actor_rollout_ref.rollout.response_length", otherwise=512)
    longest = prompt + response
    return Lengths(longest=longest, response=response, mean=min(mean_tokens or longest, longest))


def _passes(told: Reader, batches: Batches, lengths: Lengths) -> Iterator[tuple[str, Pass]]:
    """The pass of every phase whose size is known."""
    for phase in batches.phases:
        work = pass_of(told, phase, lengths)
        if work is not None:
            yield phase.phase, work


def _known_length(told: Reader) -> float | None:
    """Of the one data set whose lengths are known well enough: its caps say nothing of them.

    verl's own default names it too, for runs that are given their data in another way.
    """
    files = str(told.config.get("data.train_files", "")).lower().split(",")
    is_known = all("gsm8k" in file and "/rlhf/gsm8k/" not in file for file in files)
    return GSM8K_TOKENS if is_known and not _THINKS.search(told.text("actor_rollout_ref.model.path")) else None


def _wakes_in_stages(told: Reader) -> bool:
    if told.is_on("actor_rollout_ref.rollout.multi_stage_wake_up"):
        return True
    engine = "sglang" if "sglang" in told.text("actor_rollout_ref.rollout.name") else "vllm"
    return told.since(_STAGED_SINCE[engine])
