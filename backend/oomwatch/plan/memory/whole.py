"""The estimate of a verl configuration on a card."""

from oomwatch.plan.cards import Card
from oomwatch.plan.memory.estimate import Estimate, estimated_host
from oomwatch.plan.memory.host import host_parts
from oomwatch.plan.memory.phases import phase_estimates
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.verlsetup import setup_of
from oomwatch.plan.settings import Config
from oomwatch.plan.shape import ModelShape


def estimate_of(
    config: Config,
    shape: ModelShape,
    card: Card | int,
    *,
    version: str | None = None,
    critic_shape: ModelShape | None = None,
    mean_length_tokens: float | None = None,
) -> Estimate:
    """Memory of every phase on the fullest GPU, and of a node's host.

    `card`: a card, or the bytes of one that a program can use. `version` is verl's; the newest where it is not told.
    `mean_length_tokens`: how long sequences are on the average, prompt and response; all as long as is allowed where it
    is not told. Raises ValueError where no phase can be worked out.
    """
    setup = setup_of(config, shape, version, critic_shape, mean_length_tokens)
    return estimate_of_setup(setup, card if isinstance(card, int) else card.usable_bytes)


def estimate_of_setup(setup: Setup, capacity_bytes: int) -> Estimate:
    """As estimate_of, of a run of any framework."""
    if capacity_bytes <= 0:
        raise ValueError(f"a card of {capacity_bytes} bytes holds nothing: give the bytes that a program can use of it")
    phases = tuple(phase_estimates(setup, capacity_bytes))
    if not phases:
        raise ValueError(
            "no phase of the configuration has a known size: set the micro batch of the actor "
            "(actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu) or dynamic batches (actor.use_dynamic_bsz)"
        )
    return Estimate(phases=phases, host=estimated_host(host_parts(setup)), assumed=setup.assumed)
