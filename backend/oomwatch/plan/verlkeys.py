"""Which settings each release of verl has for FSDP and for Megatron, and what they are where nobody sets them.

verlkeys.json is written by scripts/verl_keys.py from the released packages' own configuration files. A default may be a
reference to another setting ("${actor_rollout_ref.rollout.n}"), as verl wrote it.
"""

import functools
import importlib.resources
from collections.abc import Mapping
from difflib import SequenceMatcher, get_close_matches
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

Strategy = Literal["fsdp", "megatron"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
Default: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any] | None  # as JSON has it

# Settings that articles and forks name and no release has: what verl has in their place, as the end of a key.
NO_RELEASE_HAS: Mapping[str, str | None] = MappingProxyType(
    {
        "actor_rollout_ref.actor.offload_ratio": "actor_rollout_ref.actor.fsdp_config.param_offload",
        "actor_rollout_ref.model.offload_ratio": "actor_rollout_ref.actor.fsdp_config.param_offload",
        "actor_rollout_ref.rollout.buffer_size": None,
        "actor_rollout_ref.rollout.producer_buffer_limit": None,
        "actor_rollout_ref.rollout.rollout_steps_per_update": None,
        "actor_rollout_ref.rollout.static_sharding": None,
    }
)
# The last parts of names in articles, and whose place verl's take.
_SAID_FOR = {
    "async_mode": "mode",
    "cpu_offload": "param_offload",
    "max_packed_length": "ppo_max_token_len_per_gpu",
    "offload_params": "param_offload",
    "offload_ratio": "param_offload",
    "pack_sequences": "use_dynamic_bsz",
}
_SAID_FOR_WHOLE = {"actor_rollout_ref.rollout.max_length": "data.max_response_length"}
_SWITCHES, _SWITCH_ALIKE_RATIO = ("enable", "enabled"), 0.9
_ALIKE_RATIO = 0.6  # difflib's own bound for a close match


class _Span(Struct, frozen=True, array_like=True):
    """From which to which release a default holds."""

    letters: Literal["f", "m", "fm"]
    first: str
    last: str
    default: Default


class _Table(Struct, frozen=True):
    releases: tuple[str, ...]
    files: dict[str, tuple[str, str]]  # of verl/trainer/config, and the first and last release that has them
    keys: dict[str, tuple[_Span, ...]]


@functools.cache
def _table() -> _Table:
    content = importlib.resources.files("oomwatch.plan").joinpath("verlkeys.json").read_bytes()
    return msgspec.json.decode(content, type=_Table)


def releases() -> tuple[str, ...]:
    """The releases in the table, the oldest first: "0.2.0" to "0.9.1"."""
    return _table().releases


@functools.cache
def minors() -> tuple[str, ...]:
    """The same by their first two numbers: "0.2" to "0.9"."""
    return tuple(dict.fromkeys(minor(release) for release in releases()))


@functools.lru_cache(maxsize=64)
def release_of(version: str) -> str | None:
    """The release whose settings a version has: the last of its minor version that is not newer ("0.9" is "0.9.1").

    One that is newer than the table counts as its newest; None for what is no version, or older than the table.
    """
    if is_newer(version):
        return releases()[-1]
    told, of_minor = _numbers(version), [one for one in releases() if minor(one) == minor(version)]
    earlier = [one for one in of_minor if _numbers(one) <= told]
    exact = len(told) > 2  # noqa: PLR2004 - major and minor alone mean the newest of them
    return next(reversed(earlier if exact and earlier else of_minor), None)


def is_newer(version: str) -> bool:
    """Whether a version came after all of the table."""
    numbers = _numbers(version)
    return len(numbers) > 1 and numbers[:2] > _numbers(releases()[-1])[:2]


def is_since(release: str, first: str) -> bool:
    """Whether one of the table's releases is another or came after it. Raises ValueError for what is none of them."""
    return _order(release) >= _order(first)


def has_engines(release: str) -> bool:
    """Whether one worker serves all strategies, each with a configuration of its engine's own."""
    return is_since(release, "0.8.0")


def minor(release: str) -> str:
    """Its first two numbers: "0.9.1" is of "0.9"."""
    return ".".join(release.split(".")[:2])


def has_file(name: str, version: str) -> bool:
    """Whether a version brings a configuration of this name ("ppo_trainer", "actor/dp_actor")."""
    span, release = _table().files.get(name), release_of(version)
    return span is not None and release is not None and _order(span[0]) <= _order(release) <= _order(span[1])


def keys_of(version: str, strategy: Strategy) -> Mapping[str, Default]:
    """All settings of a version with their defaults, by dotted key. Raises ValueError for an unknown version."""
    release = release_of(version)
    if release is None:
        raise ValueError(f'"{version}" is no known version of verl; known are {", ".join(minors())}')
    return _keys_of(release, strategy)


@functools.lru_cache(maxsize=32)
def _keys_of(release: str, strategy: Strategy) -> Mapping[str, Default]:
    found = {}
    for key, spans in _table().keys.items():
        for span in spans:
            if strategy[0] in span.letters and _order(span.first) <= _order(release) <= _order(span.last):
                found[key] = span.default
    return MappingProxyType(found)


def default_of(key: str, version: str, strategy: Strategy) -> Default:
    """What a setting is where nobody sets it. Raises KeyError where the version has no such setting."""
    return keys_of(version, strategy)[key]


@functools.lru_cache(maxsize=4096)
def having(key: str, strategy: Strategy) -> tuple[str, ...]:
    """The releases that have a setting."""
    return tuple(
        release
        for span in _table().keys.get(key, ())
        if strategy[0] in span.letters
        for release in releases()[_order(span.first) : _order(span.last) + 1]
    )


def takes(key: str, version: str, strategy: Strategy) -> bool:
    """Whether a key is a setting, or below one that is an empty mapping for people to fill."""
    known = keys_of(version, strategy)
    parts = key.split(".")
    return key in known or any(known.get(".".join(parts[:end])) == {} for end in range(1, len(parts)))


def nearest(key: str, version: str, strategy: Strategy) -> str | None:
    """The setting that was most likely meant: the same name elsewhere, else one that is spelled much like it."""
    known = keys_of(version, strategy)
    for told in (_SAID_FOR_WHOLE.get(key), NO_RELEASE_HAS.get(key)):
        if told in known:
            return told
    section, _, name = key.rpartition(".")
    if name in _SWITCHES:  # of another section it switches another thing
        switches = [one for switch in _SWITCHES for one in _names(version, strategy).get(switch, ())]
        return next(iter(get_close_matches(key, switches, n=1, cutoff=_SWITCH_ALIKE_RATIO)), None)
    siblings = _names(version, strategy).get(name) or _names(version, strategy).get(_SAID_FOR.get(name, ""))
    if siblings:
        return max(siblings, key=lambda one: (_likeness(one.rpartition(".")[0], section), one))
    beside = [one.rpartition(".")[2] for one in known if one.rpartition(".")[0] == section]
    if close := get_close_matches(name, beside, n=1, cutoff=_ALIKE_RATIO):
        return f"{section}.{close[0]}" if section else close[0]
    alike = get_close_matches(name, list(_names(version, strategy)), n=1, cutoff=0.8)
    places = _names(version, strategy)[alike[0]] if alike else ()
    return max(places, key=lambda one: (_likeness(one.rpartition(".")[0], section), one), default=None)


@functools.lru_cache(maxsize=32)
def _names(version: str, strategy: Strategy) -> Mapping[str, tuple[str, ...]]:
    """The last part of each key -> the keys that end with it."""
    found: dict[str, tuple[str, ...]] = {}
    for key in keys_of(version, strategy):
        name = key.rpartition(".")[2]
        found[name] = (*found.get(name, ()), key)
    return found


def _likeness(one: str, other: str) -> float:
    parts = SequenceMatcher(None, one.split("."), other.split(".")).ratio()
    return parts + 0.1 * SequenceMatcher(None, one, other).ratio()


def _numbers(version: str) -> list[int]:
    """The numbers that a version begins with: "0.9.1.dev0" is 0, 9, 1."""
    numbers = []
    for part in version.split("."):
        if not (part.isascii() and part.isdigit() and len(part) < 6):  # noqa: PLR2004 - more is no part of a version
            break
        numbers.append(int(part))
    return numbers


def _order(release: str) -> int:
    return releases().index(release)
