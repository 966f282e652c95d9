"""Rollout engines alone, single operations, and what lies in memory before anything runs."""

from collections.abc import Iterator

from tests.plan.published.build import served, shape
from tests.plan.published.row import GIB, Peak

from oomwatch.plan.memory.kv import bytes_a_token, pool, profile
from oomwatch.plan.memory.logits import CHUNK_BYTES, logits
from oomwatch.plan.memory.optimizer import head_gradient
from oomwatch.plan.memory.part import Part
from oomwatch.plan.memory.weights import weights
from oomwatch.plan.memory.workload import Engine, Logits, Model, Pass, Shards, Widths

LLM_D = "llm-d/llm-d-benchmark config_explorer/empirical-vllm-memory-results.md"
MIB = 2**20


def pools() -> Iterator[Peak]:
    rows = (
        ("KV1", "vllm-project/vllm#10511", "Llama-3-8B", 256, 79.22, 53.29, 1.26),
        ("KV3", "vllm-project/vllm#11743", "Llama-3.2-1B", 256, 79.15, 67.11, 1.20),
        ("KV4", LLM_D, "Llama-3.1-8B", 1024, 79.18, 51.38, 4.76),
        ("KV5", LLM_D, "Qwen3-0.6B", 1024, 79.18, 64.45, 5.56),
        ("KV11", "a log of vLLM 0.6.6", "Qwen2.5-32B", 256, 79.15, 8.68, 1.43),
    )
    for row, source, model, sequences, card_gib, pool_gib, profile_gib in rows:
        engine = served(model, sequences=sequences, share=0.9)
        settings = f"{model}, 0.9 of {card_gib} GiB, {sequences} sequences"
        cache = pool(engine, round(card_gib * GIB))
        yield Peak(row=f"{row} cache", source=source, settings=settings, measured_gib=pool_gib, parts=(cache,))
        measured = (profile(engine),)
        yield Peak(row=f"{row} profile", source=source, settings=settings, measured_gib=profile_gib, parts=measured)


def quantized() -> Iterator[Peak]:
    """What the profile takes does not depend on how weights are packed."""
    engine = served("gpt-oss-20b", sequences=1024, share=0.9)
    settings = "gpt-oss-20b in 4 bit, 0.9 of 79.18 GiB, 1024 sequences"
    yield Peak(row="KV8 profile", source=LLM_D, settings=settings, measured_gib=7.38, parts=(profile(engine),))


def operations() -> Iterator[Peak]:
    """Scores over the vocabulary in one operation, alone on a card."""

    def peak(row: str, source: str, settings: str, measured_mib: float, scores: Logits, vocab: int) -> Peak:
        part = logits(Pass(tokens=scores.tokens, logits=scores), vocab)
        assert part is not None
        return Peak(row=row, source=source, settings=settings, measured_gib=measured_mib / 1024, parts=(part,))

    scores = Logits(tokens=16384, bytes_each=4, reason="one fp32 copy")
    yield peak("NR4-16384", "NVIDIA-NeMo/RL#2883", "top-k over 16,384 x 128,256 in fp32", 8109, scores, 128256)
    three = Logits(tokens=2 * 256, bytes_each=12, reason="fp32 scores, softmax, product")
    yield peak(
        "TR2", "huggingface/trl#3678", "log-probabilities of 2 x 256 x 151,665", (902 - 44) * 1e6 / MIB, three, 151665
    )
    llama = shape("Llama-3-8B")
    head = head_gradient(Model(shape=llama))
    assert head is not None
    for tokens, each in ((128, 74.16), (256, 42.08), (512, 26.07)):
        chunk = Logits(some_tokens=tokens, some_bytes_each=CHUNK_BYTES, reason="one chunk")
        part = logits(Pass(tokens=tokens, logits=chunk), llama.vocab)
        assert part is not None
        yield Peak(
            row=f"UZ1 {tokens}",
            source="unslothai/unsloth-zoo#947",
            settings=f"fused cross entropy of {tokens} tokens, hidden 4096, head learns",
            measured_gib=each * tokens * llama.vocab / GIB,
            parts=(part, head),
        )


def at_rest() -> Iterator[Peak]:
    """Weights after they were loaded and divided."""

    def held(name: str, width: float, gpus: int = 1, *, scalar_head: bool = False) -> Part:
        model = Model(
            shape=shape(name), shards=Shards(data=gpus), widths=Widths(weights=width), scalar_head=scalar_head
        )
        part = weights(model)
        assert part is not None
        return part

    maze, notebook, log = (
        "KotoHanon/VERL-Maze@e027ccd9 verl_demo.log:170",
        "verl examples/ppo_trainer/verl_getting_started.ipynb:743",
        "a public log of verl, repository not named",
    )
    rows: tuple[tuple[str, str, str, float, tuple[Part, ...]], ...] = (
        ("VM1 critic", maze, "Qwen2.5-1.5B critic, fp32, 1 GPU", 5.751, (held("Qwen2.5-1.5B", 4, scalar_head=True),)),
        (
            "VM1 all",
            maze,
            "actor, critic fp32, reference bf16",
            14.398,
            (*(held("Qwen2.5-1.5B", 4) for _ in range(2)), held("Qwen2.5-1.5B", 2)),
        ),
        ("VM2 critic", notebook, "Qwen2.5-0.5B critic, fp32", 1.841, (held("Qwen2.5-0.5B", 4, scalar_head=True),)),
        (
            "VM2 all",
            notebook,
            "actor, critic fp32, reference bf16",
            4.603,
            (*(held("Qwen2.5-0.5B", 4) for _ in range(2)), held("Qwen2.5-0.5B", 2)),
        ),
        ("VL1", log, "Qwen2.5-7B fp32 on 16 GPUs", 1.773, (held("Qwen2.5-7B", 4, 16),)),
        ("VL3", log, "deepseek-coder-1.3b fp32 on 2 GPUs", 2.508, (held("DeepSeek-Coder-1.3B", 4, 2),)),
        ("VL4", log, "Qwen2.5-0.5B fp32 on 2 GPUs", 0.921, (held("Qwen2.5-0.5B", 4, 2),)),
        ("TL6 init", "torchtune docs, llama3 end to end", "Llama-3.2-3B bf16", 6.21, (held("Llama-3.2-3B", 2),)),
    )
    for row, source, settings, measured, parts in rows:
        yield Peak(row=row, source=source, settings=settings, measured_gib=measured, parts=parts)
    yield Peak(
        row="LS5 cache",
        source="0904wang/LightningSearch-RL@92ec0b0b",
        settings="KV cache of a sequence of 1,280 tokens, Qwen3-4B",
        measured_gib=1280 * 147456 / GIB,
        parts=(_cache_of(1280, served("Qwen3-4B")),),
    )


def _cache_of(tokens: int, engine: Engine) -> Part:
    size = round(tokens * bytes_a_token(engine))
    return Part(name="kv_pool", bytes=size, formula="", source="", holder="engine")
