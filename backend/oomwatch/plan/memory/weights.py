"""Weights: as they are kept, and as they are put together for a matrix product."""

from oomwatch.plan.memory.divide import outer_parameters, parameters_held
from oomwatch.plan.memory.part import Part, amount
from oomwatch.plan.memory.workload import Model

ZERO = "Rajbhandari et al. 2020 (ZeRO)"
FSDP = (
    "PyTorch FSDP: a unit is gathered before it runs, the next one meanwhile; the root unit stays until the pass ends"
)
UNITS_AT_ONCE = 2  # the layer that runs and the one that is fetched meanwhile


def weights(model: Model) -> Part | None:
    """What stays on the GPU while the model is in use."""
    if model.streamed:
        return None
    held = parameters_held(model, by_data=model.shards.weights)
    return Part(
        name="weights",
        stay="lasting",
        bytes=round(model.widths.weights * held),
        formula=_formula(model, held),
        source=ZERO,
    )


def gathered(model: Model) -> Part | None:
    """Copies of weights that a pass makes: whole units where they are divided, casts where they are kept wider."""
    divided = model.shards.weights and model.shards.data > 1
    if not (divided or model.streamed or model.widths.weights > model.widths.compute):
        return None
    if not model.gathers_whole_units:
        return None
    if model.keeps_gathered:
        return _all_gathered(model)
    layer = model.shape.layer_parameters / model.shards.tensor / max(1, model.shards.expert)
    units = UNITS_AT_ONCE * layer + outer_parameters(model)
    formula = f"{model.widths.compute:g} bytes x ({UNITS_AT_ONCE} layers + embedding and head) {amount(units)}"
    size = round(model.widths.compute * units)
    return Part(name="gathered", bytes=size, formula=formula, source=FSDP, spread=0.3)


def _all_gathered(model: Model) -> Part:
    whole = parameters_held(model, by_data=False)
    formula = f"{model.widths.compute:g} bytes x {amount(whole)}, not divided again after the forward pass"
    return Part(name="gathered", bytes=round(model.widths.compute * whole), formula=formula, source=FSDP, spread=0.1)


def _formula(model: Model, held: float) -> str:
    return f"{model.widths.weights:g} bytes x {amount(held)} parameters on this GPU"
