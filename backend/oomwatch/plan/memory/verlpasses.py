"""verl's micro batches as passes: how many tokens, what of the scores is alive at once, and what is computed again."""

from typing import NamedTuple

from oomwatch.plan.batches import PhaseBatches
from oomwatch.plan.memory import logits as copies
from oomwatch.plan.memory.activations import MEGATRON_RATIO
from oomwatch.plan.memory.workload import Logits, Pass, Recompute
from oomwatch.plan.reader import Reader

_ACTOR, _MODEL, _CRITIC = "actor_rollout_ref.actor", "actor_rollout_ref.model", "critic"
_CRITIC_PHASES = ("values", "update_critic")
_SCORES = "verl's log_probs and entropy over tokens x vocabulary; the copies alive at once, by its code"
# Of Megatron; the second until 0.4.
_GRANULARITIES = (
    "{}.megatron.override_transformer_config.recompute_granularity",
    f"{_MODEL}.gradient_checkpointing_kwargs.activations_checkpoint_granularity",
)
_CHUNK_TOKENS = 2048.0  # verl's entropy_from_logits_chunk_size, and the rows its fused kernels work on


class Lengths(NamedTuple):
    longest: int  # prompt and response at their caps
    response: int
    mean: float  # of prompt and response, as they are expected


def pass_of(told: Reader, phase: PhaseBatches, lengths: Lengths) -> Pass | None:
    """The largest micro batch of a phase; None where its size is not known."""
    tokens = _tokens(told, phase, lengths)
    if tokens is None:
        return None
    learns = phase.phase.startswith("update")
    return Pass(
        tokens=tokens,
        learns=learns,
        logits=Logits() if phase.phase in _CRITIC_PHASES else _logits(told, phase.phase, tokens, lengths),
        recompute=_recompute(told, phase.phase),
        kept_ratio=MEGATRON_RATIO if told.strategy == "megatron" else 1.0,
        boundaries_on_host=told.strategy != "megatron"
        and told.is_on(f"{_section(phase.phase)}.enable_activation_offload"),
        accumulates=learns and (told.strategy == "megatron" or (phase.micro_batches or 2) > 1),
        sync_deferred=learns and told.is_on(f"{_engine(phase.phase)}.use_no_sync_for_gradient_accumulation"),
        in_flight=_in_flight(told, phase),
    )


def _tokens(told: Reader, phase: PhaseBatches, lengths: Lengths) -> float | None:
    """Of one micro batch on one GPU: the cap of a dynamic batch, but no more than there are; else sequences x length.

    Where padding stays, every sequence is as long as the longest that is allowed.
    """
    packed = told.is_on(f"{_section(phase.phase)}.use_remove_padding") or told.strategy == "megatron"
    length = lengths.mean if packed else lengths.longest
    if phase.is_dynamic:
        whole = (phase.sequences_per_gpu or 0) * length / phase.shares
        cap = phase.tokens_per_micro_batch
        return None if cap is None else min(float(cap), whole) if whole else float(cap)
    if phase.micro_batch_size_per_gpu is None:
        return None
    return phase.micro_batch_size_per_gpu * length / phase.shares


def _worker(phase: str) -> str:
    """Whose settings a phase goes by."""
    return _CRITIC if phase in _CRITIC_PHASES else _ACTOR


def _engine(phase: str) -> str:
    """The section of those that FSDP goes by."""
    return f"{_CRITIC}.fsdp" if phase in _CRITIC_PHASES else f"{_ACTOR}.fsdp_config"


def _section(phase: str) -> str:
    return f"{_CRITIC}.model" if phase in _CRITIC_PHASES else _MODEL


def _logits(told: Reader, phase: str, tokens: float, lengths: Lengths) -> Logits:
    if told.first(f"{_MODEL}.use_fused_kernels", f"{_ACTOR}.use_fused_kernels") is True:
        return _chunked(told, tokens, 0.0)
    if told.strategy == "megatron":
        return _whole(told, tokens, copies.DIVIDED_VOCABULARY)
    if not _with_entropy(told, phase):
        return _whole(told, tokens, copies.LOG_PROBS)
    settings = _of_entropy(told)
    if told.is_on(f"{settings}.entropy_from_logits_with_chunking"):
        return _chunked(told, tokens, copies.LOG_PROBS if phase == "update_actor" else copies.SCORES)
    eager = copies.EAGER_ENTROPY_LEARNING if phase == "update_actor" else copies.EAGER_ENTROPY
    if not told.is_on(f"{_MODEL}.use_remove_padding"):
        return _padded(tokens, lengths, eager)
    is_compiled = told.is_on(f"{settings}.use_torch_compile")
    return _whole(told, tokens, copies.LOG_PROBS_AND_ENTROPY if is_compiled else eager)


def _of_entropy(told: Reader) -> str:
    """The section that says how entropy is worked out: an engine reads its own, whatever stands beside it."""
    return f"{_ACTOR}.fsdp_config" if told.has_engines else _ACTOR


def _with_entropy(told: Reader, phase: str) -> bool:
    """The log-probabilities of the rollout always come with it; an update where it is part of the loss."""
    if phase == "update_actor":
        return told.ratio(f"{_ACTOR}.entropy_coeff", otherwise=0) != 0 or told.is_on(f"{_ACTOR}.calculate_entropy")
    return phase == "old_log_prob"


def _whole(told: Reader, tokens: float, bytes_each: float) -> Logits:
    return Logits(tokens=tokens, bytes_each=bytes_each, shards=_vocabulary_shards(told), reason=_SCORES)


def _chunked(told: Reader, tokens: float, bytes_each: float) -> Logits:
    """Of a chunk everything, of the rest what is kept."""
    return Logits(
        tokens=tokens,
        bytes_each=bytes_each,
        some_tokens=min(tokens, _CHUNK_TOKENS),
        some_bytes_each=copies.CHUNK_BYTES,
        shards=_vocabulary_shards(told),
        reason=_SCORES,
    )


def _padded(tokens: float, lengths: Lengths, bytes_each: float) -> Logits:
    """Scores of prompts and responses; copies of the responses alone, for which verl cuts them out."""
    responses = tokens * lengths.response / lengths.longest
    return Logits(
        tokens=tokens, bytes_each=copies.SCORES, some_tokens=responses, some_bytes_each=bytes_each, reason=_SCORES
    )


def _vocabulary_shards(told: Reader) -> int:
    if told.strategy != "megatron":
        return 1
    return told.positive(f"{_ACTOR}.megatron.tensor_model_parallel_size", otherwise=1)


def _recompute(told: Reader, phase: str) -> Recompute:
    if told.strategy == "megatron":
        granularity = told.text(*(key.format(_worker(phase)) for key in _GRANULARITIES))
        return "full" if granularity == "full" else "none"  # "selective" spares what FlashAttention does not keep
    return "full" if told.is_on(f"{_section(phase)}.enable_gradient_checkpointing") else "none"


def _in_flight(told: Reader, phase: PhaseBatches) -> int:
    """Micro batches of which a pipeline's first stage keeps the activations: as many as it has stages (1F1B)."""
    if told.strategy != "megatron":
        return 1
    stages = told.positive(f"{_worker(phase.phase)}.megatron.pipeline_model_parallel_size", otherwise=1)
    return min(stages, phase.micro_batches or stages)
