"""Which keys may be named to a run: those that its own configuration has, or that its version of verl knows."""

from collections.abc import Iterable

from oomwatch.advice.catalogue import Strategy, versions_by_key
from oomwatch.core.settings import Config

RELEASES = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")


def strategy_of(config: Config) -> Strategy:
    """How the run is sharded: verl's Megatron workers have other keys."""
    told = config.get("actor_rollout_ref.actor.strategy")
    has_megatron = any(key.startswith("actor_rollout_ref.actor.megatron.") for key in config)
    return "megatron" if told == "megatron" or (told is None and has_megatron) else "fsdp"


def releases_of(config: Config, version: str | None) -> tuple[str, ...]:
    """The releases that the run may be of: its version's, else those that know the keys which it has.

    A version that is newer than all in the table counts as the newest. Where no release knows all the keys (a fork),
    those that know the most.
    """
    minor = ".".join((version or "").split(".")[:2])
    if minor in RELEASES:
        return (minor,)
    if version and _is_newer(minor):
        return RELEASES[-1:]
    known = versions_by_key()
    strategy = strategy_of(config)
    ours = [known[key].get(strategy, ()) for key in config if key in known]
    hits = {release: sum(release in versions for versions in ours) for release in RELEASES}
    most = max(hits.values())
    return tuple(release for release in RELEASES if hits[release] == most)


def _is_newer(minor: str) -> bool:
    numbers = [int(part) for part in minor.split(".") if part.isdigit()]
    return len(numbers) > 1 and numbers > [int(part) for part in RELEASES[-1].split(".")]


def key_for(keys: Iterable[str], config: Config, version: str | None) -> str | None:
    """The first of these keys that the run has; else the first that all releases which it may be of know."""
    candidates = tuple(keys)
    strategy, releases = strategy_of(config), releases_of(config, version)
    here = (key for key in candidates if key in config)
    known = (
        key
        for key in candidates
        if all(release in versions_by_key().get(key, {}).get(strategy, ()) for release in releases)
    )
    return next(here, next(known, None))
