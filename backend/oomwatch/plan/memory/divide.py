"""How many parameters of a model one GPU has to do with."""

from oomwatch.plan.memory.workload import Model, Shards


def parameters_held(model: Model, *, by_data: bool) -> float:
    """Parameters of the GPU that has most: divided by tensor, pipeline and expert parallelism, and among the processes
    of the data-parallel group where `by_data`.

    Routed experts are dealt out and divided in groups of their own, and shared only as far as the whole goes beyond it.
    """
    shards = model.shards
    dense = _dense_of_stage(model) / shards.tensor
    experts = model.shape.expert_parameters / _expert_shards(shards) / shards.pipeline
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


def _dense_of_stage(model: Model) -> float:
    """All but the routed experts, of the pipeline's fullest stage: that with the embedding, or the one with the head.

    Where a single number takes the vocabulary's place, the head is next to nothing.
    """
    shape, stages = model.shape, model.shards.pipeline
    head = 0 if model.scalar_head else shape.head_parameters
    layers = shape.dense_parameters - shape.embedding_parameters - shape.head_parameters
    outer = shape.embedding_parameters + head if stages == 1 else max(shape.embedding_parameters, head)
    return layers / stages + outer


def _expert_shards(shards: Shards) -> int:
    return shards.expert * (shards.tensor if shards.expert_tensor is None else shards.expert_tensor)


def _data_of_experts(shards: Shards) -> float:
    """Processes that hold the same part of an expert: all of a pipeline's stage, less what the experts take of it."""
    return max(1.0, shards.data * shards.tensor / _expert_shards(shards))
