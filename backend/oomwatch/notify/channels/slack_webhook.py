"""Slack incoming webhooks: one message as Block Kit. They can neither change nor thread what they posted."""

import httpx
import msgspec

from oomwatch.notify import blockkit, http
from oomwatch.notify.channel import AddressedSection, Surroundings
from oomwatch.notify.message import compose
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Outcome
from oomwatch.notify.secret import Secret
from oomwatch.notify.words import Frame


class SlackChannel(AddressedSection, frozen=True, kw_only=True, tag="slack"):
    """A Slack incoming webhook. Whoever knows its address can post, so the address is a secret."""

    def open(self, around: Surroundings) -> "SlackWebhook":
        """Raises SettingError where its address cannot be found or used."""
        return SlackWebhook(self, self.address(around.environ), around.frame, around.client)


class SlackWebhook:
    """Posts to one incoming webhook."""

    pause_seconds = 1.0  # Slack takes one message a second in a channel
    edits = False

    def __init__(self, config: SlackChannel, url: Secret, frame: Frame, client: httpx.AsyncClient) -> None:
        self.config = config
        self._url = url
        self._frame = frame
        self._client = client

    async def send(self, notice: Notice) -> Outcome:
        body = blockkit.body(compose(notice, self._frame), self._frame.language)
        return await http.post(self._client, self._url, msgspec.json.encode(body), {})
