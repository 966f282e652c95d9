"""ms-swift's examples, each with what its header says it takes: torch's reserved memory, as ms-swift logs it.

Lengths are caps there ("2048 max") of short instructions (alpaca): the longest of a batch of 16 is taken to have 700
tokens. The peak of a run with one sample a batch is that of its longest sample, which reaches the cap.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from tests.plan.published.build import BF16_FOREACH, MEGATRON, MIXED, cross_entropy, liger, shape, trained
from tests.plan.published.row import Peak

from oomwatch.plan.memory.activations import MEGATRON_RATIO
from oomwatch.plan.memory.logits import DIVIDED_VOCABULARY
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.verlmodels import adapter_parameters
from oomwatch.plan.memory.workload import Logits, Shards, Widths
from oomwatch.plan.models import ModelShape

SWIFT = "modelscope/ms-swift@3602360a examples"
RANK = 8
# Precision-aware: of the master copy only what the 16-bit weights lack is kept.
_PRECISE = Widths(weights=2, compute=2, gradients=4, optimizer=10)


def _peak(row: str, at: str, settings: str, measured: float, setup: Setup) -> Peak:
    return Peak(
        row=row, source=f"{SWIFT}/{at}", settings=settings, measured_gib=measured, reading="reserved", setup=setup
    )


def megatron() -> Iterator[Peak]:
    seven, large, fourteen, sparse, huge = (
        shape(name) for name in ("Qwen2.5-7B", "Qwen2.5-72B", "Qwen3-14B", "Qwen3-30B-A3B", "Qwen3-235B-A22B")
    )

    def group(tensor: int, data: int = 1, pipeline: int = 1, expert: int = 1) -> Shards:
        shards = Shards(tensor=tensor, data=data, pipeline=pipeline, expert=expert, expert_tensor=1)
        return msgspec.structs.replace(shards, weights=False, gradients=False)

    def meg(found: ModelShape, tokens: float, shards: Shards, gpus: int, **more: Any) -> Setup:
        options: dict[str, Any] = {
            "widths": MEGATRON,
            "gathers_whole_units": False,
            "accumulates": True,
            "kept_ratio": MEGATRON_RATIO,
            **more,
        }
        scores: Logits = cross_entropy(tokens, DIVIDED_VOCABULARY, shards=shards.tensor)
        return trained(found, tokens, scores, gpus=gpus, shards=shards, **options)

    padded = 16 * 700
    lora = {"trainable": adapter_parameters(seven, RANK)}
    for row, at, measured in (("SW2", "megatron/lora/dense.sh:1", 70.0), ("SW4", "megatron/sft.sh:1", 80.0)):
        yield _peak(row, at, "Megatron 7B TP2, 16 x 2048 max", measured, meg(seven, padded, group(2), 2))
    yield _peak(
        "SW3", "megatron/lora/dense.sh:2", "Megatron 7B LoRA TP2", 14.0, meg(seven, padded, group(2), 2, **lora)
    )
    on_host = {"widths": _PRECISE, "optimizer_steps_on_host": True}
    yield _peak(
        "SW7",
        "megatron/dense/72b_offload.sh:1",
        "Megatron 72B TP8, optimizer on the host",
        65.0,
        meg(large, 8192, group(8), 8, **on_host),
    )
    yield _peak(
        "SW11",
        "megatron/moe/qwen3_moe.sh:2",
        "Megatron 30B-A3B PP2 EP8",
        60.0,
        meg(sparse, 8192, group(1, data=8, pipeline=2, expert=8), 16, in_flight=2),
    )
    adapters = {"trainable": adapter_parameters(huge, RANK)}
    yield _peak(
        "SW15",
        "megatron/lora/qwen3_235b.sh:1",
        "Megatron 235B LoRA TP4 EP8",
        80.0,
        meg(huge, 8 * 700, group(4, data=2, expert=8), 8, **adapters),
    )
    yield _peak(
        "SW18",
        "megatron/fp8/benchmark.sh:1",
        "Megatron 14B TP4, selective",
        52.0,
        meg(fourteen, 8192, group(4, data=2), 8, widths=_PRECISE, recompute="none"),
    )


def transformers() -> Iterator[Peak]:
    three, seven, large = shape("Qwen2.5-3B"), shape("Qwen2.5-7B"), shape("Qwen2.5-32B")
    longest, gpus = 2048, 4
    lora: dict[str, Any] = {"trainable": adapter_parameters(seven, RANK), "widths": BF16_FOREACH}
    yield _peak(
        "SW19",
        "train/full/train.sh:1",
        "7B full bf16",
        76.0,
        trained(seven, longest, cross_entropy(longest), widths=BF16_FOREACH),
    )
    yield _peak(
        "SW21",
        "train/lora_sft.sh:1",
        "7B LoRA, 2048 max",
        22 / 1.0737,
        trained(seven, longest, cross_entropy(longest), **lora),
    )
    whole = Shards(data=2, weights=False, gradients=False, optimizer=False)
    yield _peak(
        "SW22",
        "train/multi-gpu/ddp/train.sh:1",
        "7B LoRA DDP, 2048 max",
        27.5,
        trained(seven, longest, cross_entropy(longest), gpus=2, shards=whole, **lora),
    )
    yield _peak(
        "SW24",
        "train/multi-gpu/deepspeed/train_zero3.sh:1",
        "7B LoRA ZeRO-3",
        16.0,
        trained(seven, longest, cross_entropy(longest), gpus=2, **lora),
    )
    yield _peak(
        "SW28",
        "train/liger/sft.sh:3",
        "7B full ZeRO-3, 8192",
        54 / 1.0737,
        trained(seven, 8192, cross_entropy(8192), gpus=gpus, widths=MIXED),
    )
    yield _peak(
        "SW30",
        "train/flash_attention_3/transformers.sh:2",
        "7B full ZeRO-3, Liger, 16384",
        43.0,
        trained(seven, 16384, liger(16384, seven), gpus=gpus, widths=MIXED),
    )
    yield _peak(
        "SW34",
        "train/padding_free/sft.sh:4",
        "7B full ZeRO-3, Liger, 8 x 8192 max",
        44.0,
        trained(seven, 8 * 4096, liger(8 * 4096, seven), gpus=gpus, widths=MIXED),
    )
    yield _peak(
        "SW36",
        "train/rlhf/dpo/lora.sh:1",
        "7B LoRA DPO, 2 x 2048 max",
        24.0,
        trained(seven, 2 * longest, cross_entropy(2 * longest), **lora),
    )
    yield _peak(
        "SW42",
        "train/agent/qwen2_5.sh:1",
        "3B full, Liger, 8192",
        35.0,
        trained(three, 8192, liger(8192, three), widths=BF16_FOREACH),
    )
    far = 512_000 // 8
    yield _peak(
        "SW46",
        "train/sequence_parallel/sequence_parallel_512k.sh:1",
        "32B LoRA ZeRO-3 on the host, Liger, 512,000 tokens over 8",
        80.0,
        trained(
            large,
            far,
            liger(far, large),
            gpus=8,
            widths=BF16_FOREACH,
            trainable=adapter_parameters(large, RANK),
            streamed=True,
        ),
    )
