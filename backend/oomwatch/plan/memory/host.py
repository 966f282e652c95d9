"""Memory of a node's host: what is offloaded to it, what a sleeping engine leaves there, and the processes."""

from oomwatch.plan.memory.divide import learning_held, parameters_held
from oomwatch.plan.memory.part import GIB, Part, amount, present
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.workload import Model

OFFLOAD = (
    "verl: optimizer_offload moves 8 bytes a parameter to the host, param_offload 4 more; 16 where Adam runs there"
)
PROCESSES = "resident size of a trainer's process after torch, CUDA and NCCL are loaded; judged, not measured here"
SLEEPING = "vLLM at sleep level 1 keeps its weights on the host; verl uses level 2 where it sends them again"
_PROCESS_BYTES, _DRIVER_BYTES = 6 * GIB, 20 * GIB
_TOKEN_BYTES = 60  # ids, masks, positions, log-probabilities, advantages of one token in the driver's batch


def host_parts(setup: Setup) -> tuple[Part, ...]:
    """Of the node that runs the driver too."""
    gpus = setup.gpus / setup.nodes
    models = (setup.actor, setup.critic, setup.reference)
    moved = [_offloaded(model, gpus) for model in models if model is not None]
    return present((*moved, _sleeping(setup, gpus), _processes(gpus), _driver(setup)))


def _offloaded(model: Model, gpus: float) -> Part | None:
    size = 0.0
    if model.weights_on_host or model.streamed:
        size += model.widths.weights * parameters_held(model, by_data=model.shards.weights)
    if model.learns and (model.optimizer_on_host or model.optimizer_steps_on_host):
        size += model.widths.optimizer * learning_held(model, by_data=model.shards.optimizer)
    size += model.widths.on_host * learning_held(model, by_data=model.shards.optimizer)
    if not size:
        return None
    formula = f"{amount(size)}B x {gpus:g} GPUs of a node"
    return Part(name="offloaded", bytes=round(size * gpus), formula=formula, source=OFFLOAD, holder="host", spread=0.15)


def _sleeping(setup: Setup, gpus: float) -> Part | None:
    engine = setup.engine
    if engine is None or not engine.sleeps or not engine.keeps_weights_on_host:
        return None
    each = engine.weight_bytes * engine.shape.parameters / engine.tensor / engine.pipeline
    formula = f"{amount(each)}B x {gpus:g} GPUs of a node"
    return Part(name="sleeping_weights", bytes=round(each * gpus), formula=formula, source=SLEEPING, holder="host")


def _processes(gpus: float) -> Part:
    formula = f"{_PROCESS_BYTES / GIB:g} GiB x {gpus:g} processes"
    size = round(_PROCESS_BYTES * gpus)
    return Part(name="processes", bytes=size, formula=formula, source=PROCESSES, holder="host", spread=0.4)


def _driver(setup: Setup) -> Part:
    batch = setup.dataset_sequences * setup.longest_tokens * _TOKEN_BYTES
    tokens = f"{setup.dataset_sequences} x {setup.longest_tokens} tokens"
    formula = f"{_DRIVER_BYTES / GIB:g} GiB + {_TOKEN_BYTES} bytes x {tokens}"
    size = round(_DRIVER_BYTES + batch)
    return Part(name="driver", bytes=size, formula=formula, source=PROCESSES, holder="host", spread=0.5)
