"""verl's actor, critic and reference as models: how they are divided, how wide they are, and where they wait."""

from oomwatch.plan.batches import Batches
from oomwatch.plan.memory.workload import Model, Shards, Widths
from oomwatch.plan.reader import Reader
from oomwatch.plan.shape import ModelShape

_ACTOR, _REF, _MODEL, _CRITIC = (
    "actor_rollout_ref.actor",
    "actor_rollout_ref.ref",
    "actor_rollout_ref.model",
    "critic",
)
_WHOLE, _HALF = 4.0, 2.0  # bytes of fp32 and of 16 bit
_LORA_KEYS = {"fsdp": f"{_MODEL}.lora_rank", "megatron": f"{_MODEL}.lora.rank"}  # each reads its own alone


def actor_of(told: Reader, shape: ModelShape, batches: Batches) -> Model:
    if told.strategy == "megatron":
        return _megatron(told, shape, batches, _ACTOR)
    return _sharded(told, shape, batches, f"{_ACTOR}.fsdp_config", trainable=_adapters(told, shape, _LORA_KEYS["fsdp"]))


def critic_of(told: Reader, shape: ModelShape, batches: Batches) -> Model:
    if told.strategy == "megatron":
        return _megatron(told, shape, batches, _CRITIC, scalar_head=True)
    section = f"{_CRITIC}.fsdp" if told.has_engines else f"{_CRITIC}.model.fsdp_config"
    adapters = _adapters(told, shape, f"{_CRITIC}.model.lora_rank")
    return _sharded(told, shape, batches, section, trainable=adapters, scalar_head=True)


def reference_of(told: Reader, shape: ModelShape, batches: Batches) -> Model | None:
    """None with adapters: the actor without them is the reference."""
    if told.positive(_LORA_KEYS[told.strategy], otherwise=0):
        return None
    if told.strategy == "megatron":
        return Model(
            shape=shape,
            shards=_megatron_shards(told, batches, _ACTOR),
            widths=Widths(weights=_HALF),
            trainable=0,
            weights_on_host=told.is_on(f"{_REF}.megatron.param_offload"),
            gathers_whole_units=False,
        )
    section = f"{_REF}.fsdp_config"
    return Model(
        shape=shape,
        shards=Shards(data=_data_shards(told, batches, section)),
        widths=Widths(weights=_width(told, section, otherwise=_HALF)),
        trainable=0,
        # "We force reference policy to use CPUOffload": whatever param_offload says, since verl 0.2 (verl#121).
        weights_on_host=True,
        streamed=True,
    )


def _width(told: Reader, section: str, otherwise: float) -> float:
    """Bytes of a parameter as it is kept: model_dtype, where a release has it."""
    kind = told.text(f"{section}.model_dtype")
    if not kind:
        return otherwise
    return _HALF if "16" in kind or "half" in kind else _WHOLE


def _sharded(
    told: Reader, shape: ModelShape, batches: Batches, section: str, *, trainable: int | None, scalar_head: bool = False
) -> Model:
    """FSDP and FSDP2: parameters, gradients and states in the type of the model, each on its part of the processes."""
    width = _width(told, section, otherwise=_WHOLE)
    streamed = told.is_on(f"{section}.offload_policy")  # FSDP2's own offload: nothing rests on the GPU
    return Model(
        shape=shape,
        shards=Shards(data=_data_shards(told, batches, section)),
        widths=Widths(weights=width, gradients=width, optimizer=2 * width, step=width),
        trainable=trainable,
        scalar_head=scalar_head,
        weights_on_host=streamed or told.is_on(f"{section}.param_offload"),
        optimizer_on_host=streamed or told.is_on(f"{section}.optimizer_offload"),
        optimizer_steps_on_host=streamed,
        streamed=streamed,
        keeps_gathered=told.value(f"{section}.reshard_after_forward") is False,
    )


def _data_shards(told: Reader, batches: Batches, section: str) -> int:
    """Processes that hold one copy: all of them, unless fsdp_size makes smaller groups. Ulysses' groups share too."""
    gpus = batches.gpus or 1
    size = told.ratio(f"{section}.fsdp_size", otherwise=-1)
    return int(size) if 0 < size <= gpus else gpus


def _megatron(told: Reader, shape: ModelShape, batches: Batches, section: str, *, scalar_head: bool = False) -> Model:
    """16-bit weights, gradients summed in fp32, master copy and moments in fp32: 18 bytes a parameter.

    6 + 12/d with the distributed optimizer, which is verl's default.
    """
    own = f"{section}.megatron"
    key = f"{section}.optim.override_optimizer_config.optimizer_offload_fraction"
    on_host = min(1.0, max(0.0, told.ratio(key, otherwise=0.0)))
    adapters = None if scalar_head else _adapters(told, shape, _LORA_KEYS["megatron"])
    return Model(
        shape=shape,
        shards=_megatron_shards(told, batches, section),
        widths=Widths(weights=_HALF, gradients=_WHOLE, optimizer=12.0 * (1 - on_host), on_host=16.0 * on_host),
        trainable=adapters,
        scalar_head=scalar_head,
        weights_on_host=told.is_on(f"{own}.param_offload"),
        optimizer_on_host=told.is_on(f"{own}.optimizer_offload"),
        gathers_whole_units=False,
    )


def _megatron_shards(told: Reader, batches: Batches, section: str) -> Shards:
    """The optimizer is divided among all that hold the same part, those of a context parallel group too."""
    own = f"{section}.megatron"
    tensor = told.positive(f"{own}.tensor_model_parallel_size", otherwise=1)
    pipeline = told.positive(f"{own}.pipeline_model_parallel_size", otherwise=1)
    distributed = told.value(f"{own}.use_distributed_optimizer") is not False
    return Shards(
        data=max(1, (batches.gpus or 1) // (tensor * pipeline)),
        tensor=tensor,
        pipeline=pipeline,
        expert=told.positive(f"{own}.expert_model_parallel_size", otherwise=1),
        expert_tensor=told.positive(f"{own}.expert_tensor_parallel_size", otherwise=0) or None,
        weights=False,
        gradients=False,
        optimizer=distributed,
        sequence_parallel=told.value(f"{own}.sequence_parallel") is not False,
    )


def _adapters(told: Reader, shape: ModelShape, key: str) -> int | None:
    rank = told.positive(key, otherwise=0)
    return adapter_parameters(shape, rank) if rank else None


def adapter_parameters(shape: ModelShape, rank: int) -> int:
    """Of low-rank adapters on all linear layers: rank x (inputs + outputs) of each matrix."""
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention = 2 * (shape.hidden + queries) + 2 * (shape.hidden + keys)
    width = shape.ffn if shape.experts is None else shape.experts.ffn * (shape.experts.count + shape.experts.shared)
    matrices = 1 if shape.experts is None else shape.experts.count + shape.experts.shared
    return rank * shape.layers * (attention + 3 * (shape.hidden * matrices + width))
