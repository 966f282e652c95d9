"""The kinds of channels: one name a line."""

from collections.abc import Mapping
from typing import TypeAlias

import httpx

from oomwatch.notify.channel import Channel, Charts, Surroundings
from oomwatch.notify.channels.slack_bot import SlackBotChannel
from oomwatch.notify.channels.slack_webhook import SlackChannel
from oomwatch.notify.channels.webhook import WebhookChannel
from oomwatch.notify.words import Frame

# fmt: off
ChannelConfig: TypeAlias = (
    SlackBotChannel
    | SlackChannel
    | WebhookChannel
)
# fmt: on


def open_channels(
    channels: tuple[ChannelConfig, ...],
    frame: Frame,
    client: httpx.AsyncClient,
    environ: Mapping[str, str],
    *,
    charts: Charts | None = None,
) -> list[Channel]:
    """All of them, ready to send. Raises SettingError where an address or a secret cannot be found or used."""
    around = Surroundings(frame, client, environ, charts)
    return [channel.open(around) for channel in channels]
