"""What the formulas need to know, whatever the framework: one model that is trained or asked, and one pass through it.

A framework's own configuration is translated into these (verl's in verlsetup.py); the formulas know no framework.
"""

from typing import Literal

from msgspec import Struct

from oomwatch.plan.shape import ModelShape

Recompute = Literal["none", "selective", "full"]


class Shards(Struct, frozen=True, kw_only=True):
    """Into how many parts a model is divided. ZeRO's stages are the three flags: 1, 1 + gradients, all (FSDP)."""

    data: int = 1  # processes among which weights, gradients or optimizer states are divided
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1  # processes among which experts are dealt out
    expert_tensor: int | None = None  # into which each expert is divided; None: as `tensor`
    weights: bool = True  # divided by `data` too
    gradients: bool = True
    optimizer: bool = True
    sequence_parallel: bool = True  # activations between tensor-parallel regions are divided by `tensor` too


class Widths(Struct, frozen=True, kw_only=True):
    """Bytes a parameter."""

    weights: float = 4.0
    compute: float = 2.0  # what the weights become for a matrix product
    gradients: float = 4.0
    optimizer: float = 8.0  # moments, and a master copy where there is one
    step: float = 0.0  # that the optimizer's step takes for a moment
    on_host: float = (
        0.0  # of an optimizer that steps on the host: its states, its weights, and the gradients it is sent
    )


class Model(Struct, frozen=True, kw_only=True):
    """A model in a training process, and where its parts are kept."""

    shape: ModelShape
    shards: Shards = Shards()
    widths: Widths = Widths()
    trainable: int | None = None  # parameters that learn; None: all of them, 0: it is only asked
    scalar_head: bool = False  # a critic or reward model: one number a token instead of a vocabulary
    weights_on_host: bool = False  # while it is idle
    optimizer_on_host: bool = False  # while it is idle
    optimizer_steps_on_host: bool = False  # the states never come to the GPU
    streamed: bool = False  # the weights stay on the host and come a unit at a time
    gathers_whole_units: bool = True  # a layer's weights are put together before it runs (FSDP, ZeRO-3)
    keeps_gathered: bool = False  # and stay so until the backward pass is done (reshard_after_forward: false)

    @property
    def learns(self) -> bool:
        return self.trainable != 0


class Logits(Struct, frozen=True, kw_only=True):
    """Scores over the vocabulary: how many at once, and the bytes of all copies of one at the worst moment."""

    tokens: float = 0.0
    bytes_each: float = 0.0
    some_tokens: float = 0.0  # of which more copies are alive: a chunk, or the responses alone
    some_bytes_each: float = 0.0
    shards: int = 1  # of the vocabulary
    reason: str = ""


class Pass(Struct, frozen=True, kw_only=True):
    """One micro batch through a model, on one GPU."""

    tokens: float  # on this GPU, after sequence or context parallelism
    logits: Logits = Logits()
    learns: bool = True  # forward and backward; else forward alone, of which nothing is kept
    recompute: Recompute = "full"
    kept_ratio: float = 1.0  # of what a layer keeps where nothing is recomputed: a compiler keeps less
    boundaries_on_host: bool = False  # activation offload
    accumulates: bool = False  # gradients of earlier micro batches are there when it begins
    sync_deferred: bool = False  # those gradients are whole, not divided (no_sync)
    in_flight: int = 1  # micro batches whose activations a pipeline's first stage keeps at once


class Engine(Struct, frozen=True, kw_only=True):
    """A rollout engine on a GPU."""

    shape: ModelShape
    name: Literal["vllm", "sglang"] = "vllm"
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    share: float = 0.5  # gpu_memory_utilization, mem_fraction_static
    sequences: int = 1024  # max_num_seqs
    batched_tokens: int = 8192  # max_num_batched_tokens
    weight_bytes: float = 2.0
    kv_bytes: float = 2.0
    graphs: bool = True  # CUDA graphs, unless eager
    sleeps: bool = True  # gives its memory back while the model trains
    keeps_weights_on_host: bool = False  # while it sleeps (vLLM's level 1)
