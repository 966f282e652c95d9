"""Short ways to say what trainers other than verl do, in the terms of the formulas."""

from typing import Any

from oomwatch.plan.memory import logits as copies
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.workload import Engine, Logits, Model, Pass, Recompute, Shards, Widths
from oomwatch.plan.models import ModelShape, shape_named

BF16_ADAM = Widths(weights=2, compute=2, gradients=2, optimizer=4)  # all in 16 bit, fused: no temporary
BF16_FOREACH = Widths(weights=2, compute=2, gradients=2, optimizer=4, step=2)  # torch's default
FP32_ADAM = Widths(weights=4, compute=2, gradients=4, optimizer=8, step=4)
MIXED = Widths(weights=2, compute=2, gradients=2, optimizer=12)  # 16-bit weights beside an fp32 master: ZeRO
MEGATRON = Widths(weights=2, compute=2, gradients=4, optimizer=12)
NF4_BYTES = 0.5 + 4 / 64 * (1 + 8 / 256)  # 4 bit, and a scale of 8 bit to 64 numbers, each 256 of which share one


def shape(name: str) -> ModelShape:
    found = shape_named(name)
    if found is None:
        raise ValueError(name)
    return found


def cross_entropy(tokens: float, each: float | None = None, shards: int = 1) -> Logits:
    width = copies.CROSS_ENTROPY if each is None else each
    return Logits(tokens=tokens, bytes_each=width, shards=shards, reason="cross entropy on scores in fp32")


def in_chunks(tokens: float, chunks: int, kept: float = 0.0, each: float = copies.CHUNK_BYTES) -> Logits:
    return Logits(tokens=tokens, bytes_each=kept, some_tokens=tokens / chunks, some_bytes_each=each, reason="chunks")


def liger(tokens: float, model: ModelShape) -> Logits:
    """As many chunks as the vocabulary is wider than the model (Liger's fused linear cross entropy)."""
    return in_chunks(tokens, max(1, model.vocab // model.hidden))


def nf4_width(model: ModelShape) -> float:
    """Bytes a parameter where all but embedding and head are in 4 bit."""
    wide = model.embedding_parameters + model.head_parameters
    return (2 * wide + NF4_BYTES * (model.parameters - wide)) / model.parameters


def trained(
    model: ModelShape,
    tokens: float,
    logits: Logits,
    *,
    gpus: int = 1,
    widths: Widths = BF16_ADAM,
    shards: Shards | None = None,
    recompute: Recompute = "full",
    trainable: int | None = None,
    kept_ratio: float = 1.0,
    **more: Any,
) -> Setup:
    """A trainer without an engine, whose step is verl's update_actor. `more`: fields of Model or Pass, by name."""
    of_pass = {key: value for key, value in more.items() if key in Pass.__struct_fields__}
    of_model = {key: value for key, value in more.items() if key in Model.__struct_fields__}
    actor = Model(
        shape=model,
        shards=shards or Shards(data=gpus),
        widths=widths,
        trainable=trainable,
        **of_model,
    )
    work = Pass(tokens=tokens, logits=logits, recompute=recompute, kept_ratio=kept_ratio, **of_pass)
    return Setup(gpus=gpus, actor=actor, passes={"update_actor": work})


def served(name: str, **settings: Any) -> Engine:
    return Engine(shape=shape(name), **settings)
