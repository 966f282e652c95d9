"""The phases of a training step, and how the trainer's own words map to them.

The names of phases and of the markers of a switch to rollout are closed lists: wire.PHASES and wire.RESHARD_MARKERS.
Sources: the heads are those that verl's `log_gpu_memory_usage` is called with (0.2 to 0.9), the timing keys those of
its `marked_timer`, the methods those of its Ray workers.
"""

import re
from typing import NamedTuple

from oomwatch import wire

# What a step is made of, in the order of wire.PHASES: idle is what is left over.
STEP_ORDER = tuple(phase for phase in wire.PHASES if phase != "idle")

# Phase -> the names under timing_s/ (older: timing/) that it has had, the best first.
TIMING_NAMES: dict[str, tuple[str, ...]] = {
    "rollout": ("gen", "generate_sequences"),
    "reward": ("reward",),
    "old_log_prob": ("old_log_prob",),
    "ref": ("ref", "RefPolicy"),
    "values": ("values",),
    "adv": ("adv",),
    "update_critic": ("update_critic",),
    "update_actor": ("update_actor",),
    "save_checkpoint": ("save_checkpoint",),
    "update_weights": ("update_weights", "param_sync"),
    "validation": ("testing",),
}


class Head(NamedTuple):
    """What the head of a memory line says: the point of the program, its phase, and the marker that it is, if any.

    `ends` is a phase that is over at a point that several others pass. `asleep`: a colocated engine sleeps there.
    """

    at_point: str
    phase: str | None = None
    marker: str | None = None
    ends: str | None = None
    asleep: bool = False


# Moves between host and device, and the phase that is over with them. They happen in several phases, so they tell none;
# but what is loaded was offloaded for the rollout.
_MOVES = {
    "load_fsdp_model_to_gpu": "rollout",
    "offload_fsdp_model_to_cpu": None,
    "load_fsdp_optimizer": "rollout",
    "offload_fsdp_optimizer": None,
    "load_megatron_model_to_gpu": "rollout",
    "offload_megatron_model_to_cpu": None,
}
_LOADS = ("load_fsdp_model_to_gpu", "load_megatron_model_to_gpu")  # the engine has gone to sleep before
_KNOWN = (
    Head("Before resume weights", "update_weights", asleep=True),
    Head("After resume weights", "update_weights"),
    Head("After update_weights", "update_weights", "update_weights"),
    Head("After offload model to cpu", "update_weights"),
    # The KV cache is back: from here on memory is the rollout's.
    Head("After resume kv_cache", "rollout", "resume_kv_cache"),
    Head("After switch to rollout mode", "rollout", "switch_to_rollout"),
    Head("After switch to trainer mode", asleep=True),
    Head("Before state_dict() in sharding manager memory", "update_weights"),
    Head("After state_dict() in sharding manager memory", "update_weights", "state_dict_memory"),
    Head("After sync model weights in sharding manager", "update_weights", "sync_weights"),
    Head("After del state_dict and empty_cache in sharding manager", "update_weights"),
    Head("After load_weights sharding manager memory", "update_weights"),
    Head("Before vllm offload in sharding manager", "rollout"),
    Head("After vllm offload in sharding manager", asleep=True),
    Head("Before SGLang offload in sharding manager", "rollout"),
    Head("After SGLang offload in sharding manager", asleep=True),
    Head("After entering sharding manager", "rollout"),
    Head("After entering rollout sharding manager", "rollout"),
    Head("After rollout generation", "rollout"),
    Head("Before update policy", "update_actor"),
    Head("After update policy", "update_actor"),
    Head("Before update_actor", "update_actor"),
    Head("After update_actor", "update_actor"),
    Head("Before compute_log_prob", "old_log_prob"),
    Head("After compute_log_prob", "old_log_prob"),
    Head("After offload actor model during update_actor"),
    Head("After offload actor optimizer during update_actor"),
    Head("After offload actor model during compute_log_prob"),
    Head("After offload actor model during init"),
    Head("After offload actor optimizer during init"),
    Head("Before init from HF AutoModel"),
    Head("After init from HF AutoModel"),
    Head("After init model from HF AutoModel"),
    Head("Before building vllm rollout"),
    Head("After building vllm rollout"),
    Head("After building sharding manager"),
    Head("critic values", "values"),
    Head("recompute logp", "old_log_prob"),
    Head("ref logp", "ref"),
    Head("ppo update", "update_actor"),
    *(Head(f"After {role} {what} init") for role in ("Actor", "Ref", "Critic") for what in ("FSDP", "optimizer")),
    *(Head(f"Before {what}", ends=ends, asleep=what in _LOADS) for what, ends in _MOVES.items()),
    *(Head(f"After {what}", ends=ends) for what, ends in _MOVES.items()),
)
HEADS = {head.at_point.lower(): head for head in _KNOWN}
_DECORATION = re.compile(r"^(?:\[[^\]]*\]|memory-usage|rank \d+|[a-z_]+(?: - |: ))\s*", re.IGNORECASE)


def head_of(text: str) -> Head | None:
    """The known head that `text` is, with or without a role before it ("[actor] After update_weights")."""
    wanted = text.strip().lower()
    found = HEADS.get(wanted)
    while found is None and (decoration := _DECORATION.match(wanted)):
        wanted = wanted[decoration.end() :]
        found = HEADS.get(wanted)
    return found


_FUNCTION_PHASES = {
    "generate_sequences": "rollout",
    "rollout_mode": "update_weights",
    "update_weights": "update_weights",
    "sync_model_weights": "update_weights",
    "wake_up": "update_weights",
    "compute_rm_score": "reward",
    "compute_reward": "reward",
    "compute_ref_log_prob": "ref",
    "compute_log_prob": "old_log_prob",
    "compute_values": "values",
    "compute_advantage": "adv",
    "update_critic": "update_critic",
    "update_actor": "update_actor",
    "update_policy": "update_actor",
    "save_checkpoint": "save_checkpoint",
    "_validate": "validation",
}


def phase_of_function(name: str) -> str | None:
    """The phase that a function of a traceback runs in. Ray's fused workers put a role before the method's name."""
    found = _FUNCTION_PHASES.get(name)
    if found is not None:
        return found
    for role in ("actor_rollout_ref_", "actor_rollout_", "actor_", "rollout_", "ref_", "critic_", "rm_"):
        if name.startswith(role) and (found := _FUNCTION_PHASES.get(name[len(role) :])):
            return found
    return None
