"""A configuration as verl would resolve it: what is told, else what the setting follows, else its release's default."""

import re

from msgspec import Struct

from oomwatch.plan.settings import Config
from oomwatch.plan.verlkeys import Default, Strategy, keys_of, minors

_FOLLOWS = re.compile(r"\$\{(?:oc\.select:)?\s*([\w.]+)\s*(?:,\s*([\w.]*)\s*)?\}")
_DEPTH = 6  # settings that follow settings that follow settings: verl has three


class Told(Struct, frozen=True):
    """Reads settings of one configuration, of one release and strategy."""

    config: Config
    version: str
    strategy: Strategy

    @property
    def release(self) -> tuple[int, ...]:
        """("0.7.1") -> (0, 7)."""
        return tuple(int(number) for number in self.version.split(".")[:2])

    def value(self, *keys: str) -> Default:
        """Of the first key that is told, else of the first that has a default other than null."""
        for key in keys:
            if key in self.config:
                return self.config[key]
        found = (self._default(key, _DEPTH) for key in keys)
        return next((value for value in found if value is not None), None)

    def is_on(self, *keys: str) -> bool:
        return self.value(*keys) is True

    def count(self, *keys: str, otherwise: int) -> int:
        """A whole number above 0."""
        value = self.value(*keys)
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else otherwise

    def number(self, *keys: str, otherwise: float) -> float:
        value = self.value(*keys)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise

    def text(self, *keys: str) -> str:
        """Empty where nothing is told."""
        value = self.value(*keys)
        return value if isinstance(value, str) else ""

    def _default(self, key: str, depth: int) -> Default:
        default = keys_of(self.version, self.strategy).get(key)
        if not (isinstance(default, str) and "${" in default):
            return default
        follows = _FOLLOWS.fullmatch(default)
        if follows is None or depth == 0:
            return None
        return self._followed(key, follows, depth)

    def _followed(self, key: str, follows: "re.Match[str]", depth: int) -> Default:
        """The value of the setting that this one follows; a leading dot means one beside it."""
        other = follows[1]
        if other.startswith("."):
            other = key.rpartition(".")[0] + other
        found = self.config.get(other, self._default(other, depth - 1))
        return found if found is not None else _plain(follows[2])


def told_by(config: Config, version: str | None) -> Told:
    """A reader for a configuration. A version that is not known counts as the newest; Megatron shows in its keys."""
    return Told(config, _known(version), "megatron" if _is_megatron(config) else "fsdp")


def _known(version: str | None) -> str:
    if version is None:
        return minors()[-1]
    known = ".".join(version.split(".")[:2]) in minors()
    return version if known else minors()[-1]


def _is_megatron(config: Config) -> bool:
    strategy = config.get("actor_rollout_ref.actor.strategy")
    if strategy is None:
        return any(key.startswith("actor_rollout_ref.actor.megatron.") for key in config)
    return strategy == "megatron"


def _plain(text: str | None) -> Default:
    """The default that is written into a reference."""
    if not text or text == "null":
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return int(text) if text.isdigit() else text
