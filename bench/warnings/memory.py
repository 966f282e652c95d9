"""What a configuration costs on each GPU, phase by phase: the arithmetic of training and rollout.

ZeRO with mixed-precision Adam keeps 16 bytes a parameter (Rajbhandari et al. 2020): 4 of parameters, 4 of gradients, 8
of moments, as verl's FSDP does; activations of a layer take 34 bytes a token and hidden unit with FlashAttention, 2
where they are computed again (Korthikanti et al. 2022). Logits are held several times over: 2 bytes in 16 bit, 4 for
the log-probabilities, 4 for the entropy, and as much again backwards.
"""

from typing import NamedTuple

from bench.warnings.settings import Batching, Settings
from bench.warnings.shapes import Card, Model

LORA_PARAMETERS_A_RANK = 14  # times hidden size and layers: seven projections of two matrices
LAYER_BYTES = 34  # a token and hidden unit
BUCKETS = 2.5  # a weight transfer holds its bucket, the one before, and the gathered tensor
GRAPH_BYTES = 1.1 * 2**30  # CUDA graphs of 256 sequences
HEADS_VALUE = 64  # bytes a token of a head with one output
REWARD_LAYERS = 4  # a scorer without FlashAttention holds more of a layer


class Resident(NamedTuple):
    """Bytes of each kind that one GPU holds when all of it is there."""

    params: float
    grads: float
    optimizer: float
    ref: float
    critic_params: float
    critic_optimizer: float
    critic_grads: float
    reward: float
    gathered: float  # layers that are whole for a moment
    engine_weights: float


def resident_of(model: Model, settings: Settings, reward_model: Model | None) -> Resident:
    shards, whole = settings.gpus, model.parameters
    trained = whole
    base = settings.param_bytes * whole
    if settings.lora_rank > 0:
        trained = LORA_PARAMETERS_A_RANK * settings.lora_rank * model.hidden * model.layers
        base = 2 * whole + 4 * trained
    critic = whole / shards if settings.update_critic else 0.0
    return Resident(
        params=base / shards,
        grads=settings.param_bytes * trained / shards,
        optimizer=8 * trained / shards,
        ref=2 * whole / shards if settings.ref else 0.0,
        critic_params=4 * critic,
        critic_optimizer=8 * critic,
        critic_grads=4 * critic,
        reward=2 * reward_model.parameters / shards if reward_model and settings.reward else 0.0,
        gathered=4 * whole / model.layers,
        engine_weights=2 * whole / settings.tensor_parallel,
    )


def at_rest(has: Resident, settings: Settings) -> float:
    """Bytes that stay on the GPU between the trainer's phases."""
    kept = has.reward
    kept += 0.0 if settings.params_offloaded else has.params
    kept += 0.0 if settings.optimizer_offloaded else has.optimizer
    kept += 0.0 if settings.ref_offloaded else has.ref
    kept += 0.0 if settings.critic_params_offloaded else has.critic_params
    return kept + (0.0 if settings.critic_optimizer_offloaded else has.critic_optimizer)


def loaded_for(phase: str, has: Resident, settings: Settings) -> float:
    """Bytes of states that a phase needs beside what stays, whatever its batch."""
    params = has.params if settings.params_offloaded else 0.0
    optimizer = has.optimizer if settings.optimizer_offloaded else 0.0
    critic = has.critic_params if settings.critic_params_offloaded else 0.0
    moments = has.critic_optimizer if settings.critic_optimizer_offloaded else 0.0
    needs = {
        "reward": 0.0,
        "old_log_prob": params + has.gathered,
        "ref": (has.ref if settings.ref_offloaded else 0.0) + has.gathered,
        "values": critic + has.gathered,
        "adv": 0.0,
        "update_critic": critic + moments + has.critic_grads + has.gathered,
        "update_actor": params + optimizer + has.grads + has.gathered,
        "save_checkpoint": params + has.gathered,
        "update_weights": params + BUCKETS * settings.bucket_bytes,
    }
    return needs.get(phase, 0.0)


def bytes_a_token(phase: str, model: Model, settings: Settings) -> float:
    """What each token of a micro batch adds in a phase."""
    hidden, layers = model.hidden, model.layers
    if phase in ("old_log_prob", "ref"):
        return LAYER_BYTES * hidden + model.vocabulary * logit_bytes(phase, settings)
    if phase == "values":
        return LAYER_BYTES * hidden + HEADS_VALUE
    if phase == "reward":
        return REWARD_LAYERS * LAYER_BYTES * hidden + HEADS_VALUE
    if phase == "update_critic":
        return _activations(hidden, layers, checkpointed=settings.critic_checkpointed, offloaded=False) + HEADS_VALUE
    if phase == "update_actor":
        kept = _activations(
            hidden, layers, checkpointed=settings.checkpointed, offloaded=settings.activations_offloaded
        )
        return kept + model.vocabulary * logit_bytes(phase, settings)
    return 0.0


def _activations(hidden: int, layers: int, *, checkpointed: bool, offloaded: bool) -> float:
    if not checkpointed:
        return (0.25 if offloaded else 1.0) * LAYER_BYTES * hidden * layers
    return (0.0 if offloaded else 2.0 * hidden * layers) + LAYER_BYTES * hidden


def logit_bytes(phase: str, settings: Settings) -> float:
    """A token and vocabulary entry. Chunking spares most of the entropy's copy, checkpointing keeps none of it."""
    if settings.fused:
        return 0.25
    if phase == "ref":
        return 6.0
    entropy = 1.0 if settings.chunked else 4.0
    if phase == "old_log_prob":
        return 3.0 + entropy
    return 6.0 + (min(entropy, 1.5) if settings.entropy_checkpointed else entropy)


def batching_of(phase: str, settings: Settings) -> Batching | None:
    how = {
        "old_log_prob": settings.old_log_prob,
        "ref": settings.ref,
        "values": settings.update_critic,
        "update_critic": settings.update_critic,
        "update_actor": settings.update_actor,
        "reward": settings.reward,
    }
    return how.get(phase)


class Engine(NamedTuple):
    """The rollout engine's share of a GPU, in its states. Bytes."""

    awake: float
    asleep: float  # without what sleeping leaves behind more and more
    woken: float  # its weights are back, its cache is not (where it wakes in stages)


def engine_of(card: Card, has: Resident, settings: Settings, residue_bytes: float) -> Engine:
    """vLLM's budget is a share of the whole card; its graphs are on top of it."""
    graphs = settings.graphs * GRAPH_BYTES * settings.sequences_at_once / 256
    awake = card.total_bytes * settings.utilization + graphs
    if not settings.sleeps:
        return Engine(awake, awake, awake)
    asleep = residue_bytes + graphs
    return Engine(awake, asleep, asleep + has.engine_weights if settings.staged else awake)
