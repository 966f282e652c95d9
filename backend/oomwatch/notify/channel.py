"""What every kind of channel is: a section of alerts.yaml that can be opened, and then sends one message once.

A kind is one file in channels/ with a struct and a class, and one name in channels/__init__.py.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, NamedTuple, Protocol, TypeAlias, runtime_checkable

import httpx
import msgspec

from oomwatch import wire
from oomwatch.notify import http
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Outcome
from oomwatch.notify.rate import Rate
from oomwatch.notify.secret import Secret, find_secret
from oomwatch.notify.words import Frame

ChannelName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,63}\Z")]


class Channel(Protocol):
    """Sends one message once. Bundling, retries and memory live outside."""

    @property
    def config(self) -> "ChannelSection": ...

    @property
    def pause_seconds(self) -> float:
        """The least time between two messages."""
        ...

    @property
    def edits(self) -> bool:
        """Whether it can change what it said: only such a channel is sent notices of kind "update"."""
        ...

    async def send(self, notice: Notice) -> Outcome:
        """One attempt. What the receiver or the network does is an outcome and never raises."""
        ...


class Curve(NamedTuple):
    """A figure of late, to be drawn: columns of one length. None: nothing was read."""

    times: tuple[float, ...]
    values: tuple[float | None, ...]
    unit: str  # as in wire.Transition
    limit: float | None = None  # in the same unit


# The memory of an alert's subject up to a time; None where there is nothing to draw. It never raises.
Charts: TypeAlias = Callable[[wire.Transition, float], Awaitable[Curve | None]]


class Surroundings(NamedTuple):
    """What a channel is opened with."""

    frame: Frame
    client: httpx.AsyncClient
    environ: Mapping[str, str]
    charts: Charts | None = None  # None: messages without pictures


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of alerts.yaml: unknown keys are mistakes."""


class ChannelSection(Section, frozen=True, kw_only=True, tag_field="kind"):
    """What every channel has. Alerts below `severity` are not sent to it. `rate`: the most messages it takes."""

    name: ChannelName
    severity: wire.Severity = "warning"
    send_resolved: bool = True
    rate: Rate | None = None

    @property
    def kind(self) -> str:
        return str(type(self).__struct_config__.tag)

    @property
    def place(self) -> str:
        """How errors call it."""
        return f"notify channel {self.name}"

    def open(self, around: Surroundings) -> "Channel | Feed":
        """Ready to send. Raises SettingError where its address or secret cannot be found or used."""
        raise NotImplementedError(f"a channel of kind {self.kind} cannot be opened")


class Item(NamedTuple):
    """One alert for a receiver that keeps its own account of what fires."""

    alert: wire.Alert | None  # None: the Watchdog, which always fires
    ends_at: float  # in the past: it is over; in the future: until then it fires, unless told again


@runtime_checkable
class Feed(Protocol):
    """One channel of one or more receivers that each have to be told everything, again and again."""

    @property
    def config(self) -> ChannelSection: ...

    @property
    def addresses(self) -> Sequence[Secret]:
        """Of the receivers."""
        ...

    @property
    def has_watchdog(self) -> bool:
        """Whether receivers are told of an alert that always fires, so that they can tell when we fall silent."""
        ...

    async def post(self, address: Secret, items: Sequence[Item], now: float) -> Outcome:
        """One request. What the receiver or the network does is an outcome and never raises."""
        ...


class AddressedSection(ChannelSection, frozen=True, kw_only=True):
    """A channel with one address, which may be secret."""

    url: Secret | None = None
    url_env: str | None = None
    url_file: str | None = None

    def __post_init__(self) -> None:
        if given(self.url, self.url_env, self.url_file) != 1:
            raise ValueError("give its address by exactly one of url, url_env (an environment variable) and url_file")

    def address(self, environ: Mapping[str, str]) -> Secret:
        """Where to send to. Raises SettingError."""
        url = find_secret(self.url, self.url_env, self.url_file, environ=environ, place=self.place)
        http.check_url(url, self.place)
        return url


class FedSection(AddressedSection, frozen=True, kw_only=True):
    """A channel that is sent no messages: it opens as a Feed, whose receivers are kept up to date of what fires."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rate is not None or not self.send_resolved:
            raise ValueError(
                f"a channel of kind {self.kind} is told all the time what fires, and what is over; leave "
                "out rate and send_resolved"
            )


def given(*values: object) -> int:
    return sum(value is not None for value in values)
