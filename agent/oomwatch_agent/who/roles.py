"""What a process of a training does, by the names that Ray, verl, vLLM and SGLang give their processes. PURE."""

import functools

from oomwatch import wire

# Words in an actor's name or a process' title, by role. The probe, which imports nothing of ours, has the same table
# for what it says of itself (oomwatch_probe.identity.ROLES; a test holds the two to be equal).
SIGNS: dict[str, tuple[str, ...]] = {
    "actor": ("actor_rollout_update_actor", "actorrolloutref", "actor_update", "ray::actorworker", "workerdict.actor"),
    "rollout": ("vllm", "sglang", "enginecore", "rolloutworker", "httpserver"),
    "critic": ("critic",),
    "reward": ("reward",),
    "ref": ("refworker", "refpolicy", "workerdict.ref"),
    "driver": ("taskrunner", "main_ppo"),
}


@functools.lru_cache(maxsize=1024)
def role_of(words: str | None) -> str | None:
    """The role that a name tells; None where it tells none ("WorkerDict" may hold any of them)."""
    lower = (words or "").lower()
    return next((role for role, signs in SIGNS.items() if any(sign in lower for sign in signs)), None)


def better(role: str | None, other: str | None) -> str | None:
    """Of two roles that a process was seen in the one it is known by: who trains the actor also computes for others."""
    known = [name for name in (role, other) if name is not None]
    return min(known, key=lambda name: wire.ROLES.index(name) if name in wire.ROLES else len(wire.ROLES), default=None)
