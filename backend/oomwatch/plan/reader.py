"""Settings as verl sees them: what is told, else what they follow, else the default of its release."""

from typing import NamedTuple

from oomwatch import wire
from oomwatch.plan import verlkeys
from oomwatch.plan.defaults import told
from oomwatch.plan.figure import Figure
from oomwatch.plan.settings import ACTOR, Config
from oomwatch.plan.verlkeys import Strategy


class Reader(NamedTuple):
    """Of one configuration, for one release of verl."""

    config: Config
    release: str

    @property
    def strategy(self) -> Strategy:
        """Whose settings and workers count. Where it is not told it shows in the settings."""
        said = self.config.get(f"{ACTOR}.strategy")
        has_megatron = any(key.startswith(f"{ACTOR}.megatron.") for key in self.config)
        return "megatron" if said == "megatron" or (said is None and has_megatron) else "fsdp"

    def since(self, release: str) -> bool:
        """Whether the release is this one or a later one."""
        return _order(self.release) >= _order(release)

    @property
    def has_engines(self) -> bool:
        """One worker for all strategies, each of which has a configuration of its engine's own."""
        return self.since("0.8.0")

    def value(self, key: str) -> wire.ConfigValue | None:
        return told(self.config, key, self.release, self.strategy).value

    def is_on(self, key: str) -> bool:
        return self.value(key) is True

    def number(self, key: str) -> int | None:
        return self.figure(key).value

    def figure(self, key: str) -> Figure:
        """A setting as a number; what is no whole number is missing."""
        value, teller, is_assumed = told(self.config, key, self.release, self.strategy)
        if not isinstance(value, int) or isinstance(value, bool):
            return Figure(None, missing=(key,))
        return Figure(value, str(value), assumed=(teller,) if is_assumed else ())


def reader_of(config: Config, version: str | None) -> Reader:
    """For the release that a version of verl is of; for the newest where it is not told or unheard of."""
    known = verlkeys.release_of(version) if version else None
    return Reader(config, known or verlkeys.releases()[-1])


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
