"""What verl takes where a configuration does not say: its default, or what the setting follows.

verl writes that one setting follows another as an interpolation: "${oc.select:actor_rollout_ref.actor.strategy,fsdp}",
"${oc.select:.ppo_micro_batch_size,null}" (beside it), "${critic.ppo_micro_batch_size}".
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.plan import verlkeys
from oomwatch.plan.settings import Config
from oomwatch.plan.verlkeys import Strategy

_FOLLOWS = re.compile(r"\$\{(?:oc\.select:)?\s*(?P<key>[\w.]+)\s*(?:,\s*(?P<otherwise>.*))?\}")
# Of verl's classes, not of its files: a critic's passes without gradients, since its engine is of all strategies.
_OF_CLASSES: dict[str, wire.ConfigValue] = {"critic.ppo_infer_max_token_len_per_gpu": 32768}


class Told(NamedTuple):
    """A setting's value and the key that tells it: one of the configuration, else the one whose default it is."""

    value: wire.ConfigValue | None
    key: str
    is_assumed: bool


def told(config: Config, key: str, release: str, strategy: Strategy) -> Told:
    """What is told counts, else what a chain of followed settings comes to, else verl's default."""
    return _of(key, config, verlkeys.keys_of(release, strategy))


def _of(key: str, config: Config, defaults: Mapping[str, verlkeys.Default]) -> Told:
    if key in config:
        return Told(config[key], key, is_assumed=False)
    return _assumed(key, defaults.get(key, _OF_CLASSES.get(key)), config, defaults)


def _assumed(key: str, default: verlkeys.Default, config: Config, defaults: Mapping[str, verlkeys.Default]) -> Told:
    followed = _FOLLOWS.fullmatch(default) if isinstance(default, str) else None
    if followed is None:
        return Told(_plain(default), key, is_assumed=True)
    other = _beside(key, followed["key"])
    if other in config or other in defaults:
        return _of(other, config, defaults)
    return _assumed(key, _written(followed["otherwise"]), config, defaults)  # it follows what this strategy has not


def _beside(key: str, followed: str) -> str:
    return f"{key.rpartition('.')[0]}{followed}" if followed.startswith(".") else followed


def _written(otherwise: str | None) -> verlkeys.Default:
    """The value that stands in an interpolation, after its comma: a YAML scalar, or an empty list or mapping."""
    text = otherwise or "null"
    try:
        found: verlkeys.Default = msgspec.json.decode(text.lower() if text in ("True", "False") else text)
    except msgspec.DecodeError:
        return text
    return found


def _plain(default: verlkeys.Default) -> wire.ConfigValue | None:
    """A single value; None for lists, sections, what must be told ("???"), and texts put together of settings."""
    if isinstance(default, str) and (default == "???" or "${" in default):
        return None
    return default if isinstance(default, bool | int | float | str) else None
