"""The kinds of channels: one name a line."""

from collections.abc import Mapping
from typing import TypeAlias

import httpx

from oomwatch.notify.channel import Channel, Charts, FedSection, Feed, Surroundings
from oomwatch.notify.channels.alertmanager import AlertmanagerChannel
from oomwatch.notify.channels.apprise import AppriseChannel
from oomwatch.notify.channels.slack_bot import SlackBotChannel
from oomwatch.notify.channels.slack_webhook import SlackChannel
from oomwatch.notify.channels.webhook import WebhookChannel
from oomwatch.notify.words import Frame

# fmt: off
ChannelConfig: TypeAlias = (
    AlertmanagerChannel
    | AppriseChannel
    | SlackBotChannel
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
    """All that are sent messages, ready. Raises SettingError where an address or a secret cannot be found or used."""
    around = Surroundings(frame, client, environ, charts)
    return [channel.open(around) for channel in channels if not isinstance(channel, FedSection)]


def open_feeds(channels: tuple[ChannelConfig, ...], around: Surroundings) -> list[Feed]:
    """Those that are fed and sent no messages. Raises SettingError as open_channels does."""
    return [channel.open_feed(around) for channel in channels if isinstance(channel, FedSection)]
