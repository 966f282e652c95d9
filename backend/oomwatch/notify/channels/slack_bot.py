"""A Slack bot: one message an incident, changed as things change, with what follows and a picture in its thread.

The receipt of an incident's first message is "CHANNEL:TS", which is all that Slack needs to find it again. A message
whose answer was lost may be there or not: each bears its ids as metadata, and is looked for before it is sent again.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from oomwatch import options, wire
from oomwatch.catalogue import say
from oomwatch.notify import blockkit, http, words
from oomwatch.notify.changes import changes
from oomwatch.notify.channel import ChannelSection, Charts, Surroundings, given
from oomwatch.notify.message import compose
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Delivered, Outcome, TryAgain
from oomwatch.notify.picture import draw
from oomwatch.notify.secret import Secret, find_secret
from oomwatch.notify.slackapi import Post, Refused, Reply, Said, SlackApi, UploadError, upload
from oomwatch.notify.words import Frame

ChannelId = Annotated[str, msgspec.Meta(pattern=r"^[CGD][A-Z0-9]{2,20}\Z")]
EVENT = "oomwatch_message"  # what our messages' metadata are called
LOOK_BACK_SECONDS = 60.0  # our clock and Slack's need not agree
HISTORY_LENGTH = "100"  # messages looked through
PICTURE_SECONDS = 30.0  # for all of it
# What Slack says when the message that was to be changed is no more, or is not ours to change.
GONE = frozenset({"message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"})

logger = logging.getLogger(__name__)


class SlackBotChannel(ChannelSection, frozen=True, kw_only=True, tag="slack_bot"):
    """A channel of Slack (its ID), written to with a bot's token. `api_url`: another Slack than the public one."""

    channel: ChannelId
    token: Secret | None = None
    token_env: str | None = None
    token_file: str | None = None
    chart: bool = True
    api_url: str = "https://slack.com/api"

    def __post_init__(self) -> None:
        if given(self.token, self.token_env, self.token_file) != 1:
            raise ValueError(
                "give the bot's token by exactly one of token, token_env (an environment variable) and token_file"
            )

    def open(self, around: Surroundings) -> "SlackBot":
        """Raises SettingError where the token cannot be found or the address is none."""
        token = find_secret(self.token, self.token_env, self.token_file, environ=around.environ, place=self.place)
        if not token.reveal().isascii() or not token.reveal().isprintable():
            raise options.SettingError(f"{self.place}: its token has characters that no token has")
        http.check_url(Secret(self.api_url), self.place)
        api = SlackApi(around.client, self.api_url, token)
        return SlackBot(self, api, around.frame, around.charts if self.chart else None)


class SlackBot:
    pause_seconds = 1.0  # Slack takes one message a second in a channel
    edits = True

    def __init__(
        self,
        config: SlackBotChannel,
        api: SlackApi,
        frame: Frame,
        charts: Charts | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self._api = api
        self._frame = frame
        self._charts = charts
        self._opened_at = clock()
        self._unsure: set[str] = set()  # notices of which Slack may have more than we know
        self._pictures: set[asyncio.Task[None]] = set()

    async def send(self, notice: Notice) -> Outcome:
        if notice.receipt is not None:
            return await self._follow(notice, notice.receipt)
        if notice.kind == "update":
            return Delivered()  # of what was never said nothing can change
        return await self._begin(notice)

    # ------------------------------------------------------------ the first message

    async def _begin(self, notice: Notice) -> Outcome:
        found = await self._find(notice, "conversations.history", {"channel": self.config.channel})
        if found is not None:
            return Delivered(_receipt(self.config.channel, found.ts))
        reply = await self._post(notice, self._main(notice), {"channel": self.config.channel})
        if isinstance(reply, Refused):
            return reply.outcome
        self._add_picture(notice, reply)
        return Delivered(_receipt(reply.channel or self.config.channel, reply.ts))

    def _main(self, notice: Notice) -> dict[str, object]:
        """The incident as it stands."""
        return blockkit.body(compose(standing(notice), self._frame), self._frame.language)

    async def _post(self, notice: Notice, body: dict[str, object], where: dict[str, object]) -> Said:
        said = await self._api.call("chat.postMessage", {**where, **body, "metadata": _metadata(notice), **_PLAIN})
        if isinstance(said, Refused) and isinstance(said.outcome, TryAgain):
            self._unsure.add(notice.id)
        else:
            self._unsure.discard(notice.id)
        return said

    async def _find(self, notice: Notice, method: str, where: dict[str, str]) -> Post | None:
        """This very message among those that are there, where it may have arrived without our knowing."""
        if notice.id not in self._unsure and notice.made_at >= self._opened_at:
            return None
        oldest = f"{notice.made_at - LOOK_BACK_SECONDS:.6f}"
        asked = {**where, "oldest": oldest, "include_all_metadata": "true", "limit": HISTORY_LENGTH}
        said = await self._api.ask(method, asked)
        if isinstance(said, Refused):
            logger.info("channel %s: cannot look for a message sent before: %s", self.config.name, said.outcome.reason)
            return None
        return next((post for post in said.messages if _is_of(post, notice)), None)

    # ------------------------------------------------------------ what follows

    async def _follow(self, notice: Notice, receipt: str) -> Outcome:
        """Change the first message, which may be done twice, and then say in its thread what is new."""
        channel, _, ts = receipt.partition(":")
        changed = await self._api.call("chat.update", {"channel": channel, "ts": ts, **self._main(notice)})
        if isinstance(changed, Refused):
            return await self._begin(notice) if changed.error in GONE else changed.outcome
        return await self._reply(notice, channel, ts)

    async def _reply(self, notice: Notice, channel: str, ts: str) -> Outcome:
        body = self._news(notice)
        if body is None or await self._find(notice, "conversations.replies", {"channel": channel, "ts": ts}):
            return Delivered()
        loud = notice.kind in ("repeat", "escalation")  # shown in the channel as well: somebody has to see it
        said = await self._post(notice, body, {"channel": channel, "thread_ts": ts, "reply_broadcast": loud})
        return said.outcome if isinstance(said, Refused) else Delivered()

    def _news(self, notice: Notice) -> dict[str, object] | None:
        """What is new, in short; None where it is nothing for people."""
        if notice.kind == "update":
            lines = changes(notice, self._frame.language)
            return blockkit.short(lines, self._frame.language) if lines else None
        told = compose(notice, self._frame)
        lines = (f"{told.sign} {told.title}", *told.notes, *told.subjects, *told.context[1:])
        return blockkit.short(lines, self._frame.language)

    # ------------------------------------------------------------ the picture

    def _add_picture(self, notice: Notice, first: Reply) -> None:
        """Later, on its own: it never holds up a message, and its failure is only logged."""
        if self._charts is None or notice.state != "firing" or not notice.news:
            return
        work = self._show(self._charts, words.worst(notice), notice.made_at, first)
        task = asyncio.create_task(work, name=f"picture for {self.config.name}")
        self._pictures.add(task)
        task.add_done_callback(self._pictures.discard)

    async def _show(self, charts: Charts, worst: wire.Transition, now: float, first: Reply) -> None:
        try:
            await asyncio.wait_for(self._draw_and_upload(charts, worst, now, first), PICTURE_SECONDS)
        except Exception as error:
            detail = str(error) if isinstance(error, UploadError) else type(error).__name__
            logger.warning("channel %s: no picture: %s", self.config.name, detail)

    async def _draw_and_upload(self, charts: Charts, worst: wire.Transition, now: float, first: Reply) -> None:
        curve = await charts(worst, now)
        content = await asyncio.to_thread(draw, curve) if curve is not None else None
        if content is not None:
            title = say("notify.chart", self._frame.language, subject=words.place(worst, self._frame.language))
            await upload(self._api, content, title, channel=first.channel or self.config.channel, thread_ts=first.ts)


# Links within alerts are no invitation to fetch them.
_PLAIN = {"unfurl_links": False, "unfurl_media": False}


def standing(notice: Notice) -> Notice:
    """The message of an incident as a whole: everything it is about, whatever this notice brings."""
    if notice.kind == "channel":
        return notice
    everything = notice.everything or notice.news
    over = all(one.state == "resolved" for one in everything)
    return msgspec.structs.replace(
        notice, kind="resolved" if over else "firing", state="resolved" if over else "firing", news=everything
    )


def _receipt(channel: str, ts: str) -> str:
    return f"{channel}:{ts}"


def _metadata(notice: Notice) -> dict[str, Any]:
    return {"event_type": EVENT, "event_payload": {"id": notice.id, "incident": notice.incident}}


def _is_of(post: Post, notice: Notice) -> bool:
    try:
        return post.metadata is not None and msgspec.json.decode(post.metadata["event_payload"])["id"] == notice.id
    except (KeyError, TypeError, msgspec.DecodeError):
        return False
