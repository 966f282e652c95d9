"""verl's rollout settings as an engine."""

from typing import Literal

from oomwatch.plan.memory.workload import Engine
from oomwatch.plan.reader import Reader
from oomwatch.plan.shape import ModelShape

_ROLLOUT = "actor_rollout_ref.rollout"
_TELLS_SEQUENCES_SINCE = "0.6.0"  # before, verl kept max_num_seqs from vLLM, whose own default held
_VLLM_SEQUENCES = 256
_SLEEPS_DEEPER_SINCE = "0.6.0"  # before, sleep(level=1): the engine's weights went to the host


def engine_of(told: Reader, shape: ModelShape) -> Engine | None:
    """None where no engine shares the cards: rollout by the trainer's own model, or on GPUs of its own."""
    name = told.text(f"{_ROLLOUT}.name") or "vllm"
    if name == "hf" or told.ratio(f"{_ROLLOUT}.nnodes", otherwise=0) > 0:
        return None
    kind: Literal["vllm", "sglang"] = "sglang" if "sglang" in name else "vllm"
    return Engine(
        shape=shape,
        name=kind,
        tensor=told.positive(f"{_ROLLOUT}.tensor_model_parallel_size", otherwise=1),
        pipeline=told.positive(f"{_ROLLOUT}.pipeline_model_parallel_size", otherwise=1),
        expert=told.positive(f"{_ROLLOUT}.expert_parallel_size", otherwise=1),
        share=told.ratio(f"{_ROLLOUT}.gpu_memory_utilization", otherwise=0.5),
        sequences=_sequences(told),
        batched_tokens=told.positive(f"{_ROLLOUT}.max_num_batched_tokens", otherwise=8192),
        weight_bytes=1.0 if "fp8" in told.text(f"{_ROLLOUT}.quantization") else 2.0,
        graphs=not told.is_on(f"{_ROLLOUT}.enforce_eager"),
        sleeps=told.value(f"{_ROLLOUT}.free_cache_engine") is not False,
        keeps_weights_on_host=kind == "vllm" and not told.since(_SLEEPS_DEEPER_SINCE),
    )


def _sequences(told: Reader) -> int:
    if not told.since(_TELLS_SEQUENCES_SINCE):
        return _VLLM_SEQUENCES
    return told.positive(f"{_ROLLOUT}.max_num_seqs", otherwise=_VLLM_SEQUENCES)
