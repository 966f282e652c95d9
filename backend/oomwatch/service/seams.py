"""What the service needs of the world around it, and the world gives."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from oomwatch import wire
from oomwatch.core.past import Past


class Audience(Protocol):
    """The browsers."""

    def publish(self, messages: Iterable[wire.LiveMessage]) -> None: ...


class Herald(Protocol):
    """Whoever is to hear of transitions once they are stored: the notification channels."""

    def offer(self, transitions: Sequence[wire.Transition]) -> None: ...

    def status(self) -> Sequence[wire.ChannelState]:
        """How each channel fares."""
        ...


class Incidents(Protocol):
    """Which alerts tell that something has run out of memory, and of which incident."""

    def note(self, transition: wire.Transition, now: float) -> None:
        """The engine has said this; nobody has been told yet."""
        ...

    def with_incident(self, transition: wire.Transition) -> wire.Transition:
        """The same transition, with its incident among its facts where there is one."""
        ...


class Recorder(Protocol):
    """Writes down what the engine is given, before it is given."""

    def observe(self, message: wire.AgentMessage, node: str, now: float) -> None: ...

    def recall(self, message: wire.AgentMessage, node: str, now: float) -> None: ...

    def remember(self, pasts: Sequence[Past]) -> None: ...

    def restore(self, firing: Sequence[wire.Transition], now: float) -> None: ...

    def advance(self, now: float) -> None: ...

    def excuse_silence(self, seconds: float) -> None: ...

    def clock_jumped(self, seconds: float) -> None: ...

    def retire(self, node: str, now: float) -> None: ...

    def forget(self, before: float) -> None: ...
