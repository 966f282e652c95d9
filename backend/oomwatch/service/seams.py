"""What the service needs of the world around it, and the world gives."""

from collections.abc import Collection, Container, Iterable, Sequence
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


class Chorus(Protocol):
    """Of several servers that judge the same: which says what. A server alone has none, and says everything."""

    def ours(self, found: Sequence[wire.Transition]) -> list[wire.Transition]:
        """Those that this server is to say. The others are kept, for the case that nobody does."""
        ...

    def said(self, transitions: Sequence[wire.Transition]) -> None:
        """This server is about to say these: it will not take them for another's word."""
        ...

    def stood_still(self) -> None:
        """This server did, and others may have spoken for it. Called before it judges anything again."""
        ...

    def awaited(self, shown: Iterable[wire.Alert], here: Container[str]) -> set[str]:
        """Of alerts that another server speaks for: ids of those of which its word is what counts.

        That is where we found something that nobody has said yet, or where it fires though it is not open `here`.
        """
        ...


class Recorder(Protocol):
    """Writes down what the engine is given, before it is given."""

    def observe(self, message: wire.AgentMessage, node: str, now: float) -> None: ...

    def recall(self, message: wire.AgentMessage, node: str, now: float) -> None: ...

    def remember(self, pasts: Sequence[Past]) -> None: ...

    def restore(self, firing: Sequence[wire.Transition], now: float) -> None: ...

    def follow(self, word: wire.Transition, now: float) -> None: ...

    def advance(self, now: float) -> None: ...

    def excuse_silence(self, seconds: float, nodes: Collection[str] | None = None) -> None: ...

    def clock_jumped(self, seconds: float) -> None: ...

    def retire(self, node: str, now: float) -> None: ...

    def forget(self, before: float) -> None: ...
