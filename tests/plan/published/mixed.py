"""OpenRLHF, TRL, Unsloth and trainers of one's own, and runs of which only the end is known."""

from collections.abc import Iterator

import msgspec
from tests.plan.published.build import (
    BF16_ADAM,
    BF16_FOREACH,
    FP32_ADAM,
    MIXED,
    cross_entropy,
    nf4_width,
    served,
    shape,
    trained,
)
from tests.plan.published.row import Fit, Peak

from oomwatch.plan.memory import logits as copies
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.verlmodels import adapter_parameters
from oomwatch.plan.memory.workload import Logits, Recompute, Widths

SCRATCH = "garg-aayush/building-from-scratch (eb52b83) grpo/Notes.md:26-110"
TRL = "huggingface/trl#6092"
OPENRLHF = "OpenRLHF/OpenRLHF#698"
LITGPT = "Lightning-AI/litgpt@26857050 config_hub/finetune/README.md"
A100_GIB, H100_GIB, RTX_4090_GIB = 79.15, 79.18, 23.55


def scratch() -> Iterator[Peak]:
    """A GRPO loop beside vLLM in one process: responses up to 1,024, prompts of about 80."""
    model, tokens = shape("Qwen2.5-Math-1.5B"), 1104
    engine = served("Qwen2.5-Math-1.5B", share=0.2, sequences=256, graphs=False, sleeps=False)
    eight_bit = Widths(weights=2, compute=2, gradients=2, optimizer=2)
    scores = cross_entropy(tokens, copies.CROSS_ENTROPY_EAGER)
    rows: tuple[tuple[str, str, float, Recompute, Widths], ...] = (
        ("GA1", "as it is", 21.43, "none", BF16_FOREACH),
        ("GA3", "checkpointing", 18.57, "full", BF16_FOREACH),
        ("GA4", "checkpointing, 8-bit AdamW", 15.75, "full", eight_bit),
    )
    for row, settings, measured, recompute, widths in rows:
        setup = trained(model, tokens, scores, widths=widths, recompute=recompute, accumulates=True)
        yield Peak(
            row=row,
            source=SCRATCH,
            settings=f"1.5B bf16 with vLLM in the process: {settings}",
            measured_gib=measured,
            reading="allocated with pool",
            setup=msgspec.structs.replace(setup, engine=engine),
            capacity_gib=RTX_4090_GIB,
        )


def trl() -> Iterator[Peak]:
    """Full AsyncGRPO of Qwen3-1.7B on one GPU, kind of reading not stated."""
    model = shape("Qwen3-1.7B")
    rows = (
        ("TR3-padded-6112", 6112, 37.0),
        ("TR3-padding-6112", 6112, 35.7),
        ("TR3-padding-6950", 6950, 33.8),
        ("TR3-padding-13009", 13009, 38.8),
        ("TR3-padding-14922", 14922, 37.1),
    )
    for row, tokens, measured in rows:
        scores = Logits(tokens=tokens, bytes_each=8.0, reason="scores, their scaled copy and both gradients, in 16 bit")
        setup = trained(model, tokens, scores, widths=FP32_ADAM)
        settings = f"1.7B fp32, {tokens} tokens"
        yield Peak(row=row, source=TRL, settings=settings, measured_gib=measured, reading="reserved", setup=setup)


def openrlhf() -> Iterator[Peak]:
    """Weights in 16 bit and their fp32 master are there before the moments are."""
    llama = shape("Llama-3-8B")
    prepared = Widths(weights=2, compute=2, gradients=2, optimizer=4)
    for row, settings, tokens, learns, measured in (
        ("OR1 prepared", "weights and fp32 master", 0, False, 46.0),
        ("OR1 backward", "and gradients", 128, True, 61.0),
    ):
        setup = trained(llama, tokens, Logits(), widths=prepared, learns=learns)
        yield Peak(
            row=row,
            source=OPENRLHF,
            settings=f"8B ZeRO-2, 1 GPU: {settings}",
            measured_gib=measured,
            reading="device",
            setup=setup,
            capacity_gib=A100_GIB,
        )


def ends() -> Iterator[Fit]:
    llama, small, qwen = shape("Llama-3-8B"), shape("Qwen3-4B"), shape("Qwen3-8B")
    gemma = shape("Gemma-2-9B")

    def fit(row: str, source: str, settings: str, ran: bool, setup: Setup, capacity: float) -> Fit:
        return Fit(row=row, source=source, settings=settings, ran=ran, setup=setup, capacity_gib=capacity)

    few = cross_entropy(128)
    yield fit("OR1", OPENRLHF, "8B ZeRO-2, 1 GPU", False, trained(llama, 128, few, widths=MIXED), A100_GIB)
    yield fit(
        "OR1b",
        OPENRLHF,
        "8B ZeRO-2, 1 GPU, Adam on the host",
        True,
        trained(llama, 128, few, widths=MIXED, optimizer_steps_on_host=True),
        A100_GIB,
    )
    yield fit(
        "LS4",
        "0904wang/LightningSearch-RL@92ec0b0b phase5c",
        "Qwen3-4B bf16 SFT, 1 GPU",
        False,
        trained(small, 1024, cross_entropy(1024), widths=BF16_FOREACH),
        31.36,
    )
    padded = 4 * (2048 + 1024)
    yield fit(
        "TR1c",
        "huggingface/trl#3456",
        "TRL GRPO Qwen3-4B, 4 x 3072 padded",
        False,
        trained(small, padded, cross_entropy(4 * 1024), widths=FP32_ADAM, recompute="none"),
        A100_GIB,
    )
    long = 4 * 13000 // 4
    yield fit(
        "TB3",
        "YHJCTR/terrabox@f405f67e src/terrabox/evolution/sft/README.md",
        "Qwen3-8B LoRA r16 FSDP4, Ulysses 4, 4 x 13k",
        False,
        trained(qwen, long, cross_entropy(long), gpus=4, widths=BF16_FOREACH, trainable=adapter_parameters(qwen, 16)),
        23.68,
    )
    yield fit(
        "LG3",
        LITGPT,
        "Llama-3.1-8B full bf16, 4 x 512",
        False,
        trained(llama, 2048, cross_entropy(2048), widths=BF16_ADAM, recompute="none"),
        21.99,
    )
    four_bit = Widths(weights=nf4_width(llama), compute=2, gradients=4, optimizer=8)
    yield fit(
        "US2-24",
        "unslothai/unsloth README.md",
        "Llama-3.1-8B QLoRA r32, 5,789 tokens with Hugging Face",
        True,
        trained(
            llama,
            5789,
            cross_entropy(5789),
            widths=four_bit,
            trainable=adapter_parameters(llama, 32),
            gathers_whole_units=False,
        ),
        23.55,
    )
    wide = 2 * 8192
    narrow = Widths(weights=nf4_width(gemma), compute=2, gradients=4, optimizer=8)
    yield fit(
        "UT6",
        "a public log (Universal LLM Trainer)",
        "Gemma-2-9B QLoRA, 2 x 8192",
        False,
        trained(
            gemma,
            wide,
            cross_entropy(wide, copies.CROSS_ENTROPY + 8),
            widths=narrow,
            trainable=adapter_parameters(gemma, 8),
            gathers_whole_units=False,
        ),
        H100_GIB,
    )


def universal() -> Iterator[Peak]:
    llama2, tokens = shape("Llama-2-13B"), 2 * 8192
    setup = trained(llama2, tokens, cross_entropy(tokens), widths=BF16_FOREACH, trainable=adapter_parameters(llama2, 8))
    source = "a public log (Universal LLM Trainer)"
    yield Peak(
        row="UT4",
        source=source,
        settings="Llama-2-13B LoRA, 2 x 8192",
        measured_gib=43.0,
        reading="reserved",
        setup=setup,
    )
