"""Whether mini batches can be cut into micro batches."""

from collections.abc import Iterator

from oomwatch.plan.batches import micro_batch
from oomwatch.plan.groups import groups_of
from oomwatch.plan.nearest import divisors
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.problem import Problem, error
from oomwatch.plan.reader import Reader
from oomwatch.plan.settings import ACTOR, ROLLOUT


def mini_batch_divides(here: Reader) -> Iterator[Problem]:
    """A GPU's share of a mini batch is cut into micro batches of one size."""
    groups = groups_of(here)
    mini = (here.figure(f"{ACTOR}.ppo_mini_batch_size") * here.figure(f"{ROLLOUT}.n") // groups.ranks).value
    micro = micro_batch(here, PHASES["update_actor"], groups).value
    if mini and micro and mini % micro:
        says = f"normalized ppo_mini_batch_size {mini} should be divisible by ppo_micro_batch_size_per_gpu {micro}"
        key = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
        yield error(key, "mini_batch_divides", says, divisors(micro, mini), mini=mini, micro=micro)
