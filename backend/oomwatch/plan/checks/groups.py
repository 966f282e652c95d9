"""Whether the GPUs can be grouped as the configuration asks."""

from collections.abc import Iterator

from oomwatch.plan.groups import engine_ways, gpus_of
from oomwatch.plan.nearest import divisors
from oomwatch.plan.problem import Problem, error
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ROLLOUT


def engines_fit(here: Reader) -> Iterator[Problem]:
    """An engine of the rollout holds so many GPUs, and none may be left over."""
    gpus, ways = gpus_of(here).value, engine_ways(here).value
    if gpus and ways and gpus % ways:
        yield error(
            f"{ROLLOUT}.tensor_model_parallel_size",
            "engines_fit",
            f"rollout world_size: {gpus} is not divisible by infer_world_size: {ways}",
            divisors(ways, gpus),
            gpus=gpus,
            ways=ways,
        )
