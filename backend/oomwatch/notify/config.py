"""The `notify:` section of alerts.yaml: which channels there are, and how messages are bundled.

A kind of channel is one struct here, registered in `ChannelConfig`, and one class in a file of its own, registered in
channels.py.
"""

from typing import Annotated, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch.notify.secret import Secret
from oomwatch.units import Duration, parse_duration

ChannelName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,63}\Z")]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of alerts.yaml: unknown keys are mistakes."""


class _Channel(_Section, frozen=True, kw_only=True, tag_field="kind"):
    """What every channel has. Alerts below `severity` are not sent to it."""

    name: ChannelName
    severity: wire.Severity = "warning"
    send_resolved: bool = True
    url: Secret | None = None
    url_env: str | None = None
    url_file: str | None = None

    def __post_init__(self) -> None:
        if _given(self.url, self.url_env, self.url_file) != 1:
            raise ValueError("give its address by exactly one of url, url_env (an environment variable) and url_file")

    @property
    def kind(self) -> str:
        return str(type(self).__struct_config__.tag)


class SlackChannel(_Channel, frozen=True, kw_only=True, tag="slack"):
    """A Slack incoming webhook. Whoever knows its address can post, so the address is a secret."""


class WebhookChannel(_Channel, frozen=True, kw_only=True, tag="webhook"):
    """Any receiver of Alertmanager's webhooks. With a secret, requests are signed as Standard Webhooks says."""

    secret: Secret | None = None
    secret_env: str | None = None
    secret_file: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if _given(self.secret, self.secret_env, self.secret_file) > 1:
            raise ValueError("give at most one of secret, secret_env (an environment variable) and secret_file")

    @property
    def signed(self) -> bool:
        return _given(self.secret, self.secret_env, self.secret_file) == 1


ChannelConfig: TypeAlias = SlackChannel | WebhookChannel


class NotifyConfig(_Section, frozen=True, kw_only=True):
    """`group_wait`: how long the first message of a group waits for company. `group_interval`: least time between two
    messages of a group."""

    language: wire.Language = "en"
    group_wait: Duration = Duration(0.05)
    group_interval: Duration = Duration(30)
    channels: tuple[ChannelConfig, ...] = ()

    def __post_init__(self) -> None:
        names = [channel.name for channel in self.channels]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"two channels are called {twice[0]}; what was delivered is kept by name, so give each its own"
            )


def decode_hook(kind: type, value: object) -> object:
    """msgspec's dec_hook for the types of this section."""
    if kind is Secret:
        if not isinstance(value, str):
            raise ValueError(f"expected a text, got {type(value).__name__}")
        return Secret(value.strip())
    if kind is Duration and isinstance(value, str | int | float):
        return parse_duration(value)
    raise NotImplementedError(f"no reader for {kind}")


def _given(*values: object) -> int:
    return sum(value is not None for value in values)
