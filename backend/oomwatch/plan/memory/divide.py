"""How many parameters of a model one GPU has to do with."""

from oomwatch.plan.memory.workload import Model, Shards
from oomwatch.plan.shape import ModelShape


def parameters_held(model: Model, *, by_data: bool) -> float:
    """Parameters of the GPU that has most: divided by tensor, pipeline and expert parallelism, and among the processes
    of the data-parallel group where `by_data`.

    Routed experts are divided by `expert` instead of by `tensor`, and only as far as the group goes beyond it.
    """
    shards, shape = model.shards, model.shape
    dense = _without_head(model) / shards.tensor / shards.pipeline
    experts = shape.expert_parameters / _expert_shards(shards) / shards.pipeline
    if not by_data:
        return dense + experts
    return dense / shards.data + experts / _data_of_experts(shards)


def learning_held(model: Model, *, by_data: bool) -> float:
    """As parameters_held, of those that learn."""
    if model.trainable is None:
        return parameters_held(model, by_data=by_data)
    return model.trainable / model.shards.tensor / model.shards.pipeline / (model.shards.data if by_data else 1)


def outer_parameters(model: Model) -> float:
    """Embedding and head, which FSDP gathers together with what belongs to no layer, and keeps while a pass lasts."""
    head = 0 if model.scalar_head else model.shape.head_parameters
    return (model.shape.embedding_parameters + head) / model.shards.tensor


def _without_head(model: Model) -> float:
    """All but the routed experts; without the vocabulary's head where a single number takes its place."""
    shape: ModelShape = model.shape
    return shape.dense_parameters - (shape.head_parameters if model.scalar_head else 0)


def _expert_shards(shards: Shards) -> int:
    return max(shards.expert, 1) if shards.expert > 1 else shards.tensor


def _data_of_experts(shards: Shards) -> float:
    """Processes that share one expert: the group of a tensor-parallel dense part, less what the experts take of it."""
    return max(1.0, shards.data * shards.tensor / _expert_shards(shards))
