"""/ws/live: a snapshot, then every change to it, for one browser. /ws/live?node=NAME has that node in full at first."""

import asyncio
from contextlib import suppress
from functools import partial

from starlette.websockets import WebSocket, WebSocketDisconnect

from oomwatch.hub import EndedError, Subscription, TooSlowError
from oomwatch.web.parts import parts_of

LIVE_PATH = "/ws/live"
TOO_SLOW = 1013
# Codes from 4000 on are a program's own (RFC 6455): this one has the page lead to signing in, not connect again.
NOT_KNOWN, NOT_KNOWN_WORDS = 4401, "sign in: the token or session is over, was revoked, or is needed now"
BROWSERS_MAX = 1000


async def live_endpoint(websocket: WebSocket) -> None:
    """One browser. It only listens; what it sends is ignored."""
    parts = parts_of(websocket)
    await websocket.accept()
    if len(parts.hub) >= BROWSERS_MAX:
        await websocket.close(TOO_SLOW, f"{BROWSERS_MAX} browsers watch already: try again later")
        return
    shown = websocket.query_params.get("node")
    subscription = parts.hub.join(partial(parts.service.first_frame, shown))
    sender = asyncio.create_task(_send(websocket, subscription), name="to browser")
    try:
        with parts.keyring.held(websocket.state.token, "reader", subscription.end):
            await until_gone(websocket)
    finally:
        parts.hub.leave(subscription)
        sender.cancel()
        with suppress(asyncio.CancelledError, WebSocketDisconnect):
            await sender


async def _send(websocket: WebSocket, subscription: Subscription) -> None:
    try:
        while True:
            for frame in await subscription.next():
                await websocket.send_text(frame)
    except TooSlowError:
        await websocket.close(TOO_SLOW, "too slow: connect again")
    except EndedError:
        await websocket.close(NOT_KNOWN, NOT_KNOWN_WORDS)


async def until_gone(websocket: WebSocket) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass
