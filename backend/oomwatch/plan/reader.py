"""Settings as verl sees them: what is told, else what they follow, else the default of its release."""

from collections.abc import Iterable
from typing import NamedTuple

from oomwatch import wire
from oomwatch.plan import verlkeys
from oomwatch.plan.defaults import Told, told
from oomwatch.plan.figure import Figure
from oomwatch.plan.settings import ACTOR, Config
from oomwatch.plan.verlkeys import Strategy


class Reader(NamedTuple):
    """Of one configuration, for one release of verl."""

    config: Config
    release: str

    @property
    def strategy(self) -> Strategy:
        """Whose settings and workers count."""
        return strategy_of(self.config)

    def since(self, release: str) -> bool:
        """Whether the release is this one or a later one."""
        return verlkeys.is_since(self.release, release)

    @property
    def has_engines(self) -> bool:
        """One worker for all strategies, each of which has a configuration of its engine's own."""
        return verlkeys.has_engines(self.release)

    def value(self, key: str) -> wire.ConfigValue | None:
        return self._told(key).value

    def _told(self, key: str) -> Told:
        if key in self.config:  # as nearly all are of which the doctor asks: no default has to be looked for
            return Told(self.config[key], key, is_assumed=False)
        return told(self.config, key, self.release, self.strategy)

    def is_on(self, key: str) -> bool:
        return self.value(key) is True

    def first(self, *keys: str) -> wire.ConfigValue | None:
        """Of the first key that a person told, else of the first that has a default."""
        told = next((key for key in keys if key in self.config), None)
        if told is not None:
            return self.config[told]
        return next((value for key in keys if (value := self.value(key)) is not None), None)

    def number(self, key: str) -> int | None:
        return self.figure(key).value

    def positive(self, *keys: str, otherwise: int) -> int:
        """The first as a whole number above 0."""
        value = self.first(*keys)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else otherwise

    def ratio(self, key: str, otherwise: float) -> float:
        value = self.value(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise

    def text(self, *keys: str) -> str:
        """The first as text; empty where nothing is told."""
        value = self.first(*keys)
        return value if isinstance(value, str) else ""

    def figure(self, key: str) -> Figure:
        """A setting as a number; what is no whole number is missing."""
        value, teller, is_assumed = self._told(key)
        if not isinstance(value, int) or isinstance(value, bool):
            return Figure(None, missing=(key,))
        return Figure(value, str(value), assumed=(teller,) if is_assumed else ())


def reader_of(config: Config, version: str | None) -> Reader:
    """For the release that a version of verl is of; for the newest where it is not told or unheard of."""
    known = verlkeys.release_of(version) if version else None
    return Reader(config, known or verlkeys.releases()[-1])


def strategy_of(config: Config) -> Strategy:
    """Whose settings and workers a configuration has. Where it is not told it shows in the settings."""
    said = config.get(f"{ACTOR}.strategy")
    return "megatron" if said == "megatron" or (said is None and shows_megatron(config)) else "fsdp"


def shows_megatron(keys: Iterable[str]) -> bool:
    return any(key.startswith(f"{ACTOR}.megatron.") for key in keys)
