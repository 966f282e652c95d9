"""Which release of verl, and which way of sharding, a configuration is for: told, or known by the keys that it has."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from oomwatch.doctor.read.layers import Layer
from oomwatch.doctor.read.reading import Complaint, ReadingError, Sharding, VersionFrom
from oomwatch.plan import verlkeys
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.reader import shows_megatron
from oomwatch.plan.verlkeys import Strategy

STRATEGY_KEY = "actor_rollout_ref.actor.strategy"
_OTHER_ENGINES = ("automodel", "mindspeed", "torchtitan", "veomni")
_DEPRECATED = {keys.sequences_of_all for keys in PHASES.values()}  # has_engines: there, and read no more
_CHOSEN = re.compile(r"(?:_generated_ppo_)?(dp|megatron|automodel|mindspeed|torchtitan|veomni)(?:_\w+)?")


class Release(NamedTuple):
    version: str
    version_from: VersionFrom
    versions: tuple[str, ...]
    sharding: Sharding
    complaints: tuple[Complaint, ...] = ()

    @property
    def strategy(self) -> Strategy:
        return "megatron" if self.sharding == "megatron" else "fsdp"


class Said(NamedTuple):
    """A key that somebody wrote, with its value as text."""

    key: str
    value: str
    name: str
    line: int | None
    adds: bool = False  # by a "+": then the key was not there before


def release_of(layers: Sequence[Layer], said: Sequence[Said], told: str | None) -> Release:
    """Raises ReadingError for a version that is none, or older than all that are known."""
    sharding, complaints = _sharding(layers, said)
    strategy: Strategy = "megatron" if sharding == "megatron" else "fsdp"
    if told is None:
        versions, version_from = _by_keys(said, strategy)
        return Release(versions[-1], version_from, versions, sharding, complaints)
    release = verlkeys.release_of(told.strip().removeprefix("v"))
    if release is None:
        raise ReadingError("unknown_version", "verl", version=told[:40], known=", ".join(verlkeys.minors()))
    if verlkeys.is_newer(told):
        newer = Complaint(
            what="newer_version", severity="warning", name="verl", values={"version": told[:40], "known": release}
        )
        complaints = (*complaints, newer)
    return Release(release, "told", (release,), sharding, complaints)


def _by_keys(said: Iterable[Said], strategy: Strategy) -> tuple[tuple[str, ...], VersionFrom]:
    """The releases that have and read the most of the keys, and have the fewest of those that are added.

    Of equally good ones the newest is taken for it.
    """
    releases = verlkeys.releases()
    said = tuple(said)
    keys, added = {one.key for one in said if not one.adds}, {one.key for one in said if one.adds}
    set_ = {one.key for one in said if one.value != "None"}
    unread = {key for key in _DEPRECATED & set_ if f"{key}_per_gpu" not in set_}
    hits = {}
    for release in releases:
        known = verlkeys.keys_of(release, strategy)
        there = sum(known.get(key) is not None for key in added)
        lost = len(unread) if verlkeys.has_engines(release) else 0
        hits[release] = len(keys & known.keys()) - there - lost
    best = tuple(release for release in releases if hits[release] == max(hits.values()))
    return best, "assumed" if len(best) == len(releases) else "keys"


def _sharding(layers: Sequence[Layer], said: Sequence[Said]) -> tuple[Sharding, tuple[Complaint, ...]]:
    """What was said last of it wins, and what the keys look like where nobody said it."""
    told = [(one.value, one.name, one.line) for one in said if one.key in (STRATEGY_KEY, "model_engine")]
    for value, name, line in [*reversed(told), *reversed(list(_chosen(layers)))]:
        if value in ("fsdp2", "megatron"):
            return ("fsdp2" if value == "fsdp2" else "megatron"), ()
        if value in ("fsdp", "dp"):
            return "fsdp", ()
        if value in _OTHER_ENGINES:
            other = Complaint(what="other_engine", severity="warning", name=name, line=line, values={"engine": value})
            return "fsdp", (other,)
    return ("megatron" if shows_megatron(one.key for one in said) else "fsdp"), ()


def _chosen(layers: Sequence[Layer]) -> Iterable[tuple[str, str, int | None]]:
    """The engines that defaults lists, groups and configuration names stand for."""
    for layer in layers:
        for base in layer.bases:
            if "megatron" in base:
                yield "megatron", layer.name, None
        for group, option, line in layer.choices:
            if (match := _CHOSEN.fullmatch(option)) and group.partition("@")[0] in ("actor", "model_engine"):
                yield match[1], layer.name, line
