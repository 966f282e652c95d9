"""Activations: what a forward pass keeps for the backward pass.

Counted operation by operation for a decoder with RMSNorm, grouped-query attention without a stored score matrix
(FlashAttention) and a gated feed-forward, in 16 bit, after Korthikanti et al. 2022. Of a token a layer keeps, in bytes
    norms       2 x (2 h input + 2 h normalised + 2 h between, as the mean of fused norms and of those in fp32)
    attention   2 (q + 2 k) before and 2 (q + k) after rotation, 2 q out
    feed-forward 2 f each: gate, up, activated gate, product; of experts, of those that it passes
"""

from oomwatch.plan.memory.part import Part, amount
from oomwatch.plan.memory.workload import Model, Pass
from oomwatch.plan.shape import ModelShape

KORTHIKANTI = "Korthikanti et al. 2022, counted for RMSNorm, grouped-query FlashAttention and a gated feed-forward"
# Of what a layer keeps, PyTorch's selective recomputation keeps so much: the results of every second matrix product
# and of attention, and the layer's input. Megatron's spares the score matrix, which FlashAttention never keeps.
SELECTIVE_RATIO = 0.36
# Fused kernels (Transformer Engine in Megatron) keep 6 f instead of 8 f, no vectors before rotation, no fp32 norms.
MEGATRON_RATIO = 0.72
_WHOLE_AT_ONCE = 2  # what a product takes in, and what comes out before it is divided


def layer_bytes_per_token(model: Model) -> float:
    """What one layer keeps of one token where nothing is recomputed."""
    shape, shards = model.shape, model.shards
    queries = shape.heads * shape.head_dim
    keys = shape.kv_heads * shape.head_dim
    if shape.latent is not None:
        queries = shape.heads * (shape.latent.nope_dim + shape.latent.rope_dim)
        keys = shape.heads * shape.latent.nope_dim
    inner = 2 * (queries + 2 * keys) + 2 * (queries + keys) + 2 * queries + 8 * shape.active_ffn
    between = 2 * 6 * shape.hidden + _sent_to_experts(shape)
    return inner / shards.tensor + between / _between_shards(model)


def _sent_to_experts(shape: ModelShape) -> int:
    """A token's copies on their way to its experts and back."""
    return 0 if shape.experts is None else 4 * shape.hidden * shape.experts.per_token


def boundaries(model: Model, work: Pass) -> Part | None:
    """Inputs of the layers, from which they are computed again: 2 h a token and layer."""
    if not (work.learns and work.recompute == "full") or work.boundaries_on_host:
        return None
    layers = _layers_kept(model, work)
    each = 2 * model.shape.hidden / _between_shards(model)
    formula = f"2 bytes x {amount(work.tokens)} tokens x {model.shape.hidden} x {layers:g} layers"
    return Part(
        name="boundaries",
        stay="per_token",
        bytes=round(each * layers * work.tokens),
        formula=formula,
        source=KORTHIKANTI,
        spread=0.1,
    )


def kept(model: Model, work: Pass) -> Part | None:
    """What all layers keep where not everything is computed again."""
    if not work.learns or work.recompute == "full":
        return None
    ratio = work.kept_ratio * (SELECTIVE_RATIO if work.recompute == "selective" else 1.0)
    layers = _layers_kept(model, work)
    size = ratio * layer_bytes_per_token(model) * layers * work.tokens
    formula = f"{amount(ratio * layer_bytes_per_token(model))} bytes x {amount(work.tokens)} tokens x {layers:g} layers"
    return Part(
        name="activations", stay="per_token", bytes=round(size), formula=formula, source=KORTHIKANTI, spread=0.25
    )


def sequences_together(model: Model, work: Pass) -> Part | None:
    """Sequence parallelism divides what lies between matrix products; each of these needs the whole again."""
    shards = model.shards
    if shards.tensor == 1 or not shards.sequence_parallel:
        return None
    size = _WHOLE_AT_ONCE * 2 * work.tokens * model.shape.hidden
    formula = f"{_WHOLE_AT_ONCE} x 2 bytes x {amount(work.tokens)} tokens x {model.shape.hidden}"
    return Part(name="sequences", stay="per_token", bytes=round(size), formula=formula, source=KORTHIKANTI, spread=0.5)


def layer_at_work(model: Model, work: Pass) -> Part:
    """The layer that is computed at the moment."""
    ratio = work.kept_ratio if work.learns else 0.5  # without a backward pass each result is dropped when it was used
    each = ratio * layer_bytes_per_token(model)
    formula = f"{amount(each)} bytes x {amount(work.tokens)} tokens"
    return Part(
        name="layer", stay="per_token", bytes=round(each * work.tokens), formula=formula, source=KORTHIKANTI, spread=0.3
    )


def _layers_kept(model: Model, work: Pass) -> float:
    """Layers of this GPU, as often as micro batches are on their way through the pipeline."""
    return model.shape.layers / model.shards.pipeline * work.in_flight


def _between_shards(model: Model) -> int:
    return model.shards.tensor if model.shards.sequence_parallel else 1
