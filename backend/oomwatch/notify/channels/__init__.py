"""The kinds of channels: one name a line."""

from collections.abc import Iterable
from typing import TypeAlias

from oomwatch.notify.channel import Channel, Feed, Surroundings
from oomwatch.notify.channels.alertmanager import AlertmanagerChannel
from oomwatch.notify.channels.apprise import AppriseChannel
from oomwatch.notify.channels.slack_bot import SlackBotChannel
from oomwatch.notify.channels.slack_webhook import SlackChannel
from oomwatch.notify.channels.webhook import WebhookChannel

# fmt: off
ChannelConfig: TypeAlias = (
    AlertmanagerChannel
    | AppriseChannel
    | SlackBotChannel
    | SlackChannel
    | WebhookChannel
)
# fmt: on


def open_channels(channels: Iterable[ChannelConfig], around: Surroundings) -> list[Channel | Feed]:
    """Ready to send. Raises SettingError where an address or a secret cannot be found or used."""
    return [channel.open(around) for channel in channels]
