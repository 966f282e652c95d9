"""/ws/live: a snapshot, then every change to it, for one browser."""

import asyncio
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect

from oomwatch.hub import EndedError, Subscription, TooSlowError
from oomwatch.web.parts import parts_of

TOO_SLOW, NO_MORE = 1013, 1008


async def live_endpoint(websocket: WebSocket) -> None:
    """One browser. It only listens; what it sends is ignored."""
    parts = parts_of(websocket)
    await websocket.accept()
    subscription = parts.hub.join(parts.service.snapshot)
    sender = asyncio.create_task(_send(websocket, subscription), name="to browser")
    try:
        with parts.keyring.held(websocket.state.token, "reader", subscription.end):
            await _until_gone(websocket)
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
        await websocket.close(NO_MORE, "the token was revoked, has expired, or is needed now")


async def _until_gone(websocket: WebSocket) -> None:
    while (await websocket.receive())["type"] != "websocket.disconnect":
        pass
