"""Reads single settings of a configuration. A value of another kind than asked for is None, as one that is not told."""

from collections.abc import Mapping

from oomwatch import wire

# Dotted key of verl's -> value. What is null is not in it, unless a person put null over a default of verl's.
Config = Mapping[str, wire.ConfigValue | None]

ACTOR, ROLLOUT, REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
MODEL, CRITIC, REWARD = "actor_rollout_ref.model", "critic", "reward_model"


def count(config: Config, key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def ratio(config: Config, key: str) -> float | None:
    value = config.get(key)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def flag(config: Config, *keys: str) -> bool | None:
    """Whether any of the keys is on; None where none is told."""
    told = [value for key in keys if isinstance(value := config.get(key), bool)]
    return any(told) if told else None


def text(config: Config, key: str) -> str | None:
    value = config.get(key)
    return value if isinstance(value, str) else None
