"""The peak of every phase of a colocated run, on its fullest GPU."""

from collections.abc import Iterator

from oomwatch.plan.memory.context import context, gaps, left_behind
from oomwatch.plan.memory.engine import awake, while_training
from oomwatch.plan.memory.estimate import PhaseEstimate, estimated
from oomwatch.plan.memory.kv import bytes_a_token, engine_weights, outside_torch, pool, profile
from oomwatch.plan.memory.moments import at_rest, moments
from oomwatch.plan.memory.names import Trouble
from oomwatch.plan.memory.part import Part, present, total
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.sync import buckets
from oomwatch.plan.memory.weights import weights
from oomwatch.plan.memory.workload import Engine

ORDER = ("rollout", "old_log_prob", "ref", "values", "update_critic", "update_actor", "update_weights")


def phase_estimates(setup: Setup, capacity_bytes: int) -> Iterator[PhaseEstimate]:
    """Of all phases that the run has, in the order of a step."""
    for phase in ORDER:
        if phase in setup.passes:
            yield _training(setup, phase, capacity_bytes)
        elif setup.engine is not None and phase == "rollout":
            yield _rollout(setup, setup.engine, capacity_bytes)
        elif setup.engine is not None and phase == "update_weights":
            yield _switch(setup, setup.engine, capacity_bytes)


def _training(setup: Setup, phase: str, capacity: int) -> PhaseEstimate:
    """A model works, the others wait, the engine sleeps."""
    model = setup.model_of(phase) or setup.actor
    known = tuple(moments(model, setup.passes[phase]))
    worst = max(known, key=lambda moment: moment.bytes)
    engine = () if setup.engine is None else while_training(setup.engine, capacity, _free_for_engine(setup, capacity))
    needed = (*_process(setup, (*worst.parts, *_waiting(setup, phase))), *engine)
    extra = left_behind(worst.parts, (moment.parts for moment in known), capacity - total(needed))
    return estimated(phase, worst.name, present((*needed, extra)), capacity)


def _process(setup: Setup, allocated: tuple[Part, ...]) -> tuple[Part, ...]:
    """A training process on the device: what torch gave out, what it cannot give back, and what is outside of it."""
    return present((*allocated, gaps(allocated), context(setup.gpus)))


def _rollout(setup: Setup, engine: Engine, capacity: int) -> PhaseEstimate:
    """The engine works, all models wait."""
    process = _process(setup, _waiting(setup, "rollout"))
    generating = awake(engine, capacity, _free_for_engine(setup, capacity))
    return estimated("rollout", "cache", (*process, *generating), capacity, _trouble(setup, capacity))


def _switch(setup: Setup, engine: Engine, capacity: int) -> PhaseEstimate:
    """Weights go from the actor to the engine: both copies are there, and the buffers between them."""
    actor = weights(setup.actor) if setup.actor.weights_on_host else None
    parts = present((*_waiting(setup, "update_weights"), actor))
    travelling = (buckets(engine.shape, setup.bucket_bytes),)
    if setup.wakes_in_stages and engine.sleeps:
        receiver: tuple[Part, ...] = (*while_training(engine, capacity), engine_weights(engine))
    else:
        receiver = awake(engine, capacity, _free_for_engine(setup, capacity))
    process = _process(setup, (*parts, *travelling))
    return estimated("update_weights", "transfer", (*process, *receiver), capacity)


def _waiting(setup: Setup, phase: str) -> tuple[Part, ...]:
    """What the models that do not work keep on the GPU, as one part."""
    resting = [part for model in setup.others(phase) for part in at_rest(model)]
    if not resting:
        return ()
    formula = " + ".join(part.formula for part in resting)
    return present(
        (Part(name="waiting", stay="lasting", bytes=total(resting), formula=formula, source=resting[0].source),)
    )


def _free_for_engine(setup: Setup, capacity: int) -> int:
    """What is free when the engine starts: the card less what the models keep."""
    return capacity - total((*_waiting(setup, "rollout"), context(setup.gpus)))


def _trouble(setup: Setup, capacity: int) -> Trouble | None:
    """Why the engine would not start, if it would not."""
    engine = setup.engine
    if engine is None:
        return None
    cache = pool(engine, capacity, _free_for_engine(setup, capacity)).bytes
    # What the engine measures differs from release to release: only what no release would start with is trouble.
    if cache + 0.3 * profile(engine).bytes + outside_torch().bytes <= 0:
        return "no_cache"
    needed = bytes_a_token(engine) * setup.longest_tokens
    return "cache_too_small" if cache + 0.3 * profile(engine).bytes + outside_torch().bytes < needed else None
