"""How the GPUs of a run are grouped: which see the same data, and which hold an engine of the rollout together."""

from typing import NamedTuple

from oomwatch.plan.figure import Figure
from oomwatch.plan.reader import Reader
from oomwatch.plan.release import Release
from oomwatch.plan.settings import ACTOR, ROLLOUT

MEGATRON_PARALLEL = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")
ENGINE_WORKERS: Release = (
    0,
    8,
)  # from here on one worker for all strategies, with a configuration of each engine's own


class Groups(NamedTuple):
    """Of an actor or a critic."""

    gpus: Figure
    ways: Figure  # GPUs that share one sequence or one model, and so see the same data
    ranks: Figure  # that see different data: verl's data parallel size


def gpus_of(here: Reader) -> Figure:
    return here.figure("trainer.nnodes") * here.figure("trainer.n_gpus_per_node")


def strategy_of(here: Reader, section: str = ACTOR) -> str:
    """As verl calls it ("fsdp", "fsdp2", "megatron" and others). One that is not told shows in the keys."""
    told = here.value(f"{section}.strategy")
    if f"{section}.strategy" not in here.config and any(key.startswith(f"{section}.megatron.") for key in here.config):
        return "megatron"
    return told if isinstance(told, str) else "fsdp"


def groups_of(here: Reader, section: str = ACTOR) -> Groups:
    gpus = gpus_of(here).known_as()
    ways = _megatron(here, section) if strategy_of(here, section) == "megatron" else sequence_parallel(here, section)
    return Groups(gpus, ways, gpus // ways)


def sequence_parallel(here: Reader, section: str = ACTOR) -> Figure:
    """Ulysses': how many GPUs share a sequence. Engines have a setting of their own, which the actor's beats."""
    own = here.figure(f"{section}.ulysses_sequence_parallel_size")
    if here.release < ENGINE_WORKERS or (own.value or 1) > 1:
        return own
    engine = f"{section}.fsdp_config" if section == ACTOR else f"{section}.fsdp"
    theirs = here.figure(f"{engine}.ulysses_sequence_parallel_size")
    return theirs if (theirs.value or 1) > 1 else own


def engine_ways(here: Reader) -> Figure:
    """GPUs that hold one engine of the rollout."""
    return here.figure(f"{ROLLOUT}.tensor_model_parallel_size")


def _megatron(here: Reader, section: str) -> Figure:
    tensor, pipeline, context = (here.figure(f"{section}.megatron.{key}") for key in MEGATRON_PARALLEL)
    return tensor * pipeline * context
