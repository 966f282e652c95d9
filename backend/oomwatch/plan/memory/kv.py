"""The KV cache of a rollout engine: what a token takes, and what is left for it of the engine's share."""

from oomwatch.plan.memory.part import GIB, Part, amount
from oomwatch.plan.memory.workload import Engine

SHARE = "vLLM: total x gpu_memory_utilization - weights - profiled peak - what is outside of torch"
PROFILE = (
    "vLLM's profile run samples for max_num_seqs at once; KV1, KV3, KV4, KV5, KV8 and KV11 of the table agree on it"
)
# Copies of [sequences, vocabulary] that the sampler makes: fp32 scores, sorted values with their 8-byte places, their
# probabilities, running sums and masks.
SAMPLER_BYTES = 38.5
OUTSIDE_BYTES = 0.4 * GIB  # of torch, in the engine's process: 0.08 to 1.8 GiB in the table


def bytes_a_token(engine: Engine) -> float:
    """Of the cache, on one GPU."""
    return engine.shape.kv_numbers_per_token(engine.tensor) * engine.kv_bytes / engine.pipeline


def engine_weights(engine: Engine) -> Part:
    shape = engine.shape
    dense = shape.dense_parameters / engine.tensor / engine.pipeline
    experts = shape.expert_parameters / max(engine.tensor, engine.expert) / engine.pipeline
    formula = f"{engine.weight_bytes:g} bytes x {amount(dense + experts)} parameters on this GPU"
    size = round(engine.weight_bytes * (dense + experts))
    return Part(name="rollout_weights", bytes=size, formula=formula, source=SHARE, holder="engine")


def profile(engine: Engine) -> Part:
    """What a pass of the engine takes: the larger of a full batch's layer and the sampler.

    vLLM measures it before it lays its cache out, with every sequence it may hold; SGLang leaves room for what runs.
    """
    sampled = min(engine.sequences, engine.batched_tokens) if engine.name == "vllm" else 0
    sampler = SAMPLER_BYTES * sampled * engine.shape.vocab
    layer = engine.batched_tokens * (4 * engine.shape.hidden + 4 * engine.shape.active_ffn / engine.tensor)
    size = round(max(sampler, layer))
    formula = f"{SAMPLER_BYTES} bytes x {engine.sequences} sequences x {amount(engine.shape.vocab)} words"
    if layer > sampler:
        formula = f"{amount(layer / engine.batched_tokens)} bytes x {engine.batched_tokens} tokens"
    return Part(name="profile", bytes=size, formula=formula, source=PROFILE, holder="engine", spread=0.2)


def outside_torch() -> Part:
    formula = f"{OUTSIDE_BYTES / GIB:g} GiB"
    size = round(OUTSIDE_BYTES)
    return Part(name="engine_outside", bytes=size, formula=formula, source=PROFILE, holder="engine", spread=1.0)


def pool(engine: Engine, usable_bytes: int, free_bytes: int | None = None) -> Part:
    """The cache: what the share leaves. Negative where weights and profile alone are more than the share.

    SGLang's share is of what is free when it starts, and holds weights and cache alone.
    """
    if engine.name == "sglang":
        of = usable_bytes if free_bytes is None else free_bytes
        size = engine.share * of - engine_weights(engine).bytes
        formula = f"{engine.share:g} x {of / GIB:.4g} GiB free - weights"
    else:
        taken = engine_weights(engine).bytes + profile(engine).bytes + outside_torch().bytes
        size = engine.share * usable_bytes - taken
        formula = f"{engine.share:g} x {usable_bytes / GIB:.4g} GiB - {taken / GIB:.3g} GiB"
    return Part(name="kv_pool", bytes=round(size), formula=formula, source=SHARE, holder="engine", spread=0.05)
