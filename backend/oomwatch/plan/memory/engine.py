"""A rollout engine on a GPU: awake, and asleep while the model trains."""

from oomwatch.plan.memory.kv import engine_weights, outside_torch, pool, profile
from oomwatch.plan.memory.part import GIB, Part, present
from oomwatch.plan.memory.workload import Engine

GRAPHS = "vLLM's own report of CUDA graphs: -0.45 to +2.4 GiB (KV4, KV5, KV8, KV11 of the table)"
ASLEEP = (
    "memory still in use after sleep: KV3 (1.0 GiB) and NR3b (2.4 and 7.2 GiB with TP) of the table; 0.8 to 7 elsewhere"
)
_GRAPHS_BYTES = 0.5 * GIB
_ASLEEP_ALONE_BYTES, _ASLEEP_WITH_OTHERS_BYTES = 1.2 * GIB, 3.0 * GIB


def awake(engine: Engine, usable_bytes: int, free_bytes: int | None = None) -> tuple[Part, ...]:
    """All that the engine holds while it generates."""
    cache = pool(engine, usable_bytes, free_bytes)
    return present((engine_weights(engine), cache, profile(engine), outside_torch(), graphs(engine)))


def graphs(engine: Engine) -> Part | None:
    if not engine.graphs:
        return None
    formula = f"{_GRAPHS_BYTES / GIB:g} GiB"
    size = round(_GRAPHS_BYTES)
    return Part(name="graphs", bytes=size, formula=formula, source=GRAPHS, holder="engine", spread=1.0)


def asleep(engine: Engine) -> Part:
    """What an engine keeps that has given back weights and cache: its context, NCCL, graphs, leftovers."""
    size = _ASLEEP_ALONE_BYTES if engine.tensor == 1 else _ASLEEP_WITH_OTHERS_BYTES
    formula = f"{size / GIB:g} GiB" + ("" if engine.tensor == 1 else " with NCCL")
    return Part(name="residue", bytes=round(size), formula=formula, source=ASLEEP, holder="engine", spread=0.7)


def while_training(engine: Engine, usable_bytes: int, free_bytes: int | None = None) -> tuple[Part, ...]:
    return (asleep(engine),) if engine.sleeps else awake(engine, usable_bytes, free_bytes)
