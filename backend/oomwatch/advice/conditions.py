"""What `when` in remedies.yaml may ask: each a question that the situation answers with yes or no.

Where a run's configuration was not told, questions about it are answered as verl's defaults would.
"""

from collections.abc import Callable

from oomwatch.advice.keys import releases_of
from oomwatch.advice.situation import Situation
from oomwatch.plan.reader import strategy_of

FULL_RATIO = 0.95
ROOM_RATIO = 0.85
NEIGHBOUR_RATIO = 0.01  # of the card
SHM_SMALL_RATIO = 0.15  # of the host's memory; Ray wants 30 % for its store


def engine_sleeps(here: Situation) -> bool:
    return here.settings.free_cache_engine is not False


def engine_stays_awake(here: Situation) -> bool:
    return here.settings.free_cache_engine is False


def room_for_engine_pool(here: Situation) -> bool:
    """Whether the training phases fit beside an engine that keeps all of its share."""
    facts, kv_share = here.facts, here.settings.kv_share
    trained = [one.peak_bytes for one in facts.phases if one.phase not in ("rollout", "update_weights", "validation")]
    if not trained or kv_share is None or not facts.capacity_bytes:
        return False
    return max(trained) + kv_share * facts.capacity_bytes < FULL_RATIO * facts.capacity_bytes


def captures_graphs(here: Situation) -> bool:
    return here.config.get("actor_rollout_ref.rollout.enforce_eager") is not True


def static_batches(here: Situation) -> bool:
    return here.settings.dynamic_batches is not True


def dynamic_batches(here: Situation) -> bool:
    return here.settings.dynamic_batches is True


def static_critic_batches(here: Situation) -> bool:
    return here.config.get("critic.use_dynamic_bsz", here.settings.dynamic_batches) is not True


def dynamic_critic_batches(here: Situation) -> bool:
    return not static_critic_batches(here)


def token_cap_known(here: Situation) -> bool:
    return here.settings.token_cap is not None or not here.settings.known


def critic_present(here: Situation) -> bool:
    return here.settings.has_critic is not False


def sharded_by_fsdp(here: Situation) -> bool:
    """Megatron's workers have some settings of the model too, and never read them."""
    return strategy_of(here.config) == "fsdp"


def padding_removed(here: Situation) -> bool:
    """verl's Ulysses sequence parallelism needs it."""
    return here.config.get("actor_rollout_ref.model.use_remove_padding") is True


def expandable_segments_safe(here: Situation) -> bool:
    """No vLLM in the process (its memory pool breaks), and a verl that does not switch it by itself (0.6 does)."""
    releases = releases_of(here.config, here.version)
    known = here.settings.engine is not None and here.settings.engine != "vllm"
    return known and strategy_of(here.config) == "fsdp" and all(release < "0.6" for release in releases)


def grows(here: Situation) -> bool:
    """Whether something rises from step to step, on the card or on the host."""
    if here.facts.topic in ("host", "disk"):
        return any(part.rise_bytes > 0 for part in here.facts.host_parts) or "eta_steps" in here.facts.verdict
    return here.facts.steps_left is not None or here.facts.residue_rise_bytes > 0


def sharded_by_fsdp2(here: Situation) -> bool:
    """Told, and not only taken to be: with FSDP the setting has no effect."""
    return here.config.get("actor_rollout_ref.actor.strategy") == "fsdp2"


def neighbour_steady(here: Situation) -> bool:
    """Whether no program of others on the card grows: then no setting of this run's would be enough for long."""
    least = NEIGHBOUR_RATIO * (here.facts.capacity_bytes or 0.0)
    return not any(part.kind == "stranger" and part.rise_bytes > least for part in here.facts.parts)


def container_limit(here: Situation) -> bool:
    return here.facts.limited_by == "container"


def machine_limit(here: Situation) -> bool:
    return here.facts.limited_by == "machine"


def shared_memory_small(here: Situation) -> bool:
    total, host = here.facts.shm_total_bytes, here.facts.host_limit_bytes
    if here.facts.watched == "shm_small" or here.facts.verdict.get("event") == "shm_small":
        return True
    return total is not None and host is not None and total < SHM_SMALL_RATIO * host


def room_on_card(here: Situation) -> bool:
    peak, capacity = here.facts.peak_bytes, here.facts.capacity_bytes
    return peak is not None and capacity is not None and peak < ROOM_RATIO * capacity


def switches_often(here: Situation) -> bool:
    return here.facts.topic == "switch"


CONDITIONS: dict[str, Callable[[Situation], bool]] = {
    one.__name__: one
    for one in (
        captures_graphs, container_limit, critic_present, dynamic_batches, dynamic_critic_batches, engine_sleeps,
        engine_stays_awake, expandable_segments_safe, grows, machine_limit, neighbour_steady, padding_removed,
        room_for_engine_pool, room_on_card, sharded_by_fsdp, sharded_by_fsdp2, shared_memory_small,
        static_batches, static_critic_batches, switches_often, token_cap_known,
    )
}  # fmt: skip
