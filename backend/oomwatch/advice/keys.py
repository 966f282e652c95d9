"""Which keys may be named to a run: those that its own configuration has, or that its version of verl knows."""

from collections.abc import Iterable

from oomwatch.plan import verlkeys
from oomwatch.plan.reader import strategy_of
from oomwatch.plan.settings import Config
from oomwatch.plan.verlkeys import Strategy

RELEASES = verlkeys.minors()


def releases_of(config: Config, version: str | None) -> tuple[str, ...]:
    """The releases that the run may be of: its version's, else those that know the keys which it has.

    A version that is newer than all in the table counts as the newest. Where no release knows all the keys (a fork),
    those that know the most.
    """
    release = verlkeys.release_of(version) if version else None
    if release is not None:
        return (verlkeys.minor(release),)
    strategy = strategy_of(config)
    hits = {minor: sum(_knows(minor, key, strategy) for key in config) for minor in RELEASES}
    most = max(hits.values())
    return tuple(minor for minor in RELEASES if hits[minor] == most)


def key_for(keys: Iterable[str], config: Config, version: str | None) -> str | None:
    """The first of these keys that the run has; else the first that all releases which it may be of know."""
    candidates = tuple(keys)
    strategy, releases = strategy_of(config), releases_of(config, version)
    here = (key for key in candidates if key in config)
    known = (key for key in candidates if all(_knows(minor, key, strategy) for minor in releases))
    return next(here, next(known, None))


def _knows(minor: str, key: str, strategy: Strategy) -> bool:
    return key in verlkeys.keys_of(minor, strategy)
