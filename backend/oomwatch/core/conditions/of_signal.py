"""What the kinds that watch a signal have in common: whom they judge, what they hear and what they are about."""

from functools import cached_property
from typing import ClassVar

from oomwatch.core.conditions.kind import Kind
from oomwatch.core.lives import RunNews
from oomwatch.core.signals import signal
from oomwatch.core.signals.signal import Signal
from oomwatch.core.subject import Channel, News, Scope, Topic


class OfSignal(Kind, frozen=True, kw_only=True, dict=True):
    """A condition of the signal `metric`, which is looked up once (`dict` makes room for it)."""

    over_when_run: ClassVar[RunNews | None] = None

    metric: str

    @cached_property
    def signal(self) -> Signal:
        """Raises ValueError for a name that is none."""
        return signal(self.metric)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return self.signal.scopes

    @property
    def hears(self) -> tuple[News, ...]:
        return self.signal.hears

    @property
    def predicts(self) -> Channel | None:
        return self.signal.predicts

    @property
    def topic(self) -> Topic | None:
        return self.signal.topic
