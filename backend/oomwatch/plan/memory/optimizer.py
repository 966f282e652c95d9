"""Gradients and optimizer states, and what a step of the optimizer takes for a moment.

Offloaded FSDP sends every gradient to the host as soon as it is divided.
"""

from oomwatch.plan.memory.divide import learning_held, outer_parameters
from oomwatch.plan.memory.part import Part, amount
from oomwatch.plan.memory.weights import FSDP, ZERO
from oomwatch.plan.memory.workload import Model, Pass

FOREACH = (
    "torch.optim.AdamW, foreach (its default): one temporary the size of the parameters; LS1 of the table shows it"
)
NO_SYNC = "gradients stay whole while their synchronisation is deferred (verl's use_no_sync_for_gradient_accumulation)"


def gradients(model: Model) -> Part | None:
    if not model.learns or model.streamed:
        return None
    held = learning_held(model, by_data=model.shards.gradients)
    formula = f"{model.widths.gradients:g} bytes x {amount(held)} that learn on this GPU"
    return Part(
        name="gradients", stay="lasting", bytes=round(model.widths.gradients * held), formula=formula, source=ZERO
    )


def whole_gradients(model: Model, work: Pass) -> Part | None:
    """Of a pass that goes on adding to gradients which have not been divided yet."""
    if not (model.learns and work.sync_deferred and model.shards.data > 1):
        return None
    held = learning_held(model, by_data=False)
    formula = f"{model.widths.gradients:g} bytes x {amount(held)}, not divided"
    size = round(model.widths.gradients * held)
    return Part(name="whole_gradients", bytes=size, formula=formula, source=NO_SYNC, spread=0.05)


def head_gradient(model: Model) -> Part | None:
    """The first gradient to arrive, whole: it stays until all of its unit have come."""
    if not model.learns or model.trainable is not None or model.scalar_head:
        return None
    size = model.widths.compute * model.shape.embedding_parameters / model.shards.tensor
    formula = f"{model.widths.compute:g} bytes x {amount(model.shape.embedding_parameters)}"
    return Part(name="head_gradient", bytes=round(size), formula=formula, source=FSDP, spread=0.4)


def outer_gradients(model: Model) -> Part | None:
    """The gradient of embedding and head, which arrives last, beside what it is added to or cast to."""
    if not model.learns or model.trainable is not None:
        return None
    each, outer = _outer_width(model), outer_parameters(model)
    formula = f"{each:g} bytes x {amount(outer)} of embedding and head"
    return Part(name="outer_gradients", bytes=round(each * outer), formula=formula, source=FSDP, spread=0.4)


def _outer_width(model: Model) -> float:
    """Where gradients are divided: the whole one, and its cast to the width that it is summed in. Else it goes straight
    to its place, but for a head that is the embedding, where two are added."""
    widths = model.widths
    if model.shards.data > 1 and model.shards.gradients:
        return widths.compute + (widths.gradients if widths.gradients > widths.compute else 0.0)
    return widths.compute if model.shape.tied else 0.0


def states(model: Model) -> Part | None:
    if not model.learns or model.optimizer_steps_on_host:
        return None
    held = learning_held(model, by_data=model.shards.optimizer)
    formula = f"{model.widths.optimizer:g} bytes x {amount(held)} that learn on this GPU"
    return Part(
        name="optimizer", stay="lasting", bytes=round(model.widths.optimizer * held), formula=formula, source=ZERO
    )


def step_copy(model: Model) -> Part | None:
    if not model.learns or model.optimizer_steps_on_host:
        return None
    held = learning_held(model, by_data=model.shards.optimizer)
    formula = f"{model.widths.step:g} bytes x {amount(held)}"
    return Part(
        name="optimizer_step", bytes=round(model.widths.step * held), formula=formula, source=FOREACH, spread=0.1
    )
