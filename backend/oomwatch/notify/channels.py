"""The channels of a configuration: the seam they share, and the one line that registers each kind."""

from collections.abc import Mapping
from typing import Protocol

import httpx

from oomwatch.notify import config, http, webhook
from oomwatch.notify.grouping import Group
from oomwatch.notify.outcome import Outcome
from oomwatch.notify.secret import find_secret
from oomwatch.notify.slack import SlackWebhook
from oomwatch.notify.webhook import JsonWebhook
from oomwatch.notify.words import Frame


class Channel(Protocol):
    """Sends one message once. Bundling, retries and memory live outside."""

    @property
    def config(self) -> config.ChannelConfig: ...

    @property
    def pause_seconds(self) -> float:
        """The least time between two messages."""
        ...

    async def send(self, group: Group) -> Outcome:
        """One attempt. What the receiver or the network does is an outcome and never raises."""
        ...


def open_channel(
    channel: config.ChannelConfig, frame: Frame, client: httpx.AsyncClient, environ: Mapping[str, str]
) -> Channel:
    """A channel ready to send. Raises SettingError where its address or secret cannot be found or used."""
    place = f"notify channel {channel.name}"
    url = find_secret(channel.url, channel.url_env, channel.url_file, environ=environ, place=place)
    http.check_url(url, place)
    if isinstance(channel, config.SlackChannel):
        return SlackWebhook(channel, url, frame, client)
    keys = webhook.keys_of(channel, environ, place)
    return JsonWebhook(channel, url, keys, frame, client)


def open_channels(
    notify: config.NotifyConfig, external_url: str | None, client: httpx.AsyncClient, environ: Mapping[str, str]
) -> list[Channel]:
    """All channels of alerts.yaml, as `open_channel` does it."""
    frame = Frame(language=notify.language, external_url=external_url)
    return [open_channel(channel, frame, client, environ) for channel in notify.channels]
