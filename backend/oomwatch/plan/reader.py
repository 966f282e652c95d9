"""Settings as verl sees them: what is told, else what they follow, else verl's default."""

from typing import NamedTuple

from oomwatch import wire
from oomwatch.plan.defaults import default_of, teller_of
from oomwatch.plan.figure import Figure
from oomwatch.plan.release import Release
from oomwatch.plan.settings import Config


class Reader(NamedTuple):
    """Of one configuration, for one release of verl."""

    config: Config
    release: Release

    def value(self, key: str) -> wire.ConfigValue | None:
        teller = teller_of(self.config, key)
        return self.config.get(teller, default_of(teller))

    def is_on(self, key: str) -> bool:
        return self.value(key) is True

    def number(self, key: str) -> int | None:
        return self.figure(key).value

    def figure(self, key: str) -> Figure:
        """A setting as a number; what is no whole number is missing."""
        teller = teller_of(self.config, key)
        value = self.config.get(teller, default_of(teller))
        if not isinstance(value, int) or isinstance(value, bool):
            return Figure(None, missing=(key,))
        return Figure(value, str(value), assumed=() if teller in self.config else (teller,))
