"""A stand-in for Slack's Web API on loopback, which keeps messages, threads and files, and refuses what Slack refuses.

Its rules are those of Slack's documentation, written down here once more and not taken from the code under test.
"""

import contextlib
import itertools
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import msgspec
from tests.server.receiver import Answer, Received, Receiver, receiving

TOKEN = "xoxb-canary-token"
CHANNEL = "C0TEAM"
_MARKUP = re.compile(r"<(?!(!date\^\d+\^[^<>|]*\|[^<>|]*|https?://[^<>|]*\|[^<>|]*)>)")


def violations(body: Any) -> list[str]:
    """What Slack would refuse in a message, or show as something else than text."""
    found = []
    blocks = body.get("blocks", [])
    if not body.get("text"):
        found.append("no text for notifications")
    if len(msgspec.json.encode({"text": body.get("text"), "blocks": blocks}).decode()) >= 12_000:
        found.append("12,000 characters or more")
    if len(blocks) > 50:
        found.append("more than 50 blocks")
    for block in blocks:
        found += _of_block(block)
    for text in texts_of(body):
        if _MARKUP.search(text):
            found.append(f"markup in {text[:80]!r}")
        if any(not char.isprintable() and char != "\n" for char in text):
            found.append(f"control characters in {text[:80]!r}")
    return found


def _of_block(block: Any) -> Iterator[str]:
    limits = {"header": 150, "section": 3000}
    if block["type"] in limits and not 0 < len(block["text"]["text"]) <= limits[block["type"]]:
        yield f"a {block['type']} of {len(block['text']['text'])} characters"
    if block["type"] == "header" and block["text"]["type"] != "plain_text":
        yield "a header that is no plain text"
    if block["type"] == "context" and not all(part["text"] for part in block["elements"]):
        yield "an empty element"
    fields = block.get("fields", [])
    if len(fields) > 10 or any(len(field["text"]) > 2000 for field in fields):
        yield "more than 10 fields of 2,000 characters"
    parts = [part for part in [block.get("text"), *block.get("elements", [])] if part]
    if any(part["type"] == "mrkdwn" and not part.get("verbatim") for part in parts):
        yield "text in which Slack looks for mentions"


def texts_of(body: Any) -> list[str]:
    found = [body["text"]]
    for block in body.get("blocks", []):
        found += [part["text"] for part in [block.get("text"), *block.get("elements", [])] if part]
    return found


class Slack:
    """One channel. `messages` are those that are there, threads and all, oldest first."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.complaints: list[str] = []
        self.refuse: dict[str, list[Answer]] = {}  # by method: what to say instead, once each
        self.lose: set[str] = set()  # methods that do what they are asked, once, and fail to say so
        self._uploads: dict[str, bytes] = {}
        self._stamps = (f"17000000{number:02}.000100" for number in itertools.count())
        self.receiver: Receiver

    @property
    def api_url(self) -> str:
        return f"{self.receiver.url}/api"

    def main(self) -> list[dict[str, Any]]:
        return [one for one in self.messages if "thread_ts" not in one]

    def thread(self, ts: str) -> list[dict[str, Any]]:
        return [one for one in self.messages if one.get("thread_ts") == ts]

    def respond(self, request: Received) -> Answer:
        if request.path.startswith("/upload/"):
            self._uploads[request.path.rpartition("/")[2]] = request.body
            return Answer()
        method = request.path.removeprefix("/api/")
        self.calls.append(method)
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return refused("invalid_auth")
        if self.refuse.get(method):
            return self.refuse[method].pop(0)
        done = getattr(self, "_" + method.replace(".", "_"))(_arguments(request))
        if method in self.lose:
            self.lose.remove(method)
            return Answer(503, body=b"upstream connect error")
        return Answer(body=msgspec.json.encode(done))

    def _chat_postMessage(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802 - Slack's word
        if asked["channel"] != CHANNEL:
            return {"ok": False, "error": "channel_not_found"}
        self.complaints += violations(asked)
        ts = next(self._stamps)
        self.messages.append({**asked, "ts": ts})
        return {"ok": True, "channel": CHANNEL, "ts": ts, "message": asked}

    def _chat_update(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.complaints += violations(asked)
        for message in self.messages:
            if message["ts"] == asked["ts"]:
                message.update(asked)
                return {"ok": True, "channel": CHANNEL, "ts": asked["ts"]}
        return {"ok": False, "error": "message_not_found"}

    def _conversations_history(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert asked["include_all_metadata"] == "true"
        return {"ok": True, "messages": [one for one in self.main() if one["channel"] == asked["channel"]]}

    def _conversations_replies(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "messages": self.thread(asked["ts"])}

    def _files_getUploadURLExternal(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        return {"ok": True, "upload_url": f"{self.receiver.url}/upload/F1", "file_id": "F1", "asked": asked}

    def _files_completeUploadExternal(self, asked: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        for file in asked["files"]:
            place = {name: asked[name] for name in ("channel_id", "thread_ts")}
            self.files.append({**file, **place, "content": self._uploads[file["id"]]})
        return {"ok": True}


def refused(error: str, *, status: int = 200, **more: Any) -> Answer:
    """Slack's no."""
    headers = {name.replace("_", "-"): str(more.pop(name)) for name in ("Retry_After",) if name in more}
    return Answer(status, headers, msgspec.json.encode({"ok": False, "error": error, **more}))


def _arguments(request: Received) -> dict[str, Any]:
    if request.headers["content-type"].startswith("application/json"):
        found: dict[str, Any] = request.json()
        return found
    return {name: values[0] for name, values in parse_qs(request.body.decode()).items()}


@contextlib.contextmanager
def slack() -> Iterator[Slack]:
    """It asserts at the end that every message was one that Slack takes."""
    service = Slack()
    with receiving(service.respond) as receiver:
        service.receiver = receiver
        yield service
    assert service.complaints == []
