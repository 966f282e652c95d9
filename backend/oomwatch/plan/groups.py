"""How the GPUs of a run are grouped: which see the same data, and which hold an engine of the rollout together."""

from typing import NamedTuple

from oomwatch.plan.figure import Figure
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ACTOR, CRITIC, ROLLOUT

MEGATRON_PARALLEL = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size")


class Groups(NamedTuple):
    """Of an actor or a critic."""

    gpus: Figure
    ways: Figure  # GPUs that share one sequence or one copy of the model, and so see the same data
    ranks: Figure  # that see different data: verl's data parallel size
    shares: Figure  # of a sequence: Ulysses' parts, or Megatron's context parallel ones


def gpus_of(here: Reader) -> Figure:
    return here.figure("trainer.nnodes") * here.figure("trainer.n_gpus_per_node")


def groups_of(here: Reader, section: str = ACTOR) -> Groups:
    gpus = gpus_of(here).known_as()
    if here.strategy == "megatron":
        tensor, pipeline, context = (here.figure(f"{section}.megatron.{key}") for key in MEGATRON_PARALLEL)
        ways, shares = tensor * pipeline * context, context
    else:
        ways = shares = sequence_parallel(here, section)
    return Groups(gpus, ways, gpus // ways, shares)


def sequence_parallel(here: Reader, section: str = ACTOR) -> Figure:
    """Ulysses': how many GPUs share a sequence. Engines have a setting of their own, which the actor's beats."""
    own = here.figure(f"{section}.ulysses_sequence_parallel_size")
    if not here.has_engines or (section != CRITIC and (own.value or 1) > 1):
        return own
    engine = here.figure(f"{section}.{'fsdp' if section == CRITIC else 'fsdp_config'}.ulysses_sequence_parallel_size")
    return engine if engine.value is not None else own


def engine_ways(here: Reader) -> Figure:
    """GPUs that hold one engine of the rollout: since 0.6 tensor × data × pipeline parallel."""
    tensor = here.figure(f"{ROLLOUT}.tensor_model_parallel_size")
    if not here.since("0.6.0"):
        return tensor
    for way in ("data_parallel_size", "pipeline_model_parallel_size"):
        figure = here.figure(f"{ROLLOUT}.{way}")
        tensor = tensor * figure if (figure.value or 1) > 1 else tensor
    return tensor
