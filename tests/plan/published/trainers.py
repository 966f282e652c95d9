"""torchtitan, torchtune, litgpt and others that train without an engine."""

from collections.abc import Iterator
from typing import Any

from tests.plan.published.build import (
    BF16_ADAM,
    BF16_FOREACH,
    FP32_ADAM,
    cross_entropy,
    in_chunks,
    nf4_width,
    shape,
    trained,
)
from tests.plan.published.row import Peak

from oomwatch.plan.memory import logits as copies
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.verlmodels import adapter_parameters
from oomwatch.plan.memory.workload import Shards, Widths

TITAN = "pytorch/torchtitan@b5bcd76c benchmarks/llama3_h100_202412_torchtitan.md"
TUNE = "pytorch/torchtune@bd2a0fc7 README.md:143-156"
TUNE_MODELS = "pytorch/torchtune@bd2a0fc7 README.md:125-132"
LITGPT = "Lightning-AI/litgpt@26857050 config_hub/finetune/README.md"
H100_96_GIB = 95.0
# An alpaca sample in Llama 3's tokens; two of them make a batch that is not packed.
ALPACA_TOKENS = 2 * 200
COMPILED = 0.9  # of what eager layers keep: TO2 against TO3 less what the compiled loss saves


def torchtitan() -> Iterator[Peak]:
    llama, large = shape("Llama-3.1-8B"), shape("Llama-3.1-70B")

    def peak(row: str, line: int, settings: str, measured: float, setup: Setup) -> Peak:
        return Peak(
            row=row,
            source=f"{TITAN}:{line}",
            settings=settings,
            measured_gib=measured,
            reading="reserved",
            setup=setup,
            capacity_gib=H100_96_GIB,
        )

    def eight(tokens: int, gpus: int, **more: Any) -> Setup:
        return trained(llama, tokens, cross_entropy(tokens), gpus=gpus, widths=FP32_ADAM, **more)

    yield peak("TI1", 27, "8B FSDP8 2 x 8192 selective", 82.4, eight(16384, 8, recompute="selective"))
    compiled: dict[str, Any] = {"recompute": "selective", "kept_ratio": COMPILED}
    yield peak("TI3", 29, "8B FSDP8 2 x 8192 selective, compiled, fp8", 76.8, eight(16384, 8, **compiled))
    yield peak("TI9b", 46, "8B FSDP128 2 x 8192 selective, compiled, fp8", 61.8, eight(16384, 128, **compiled))
    for row, line, context in (("TI4", 35, 1), ("TI5", 36, 2), ("TI6", 37, 4)):
        measured = {1: 83.9, 2: 84.2, 4: 84.0}[context]
        settings = f"8B FSDP{8 // context} CP{context} {32768 * context} tokens, full, compiled, fp8"
        yield peak(row, line, settings, measured, eight(32768, 8, kept_ratio=COMPILED))
    tokens = 16 * 8192
    for row, line, measured, more in (("TI10", 52, 71.9, ""), ("TI11", 53, 67.6, ", AsyncTP")):
        shards = Shards(data=32, tensor=8)
        setup = trained(
            large,
            tokens,
            cross_entropy(tokens, shards=8),
            gpus=256,
            widths=FP32_ADAM,
            shards=shards,
            kept_ratio=COMPILED,
        )
        yield peak(row, line, f"70B FSDP32 TP8 16 x 8192, full, compiled, fp8{more}", measured, setup)


def torchtune() -> Iterator[Peak]:
    llama = shape("Llama-3.2-3B")
    packed = 2 * 4096
    compiled_loss = cross_entropy(packed, 6.0)  # scores and their gradient in 16 bit, and half of the fp32 between
    chunks = in_chunks(packed, 8, kept=2.0, each=6.0)
    in_backward = Widths(weights=2, compute=2, gradients=0, optimizer=4)

    def peak(row: str, settings: str, measured: float, setup: Setup) -> Peak:
        return Peak(row=row, source=TUNE, settings=f"Llama-3.2-3B bf16: {settings}", measured_gib=measured, setup=setup)

    yield peak("TO1", "2 samples", 25.5, trained(llama, ALPACA_TOKENS, cross_entropy(ALPACA_TOKENS), recompute="none"))
    yield peak("TO2", "packed", 60.0, trained(llama, packed, cross_entropy(packed), recompute="none"))
    yield peak("TO3", "+ compile", 51.0, trained(llama, packed, compiled_loss, recompute="none", kept_ratio=COMPILED))
    yield peak("TO5", "+ chunked loss, checkpointing", 24.9, trained(llama, packed, chunks, kept_ratio=COMPILED))
    yield peak(
        "TO6", "+ optimizer in backward", 23.1, trained(llama, packed, chunks, widths=in_backward, kept_ratio=COMPILED)
    )
    offloaded: dict[str, Any] = {"boundaries_on_host": True, "kept_ratio": COMPILED}
    yield peak("TO7", "+ activation offload", 21.8, trained(llama, packed, chunks, widths=in_backward, **offloaded))
    lora = adapter_parameters(llama, 8)
    yield peak("TO9", "LoRA, with the rest", 8.5, trained(llama, packed, chunks, trainable=lora, **offloaded))


def torchtune_models() -> Iterator[Peak]:
    eight, seventy = shape("Llama-3.1-8B"), shape("Llama-3.1-70B")
    tokens = 2 * 2048
    chunks = in_chunks(tokens, 8, kept=2.0, each=6.0)

    def peak(row: str, settings: str, measured: float, setup: Setup) -> Peak:
        return Peak(
            row=row, source=TUNE_MODELS, settings=f"{settings}, 2 x 2048, compiled", measured_gib=measured, setup=setup
        )

    paged = Widths(weights=2, compute=2, gradients=0, optimizer=2)
    yield peak(
        "TT1",
        "8B full, paged 8-bit optimizer in backward",
        18.9,
        trained(eight, tokens, chunks, widths=paged, kept_ratio=COMPILED, optimizer_steps_on_host=True),
    )
    nf4 = Widths(weights=nf4_width(eight), compute=2, gradients=4, optimizer=8)
    lora = adapter_parameters(eight, 8)
    yield peak(
        "TT5",
        "8B QLoRA",
        7.4,
        trained(eight, tokens, chunks, widths=nf4, trainable=lora, kept_ratio=COMPILED, gathers_whole_units=False),
    )
    yield peak(
        "TT6",
        "70B full on 8, all on the host",
        13.9,
        trained(
            seventy,
            tokens,
            chunks,
            gpus=8,
            widths=BF16_ADAM,
            kept_ratio=COMPILED,
            streamed=True,
            optimizer_steps_on_host=True,
        ),
    )


def litgpt() -> Iterator[Peak]:
    def peak(
        row: str, model: str, tokens: int, measured_gb: float, each: float | None = None, source: str = LITGPT
    ) -> Peak:
        found = shape(model)
        setup = trained(
            found,
            tokens,
            cross_entropy(tokens, each),
            recompute="none",
            trainable=adapter_parameters(found, 8),
            widths=BF16_FOREACH,
        )
        return Peak(
            row=row,
            source=source,
            settings=f"{model} LoRA, {tokens} tokens",
            measured_gib=measured_gb / 1.0737,
            setup=setup,
        )

    yield peak("LG1", "Llama-3.1-8B", 512, 19.73)
    # Two more fp32 copies for the soft cap on the scores.
    yield peak("LG8", "Gemma-2-2B", 1024, 14.31, copies.CROSS_ENTROPY + 8)
    yield peak("LG14", "Llama-2-7B", 2 * 1304, 29.07, source="Lightning-AI/litgpt tutorials/resource-tables.md")
