"""How the new value of a setting is worked out, and what it frees: small functions, named in remedies.yaml.

Each answers with the change, or with None where there is nothing to change. verl's batch arithmetic (what must divide
what) is kept: a batch is halved along the divisors that it allows.
"""

from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import NamedTuple

from oomwatch import wire
from oomwatch.advice.catalogue import Argument
from oomwatch.advice.situation import Situation
from oomwatch.core.facts import number
from oomwatch.plan.phasekeys import PHASES

GIB = float(2**30)
SHARE_STEP = 0.05
SHARE_MIN, SHARE_MAX = 0.2, 0.9
SHARE_DOWN = 0.1  # where it is not known how much is needed
TOKENS_STEP = 512
BUCKET_MIN_MB = 256
BATCH_MAX = 100_000  # sequences: more is a slip of the keyboard, and its divisors are not counted out
BUCKETS_HELD = 2.5  # a bucket, the one before, and the gathered tensor
CAPTURE_SIZES = "1,2,4,8,16,32"
RAY_KILLS_RATIO = 0.95  # of the node or container
RESTART_SHARE = 0.6  # of the steps that would fill it
RESTART_STEPS_MIN, RESTART_STEPS_USUAL = 2, 20
# Of what a pass allocates, where logits fill it (2 + 4 bytes a word for log-probabilities, 4 for the entropy).
LOGITS_SHARE, ENTROPY_SHARE = 0.8, 0.35
CHECKPOINTING_SHARE = 0.5  # of activations (reported: -50 to -60 %)

Arguments = Mapping[str, Argument]


class Change(NamedTuple):
    to: wire.ConfigValue
    frees_bytes: float | None = None


class Setting(NamedTuple):
    """What a function here is given."""

    here: Situation
    key: str
    value: wire.ConfigValue | None  # that the run has
    args: Arguments  # `with`, of remedies.yaml


Work = Callable[[Setting], Change | None]


def _number(value: wire.ConfigValue | None) -> float | None:
    """A setting that is a number, and one that a machine can count with."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= wire.COUNT_MAX else None


# ---------------------------------------------------------------- flags and plain values


def switch(it: Setting) -> Change | None:
    """On or off. A flag that a version knows and a configuration leaves out has its default, which is off."""
    to = bool(it.args["to"])
    now = it.value if isinstance(it.value, bool) else False if it.value is None else None
    if now is None or now is to or ("only_from" in it.args and it.value != it.args["only_from"]):
        return None
    frees = FREES[str(it.args["frees"])](it.here) if "frees" in it.args else None
    return Change(to, frees)


def set_to(it: Setting) -> Change | None:
    if it.value is None or it.value == it.args["to"] or ("only_from" in it.args and it.value != it.args["only_from"]):
        return None
    return Change(it.args["to"])


def at_least(it: Setting) -> Change | None:
    now, least = _number(it.value), _number(it.args["least"])
    return Change(it.args["least"]) if now is not None and least is not None and now < least else None


def halve_count(it: Setting) -> Change | None:
    now, least = _number(it.value), int(it.args["least"])
    return Change(max(least, int(now) // 2)) if now is not None and now > least else None


# ---------------------------------------------------------------- the engine


def engine_share(it: Setting) -> Change | None:
    """The share less what is needed, rounded down to the twentieth. vLLM's is a share of the whole card."""
    now, capacity = _number(it.value), it.here.facts.capacity_bytes
    if now is None or now <= SHARE_MIN:
        return None
    less = it.here.needed_bytes / capacity if capacity and it.here.needed_bytes else SHARE_DOWN
    to = max(SHARE_MIN, floor(round((now - less) / SHARE_STEP, 6)) * SHARE_STEP)
    to = round(to if to < now else now - SHARE_STEP, 2)
    return Change(to, (now - to) * capacity if capacity else None)


def larger_share(it: Setting) -> Change | None:
    now = _number(it.value)
    return Change(round(min(SHARE_MAX, now + 2 * SHARE_STEP), 2)) if now is not None and now < SHARE_MAX else None


def capture_sizes(it: Setting) -> Change | None:
    return Change(CAPTURE_SIZES) if it.value != CAPTURE_SIZES else None


def bucket(it: Setting) -> Change | None:
    """Halved until enough."""
    now = _number(it.value)
    if now is None or now <= BUCKET_MIN_MB:
        return None
    to = int(now) // 2
    while to // 2 >= BUCKET_MIN_MB and BUCKETS_HELD * (now - to) * 2**20 < it.here.needed_bytes:
        to //= 2
    return Change(to, BUCKETS_HELD * (now - to) * 2**20)


# ---------------------------------------------------------------- batches


def smaller_batch(it: Setting) -> Change | None:
    """The largest allowed batch, of at most half of the present one, with which what is needed is free; else 1."""
    now = int(_number(it.value) or 0)
    if not 1 < now <= BATCH_MAX:
        return None
    whole = _whole(it.here, it.key) if "divides" in it.args else None
    allowed = [size for size in range(now // 2, 0, -1) if not whole or whole % size == 0]
    active = it.here.active_bytes
    if active is None:
        return Change(allowed[0])
    enough = (size for size in allowed if _freed(active, size, now) >= it.here.needed_bytes)
    to = next(enough, allowed[-1])
    return Change(to, _freed(active, to, now))


def _freed(active: float, size: float, now: float) -> float:
    """A pass' own memory is proportional to what it holds."""
    return active * (1 - size / now)


def _whole(here: Situation, key: str) -> int | None:
    """What a micro batch cuts: a GPU's sequences of a mini batch, or of a step; of all GPUs with the older settings.

    An update's older setting divides ppo_mini_batch_size as it is told, in prompts.
    """
    for phase in here.batches.phases:
        keys = PHASES[phase.phase]
        if key in keys.sequences:
            return phase.sequences_per_gpu
        if key == keys.sequences_of_all:
            return here.sequences_of_all(phase)
    return None


def fewer_tokens(it: Setting) -> Change | None:
    """A dynamic batch of fewer tokens, which still holds the longest sequence (sequence-parallel ranks share it)."""
    now = int(_number(it.value) or 0)
    shares = next((one.shares for one in it.here.batches.phases if PHASES[one.phase].tokens_max == it.key), 1)
    least = _rounded(ceil((it.here.settings.length_cap_tokens or TOKENS_STEP) / shares))
    if now <= least:
        return None
    active = it.here.active_bytes
    wanted = now * (1 - it.here.needed_bytes / active) if active else now / 2
    to = max(least, min(now // 2, int(wanted) // TOKENS_STEP * TOKENS_STEP))
    return Change(to, _freed(active, to, now) if active is not None else None)


def _rounded(tokens: int) -> int:
    return ceil(tokens / TOKENS_STEP) * TOKENS_STEP


def shorter(it: Setting) -> Change | None:
    """Three quarters, or half if that is needed."""
    now, prompt = int(_number(it.value) or 0), it.here.settings.prompt_cap_tokens or 0
    active = it.here.active_bytes
    for part in (0.75, 0.5):
        to = int(now * part) // 256 * 256
        if to < 1:
            return None
        frees = _freed(active, prompt + to, prompt + now) if active is not None else None
        if frees is None or frees >= it.here.needed_bytes:
            break
    return Change(to, frees)


def smaller_step(it: Setting) -> Change | None:
    """Half of the prompts, as long as they are whole mini batches and verl takes them."""
    now, mini = int(_number(it.value) or 0), it.here.number_of("actor_rollout_ref.actor.ppo_mini_batch_size") or 1
    to = now // 2
    if to < 1 or to % mini or it.here.errors({it.key: to}) - it.here.errors({}):
        return None
    return Change(to)


def double_parallel(it: Setting) -> Change | None:
    """Twice as many GPUs share the work, if the run's can be divided so."""
    now, gpus = int(_number(it.value) or 0), it.here.gpus
    each = it.here.number_of("trainer.n_gpus_per_node") or gpus
    if now < 1 or not gpus or not each or gpus % (2 * now) or 2 * now > each:
        return None
    active = it.here.active_bytes
    return Change(2 * now, active / 2 if it.args.get("frees") == "half_of_active" and active is not None else None)


# ---------------------------------------------------------------- restarts


def restart_every(it: Setting) -> Change | None:
    """How many steps a process may live: a share of those that would fill it from the start."""
    now = int(_number(it.value) or 0)
    every = max(RESTART_STEPS_MIN, floor(RESTART_SHARE * _steps_to_full(it.here)))
    return Change(min(every, now) if now > 0 else every)


def _steps_to_full(here: Situation) -> float:
    """From the start, as fast as it rises now: what it has gained is free again after a restart."""
    facts, told = here.facts, number(here.facts.verdict.get("eta_steps"))
    if facts.topic == "host":
        return told if told is not None else _steps_to_full_host(here)
    left = [steps for steps in (told, facts.steps_left) if steps is not None]
    each = max(facts.pace_bytes, facts.residue_pace_bytes)
    if not left:
        return RESTART_STEPS_USUAL / RESTART_SHARE
    gained = max(facts.floor_rise_bytes, facts.residue_rise_bytes)
    return min(left) + (gained / each if each else 0.0)


def _steps_to_full_host(here: Situation) -> float:
    """From what grows there, second by second."""
    facts = here.facts
    rises = [part for part in facts.host_parts if part.rise_seconds]
    each = sum(part.rise_bytes / part.rise_seconds for part in rises) * (facts.step_seconds or 0.0)
    if not each or facts.host_limit_bytes is None or facts.host_used_bytes is None:
        return RESTART_STEPS_USUAL / RESTART_SHARE
    room = RAY_KILLS_RATIO * facts.host_limit_bytes - facts.host_used_bytes
    return max(0.0, room + sum(part.rise_bytes for part in rises)) / each


# ---------------------------------------------------------------- what switches free


def engine_pool(here: Situation) -> float | None:
    kv_share, capacity = here.settings.kv_share, here.facts.capacity_bytes
    return kv_share * capacity if kv_share is not None and capacity else None


def kv_pool(here: Situation) -> float | None:
    """At the switch the pool is yet to come; what of the share is weights is not known, so half of it counts."""
    pool = engine_pool(here)
    return None if pool is None else pool / 2


def beyond_token_cap(here: Situation) -> float | None:
    """What a pass of so many sequences may hold beyond the cap that dynamic batches keep."""
    cap, phase, active = here.settings.token_cap, here.phase, here.active_bytes
    tokens = here.settings.micro_batch_tokens(phase) if phase else None
    if cap is None or tokens is None or active is None:
        return None
    return active * max(0.0, 1 - max(cap, here.settings.length_cap_tokens or 0) / tokens)


def logits(here: Situation) -> float | None:
    return None if here.active_bytes is None else LOGITS_SHARE * here.active_bytes


def entropy_copy(here: Situation) -> float | None:
    return None if here.active_bytes is None else ENTROPY_SHARE * here.active_bytes


def most_of_active(here: Situation) -> float | None:
    return None if here.active_bytes is None else CHECKPOINTING_SHARE * here.active_bytes


def beyond_peers(here: Situation) -> float | None:
    """What this rank holds beyond the mean of all."""
    own, peers, gpus = here.facts.peak_bytes, here.facts.peers_peak_bytes, here.gpus or 2
    return None if own is None or peers is None else max(0.0, own - peers) * (gpus - 1) / gpus


FREES: dict[str, Callable[[Situation], float | None]] = {
    one.__name__: one
    for one in (beyond_peers, beyond_token_cap, engine_pool, entropy_copy, kv_pool, logits, most_of_active)
}
CHANGES: dict[str, Work] = {
    one.__name__: one
    for one in (
        at_least, bucket, capture_sizes, double_parallel, engine_share, fewer_tokens, halve_count, larger_share,
        restart_every, set_to, shorter, smaller_batch, smaller_step, switch,
    )
}  # fmt: skip
