"""The moments of a pass at which a training process may hold most, and what it holds then.

Which of them is the worst depends on everything: long batches peak where the scores meet the kept activations, wide
models on few GPUs in the optimizer's step. So all are worked out, and the largest counts.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from oomwatch.plan.memory.activations import boundaries, kept, layer_at_work, sequences_together
from oomwatch.plan.memory.logits import logits
from oomwatch.plan.memory.names import MomentName
from oomwatch.plan.memory.optimizer import gradients, head_gradient, outer_gradients, states, step_copy, whole_gradients
from oomwatch.plan.memory.part import Part, present, total
from oomwatch.plan.memory.weights import gathered, weights
from oomwatch.plan.memory.workload import Model, Pass


class Moment(Struct, frozen=True, kw_only=True):
    name: MomentName
    parts: tuple[Part, ...]

    @property
    def bytes(self) -> int:
        return total(self.parts)


def moments(model: Model, work: Pass) -> Iterator[Moment]:
    """All of them, in the order in which they come."""
    if not (work.learns and model.learns):
        yield from _asked(model, work)
        return
    earlier = _earlier_gradients(model, work)
    resident = (weights(model), states(model), *earlier, gathered(model), sequences_together(model, work))
    begun = (*resident, boundaries(model, work), kept(model, work))
    yield Moment(name="scores", parts=present((*resident, *_at_the_scores(model, work))))
    again = layer_at_work(model, work) if work.recompute == "full" else None
    yield Moment(name="layer", parts=present((*begun, again, head_gradient(model))))
    ended = (weights(model), states(model), gradients(model))
    yield Moment(name="gradients", parts=present((*ended, gathered(model), outer_gradients(model))))
    yield Moment(name="step", parts=present((*ended, step_copy(model))))


def _at_the_scores(model: Model, work: Pass) -> tuple[Part | None, ...]:
    """The scores are made by a pipeline's last stage, which keeps one micro batch, where the first keeps many."""
    here = msgspec.structs.replace(work, in_flight=1)
    scores = None if model.scalar_head else logits(work, model.shape.vocab)
    return (boundaries(model, here), kept(model, here), scores)


def at_rest(model: Model) -> tuple[Part, ...]:
    """What a model keeps on the GPU while another one works."""
    here = None if model.weights_on_host else weights(model)
    optimizer = None if model.optimizer_on_host else states(model)
    return present((here, optimizer))


def _asked(model: Model, work: Pass) -> Iterator[Moment]:
    """Without gradients: a layer's results are dropped as the next one has used them."""
    # The states of a model that learns stay where they are.
    resident = (weights(model), None if model.optimizer_on_host else states(model), gathered(model))
    yield Moment(name="layer", parts=present((*resident, layer_at_work(model, work))))
    scores = None if model.scalar_head else logits(work, model.shape.vocab)
    yield Moment(name="scores", parts=present((*resident, scores)))


def _earlier_gradients(model: Model, work: Pass) -> tuple[Part | None, ...]:
    if work.sync_deferred:
        return (whole_gradients(model, work),)
    return (gradients(model),) if work.accumulates else ()
