"""Activations: what a forward pass keeps for the backward pass.

Counted operation by operation for a decoder with RMSNorm, grouped-query attention without a stored score matrix
(FlashAttention) and a gated feed-forward, in 16 bit, after Korthikanti et al. 2022. Of a token a layer keeps, in bytes
    norms       2 x (2 h input + 4 h in fp32 + 2 h normalised)
    attention   2 (q + 2 k) before and 2 (q + k) after rotation, 2 q out
    feed-forward 2 f each: gate, up, activated gate, product
"""

from oomwatch.plan.memory.part import Part, amount
from oomwatch.plan.memory.workload import Model, Pass

KORTHIKANTI = "Korthikanti et al. 2022, counted for RMSNorm, grouped-query FlashAttention and a gated feed-forward"
# Of what a layer keeps, selective recomputation (every second matrix product; attention inside Megatron) keeps so much.
SELECTIVE_RATIO = 0.5


def layer_bytes_per_token(model: Model) -> float:
    """What one layer keeps of one token where nothing is recomputed."""
    shape, shards = model.shape, model.shards
    queries = shape.heads * shape.head_dim
    keys = shape.kv_heads * shape.head_dim
    if shape.latent is not None:
        queries = shape.heads * (shape.latent.nope_dim + shape.latent.rope_dim)
        keys = shape.heads * shape.latent.nope_dim
    inner = 2 * (queries + 2 * keys) + 2 * (queries + keys) + 2 * queries + 8 * shape.active_ffn
    between = 2 * 8 * shape.hidden
    return inner / shards.tensor + between / _between_shards(model)


def boundaries(model: Model, work: Pass) -> Part | None:
    """Inputs of the layers, from which they are computed again: 2 h a token and layer."""
    if not (work.learns and work.recompute == "full") or work.boundaries_on_host:
        return None
    layers = _layers_kept(model, work)
    each = 2 * model.shape.hidden / _between_shards(model)
    formula = f"2 B x {amount(work.tokens)} tokens x {model.shape.hidden} x {layers:g} layers"
    return Part(
        name="boundaries", bytes=round(each * layers * work.tokens), formula=formula, source=KORTHIKANTI, spread=0.1
    )


def kept(model: Model, work: Pass) -> Part | None:
    """What all layers keep where not everything is computed again."""
    if not work.learns or work.recompute == "full":
        return None
    ratio = work.kept_ratio * (SELECTIVE_RATIO if work.recompute == "selective" else 1.0)
    layers = _layers_kept(model, work)
    size = ratio * layer_bytes_per_token(model) * layers * work.tokens
    formula = f"{amount(ratio * layer_bytes_per_token(model))} B x {amount(work.tokens)} tokens x {layers:g} layers"
    return Part(name="activations", bytes=round(size), formula=formula, source=KORTHIKANTI, spread=0.25)


def layer_at_work(model: Model, work: Pass) -> Part:
    """The layer that is computed at the moment."""
    ratio = work.kept_ratio if work.learns else 0.5  # without a backward pass each result is dropped when it was used
    each = ratio * layer_bytes_per_token(model)
    formula = f"{amount(each)} B x {amount(work.tokens)} tokens"
    return Part(name="layer", bytes=round(each * work.tokens), formula=formula, source=KORTHIKANTI, spread=0.3)


def _layers_kept(model: Model, work: Pass) -> float:
    """Layers of this GPU, as often as micro batches are on their way through the pipeline."""
    return model.shape.layers / model.shards.pipeline * work.in_flight


def _between_shards(model: Model) -> int:
    return model.shards.tensor if model.shards.sequence_parallel else 1
