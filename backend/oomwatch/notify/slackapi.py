"""Slack's Web API: one call, and what its answer means. Its errors are words within answers of status 200."""

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias
from urllib.parse import urlencode

import httpx
import msgspec

from oomwatch import options
from oomwatch.notify import blockkit, http
from oomwatch.notify.outcome import Delivered, Failed, TryAgain
from oomwatch.notify.secret import Secret

ANSWER_BYTES = 1 << 20  # of a history of a hundred messages with their blocks
TITLE_LIMIT = 200  # of a file, and what screen readers say of it
_WORD = re.compile(r"[a-z0-9_]{1,60}\Z")
_TRANSIENT = frozenset({
    "ratelimited", "rate_limited", "fatal_error", "internal_error", "service_unavailable", "request_timeout",
    "team_added_to_org", "accesslimited",
})  # fmt: skip
_TOKEN = "give the token of a bot (xoxb-...) that is installed in the workspace"  # noqa: S105 - words
_INVITE = "give the channel's ID (C...) and invite the bot there: /invite @its-name"
REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(
        ("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type"),
        _TOKEN,
    ),
    **dict.fromkeys(("channel_not_found", "not_in_channel", "invalid_channel", "no_permission"), _INVITE),
    "is_archived": "take the channel out of the archive, or give another",
    "missing_scope": "give the app the scope, and install it anew",
    "restricted_action": "the workspace's settings keep bots from posting there",
}


class Post(msgspec.Struct, frozen=True):
    """A message of a channel or thread, as far as we look at it."""

    ts: str
    metadata: dict[str, msgspec.Raw] | None = None


class Reply(msgspec.Struct, frozen=True):
    """An answer of status 200: whether it worked, and what we ask for."""

    ok: bool
    error: str = ""
    needed: str = ""  # the scope that the token lacks
    ts: str = ""
    channel: str = ""
    upload_url: str = ""
    file_id: str = ""
    messages: tuple[Post, ...] = ()


class Refused(NamedTuple):
    """Slack's word for why not, where it may mean something to the caller, and the outcome if it does not."""

    error: str
    outcome: TryAgain | Failed


Said: TypeAlias = Reply | Refused


class SlackApi:
    """Calls methods with one bot's token."""

    def __init__(self, client: httpx.AsyncClient, base_url: str, token: Secret) -> None:
        self.client = client
        self._base_url = base_url.rstrip("/")
        self._token = token

    async def call(self, method: str, arguments: Mapping[str, object]) -> Said:
        """With JSON; texts may be long."""
        return await self._call(method, msgspec.json.encode(arguments), http.JSON)

    async def ask(self, method: str, arguments: Mapping[str, str]) -> Said:
        """With a form: what methods that only read want."""
        return await self._call(method, urlencode(arguments).encode(), "application/x-www-form-urlencoded")

    async def _call(self, method: str, content: bytes, kind: str) -> Said:
        url = Secret(f"{self._base_url}/{method}")
        headers = {"Authorization": f"Bearer {self._token.reveal()}", "Content-Type": kind}
        answer = await http.ask(self.client, "POST", url, content=content, headers=headers, answer_bytes=ANSWER_BYTES)
        if isinstance(answer, http.Answer):
            return said(answer, method)
        return Refused("", answer)


def said(answer: http.Answer, method: str) -> Said:
    """What an answer says. Nothing of it is repeated but Slack's own words for errors."""
    try:
        reply = msgspec.json.decode(answer.content, type=Reply)
    except msgspec.DecodeError:
        reply = None
    if reply is not None and reply.ok:
        return reply
    error = reply.error if reply is not None and _WORD.match(reply.error) else ""
    words = f"Slack's {method} answered {error or answer.status}"
    if answer.status == 429 or error in _TRANSIENT or answer.status >= 500 or not error:  # noqa: PLR2004
        return Refused(error, TryAgain(words, answer.retry_after_seconds))
    return Refused(error, Failed(f"{words}: {_remedy(error, reply)}"))


def _remedy(error: str, reply: Reply | None) -> str:
    remedy = REMEDIES.get(error, "see Slack's documentation of that error")
    needed = reply.needed if reply is not None and re.fullmatch(r"[a-z:._,]{1,80}", reply.needed) else ""
    return f"{remedy} ({needed})" if needed else remedy


class UploadError(Exception):
    """A file did not get into its thread. The text says why and shows no secret."""


async def upload(api: SlackApi, content: bytes, title: str, *, channel: str, thread_ts: str) -> None:
    """A PNG into a thread, in the three requests that Slack wants for it. Raises UploadError."""
    shown = blockkit.plain(title, TITLE_LIMIT)
    form = {"filename": "memory.png", "length": str(len(content)), "alt_txt": shown}
    slot = _agreed(await api.ask("files.getUploadURLExternal", form))
    await _put(api, content, Secret(slot.upload_url))
    file = {"id": slot.file_id, "title": shown}
    place = {"files": [file], "channel_id": channel, "thread_ts": thread_ts}
    _agreed(await api.call("files.completeUploadExternal", place))


async def _put(api: SlackApi, content: bytes, url: Secret) -> None:
    try:
        http.check_url(url, "Slack's upload")
    except options.SettingError as error:
        raise UploadError(str(error)) from error
    kind = {"Content-Type": "application/octet-stream"}
    answer = await http.ask(api.client, "POST", url, content=content, headers=kind)
    outcome = http.judge(answer, url) if isinstance(answer, http.Answer) else answer
    if not isinstance(outcome, Delivered):
        raise UploadError(outcome.reason)


def _agreed(said: Said) -> Reply:
    if isinstance(said, Refused):
        raise UploadError(said.outcome.reason)
    return said
