"""A stand-in for the server, so that the page can be driven through any situation.

To look at one: `python -m tests.browser.stage troubled` (or another of SCENES).

It serves the real static files under the real addresses with the real content security policy, and plays live messages
that a test (or a scene) hands to it.
"""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import ClassVar, NamedTuple, NoReturn

import msgspec
import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response, WebSocket
from starlette.datastructures import QueryParams
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect
from tests.browser import foresight, on_call, scenes
from tests.browser.desk import Desk
from tests.browser.past import Past

from oomwatch import wire
from oomwatch.listener import bind
from oomwatch.settings import Address
from oomwatch.web import doctor
from oomwatch.web.answers import RefusedError, refused
from oomwatch.web.policy import with_headers
from oomwatch.web.practice import Practice
from oomwatch.web.rows import GpuRow
from oomwatch.web.static import PageFiles
from oomwatch_frontend import STATIC


class WithPolicy:
    """The headers of the real server, and nothing of the guard that asks who is there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, with_headers(send) if scope["type"] == "http" else send)


class Parts(NamedTuple):
    """Those of a server's that its own routes need which are served here."""

    doctor: Practice


class Stage:
    """Serves the page on loopback from a thread. What it plays may be changed at any time from the test's thread."""

    _files: ClassVar = PageFiles(STATIC)  # of the last one

    def __init__(self, snapshot: wire.Snapshot) -> None:
        self.snapshot = snapshot
        self.ended: tuple[wire.Alert, ...] = ()  # alerts that the database has and the snapshot has not
        self.desk = Desk(self)
        self.past = Past(self)
        self.practice = Practice()
        self.has_history = True
        self.takes_browsers = True
        self.connections_total = 0
        self._browsers: set[asyncio.Queue[bytes | None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener = bind(Address("127.0.0.1", 0))  # as the server does: what is small leaves at once
        config = uvicorn.Config(self._app(), log_level="warning", ws="websockets-sansio", ws_per_message_deflate=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._listener],), name="stage")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self.drop()
        self._server.should_exit = True
        self._thread.join()
        self.practice.shutdown()
        self._listener.close()

    def send(self, *messages: wire.LiveMessage) -> None:
        """To every browser that is connected."""
        for message in messages:
            self.send_text(wire.encode(scenes.told(message)))

    def send_text(self, frame: bytes) -> None:
        self._put(frame)

    def drop(self) -> None:
        """Closes every browser's connection, as a restart of the server does."""
        self._put(None)

    def _put(self, frame: bytes | None) -> None:
        def put() -> None:
            for queue in self._browsers:
                queue.put_nowait(frame)

        if self._loop is not None:
            self._loop.call_soon_threadsafe(put)

    def _app(self) -> FastAPI:
        app = FastAPI(lifespan=self._lifespan)
        # What one stage has read and compressed, the next one has.
        files = Stage._files = PageFiles(STATIC, Stage._files.content)
        app.add_middleware(WithPolicy)
        app.add_route("/", files.page)
        app.add_api_route("/api/v1/history", self._history)
        app.add_api_route("/api/v1/phases", self._phases)
        app.add_api_route("/api/v1/nodes/{name}", self._node)
        app.add_api_route("/api/v1/gpus", self._gpus)
        app.add_api_route("/api/v1/me", lambda: {"name": None})
        app.state.parts = Parts(self.practice)
        app.include_router(doctor.router)  # it needs no server: what is sent is all that it looks at
        app.add_exception_handler(RefusedError, refused)
        self.past.install(app)  # before /api/v1/alerts/{key}
        self.desk.install(app)
        app.add_api_websocket_route("/ws/live", self._live)
        app.mount("/static", files)
        return app

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        yield

    async def _live(self, browser: WebSocket) -> None:
        if not self.takes_browsers:
            await browser.close(1013)
            return
        await browser.accept()
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._browsers.add(queue)
        self.connections_total += 1
        try:
            await browser.send_text(wire.encode(self._first_frame(browser.query_params.get("node"))).decode())
            while (frame := await queue.get()) is not None:
                await browser.send_text(frame.decode())
            await browser.close(1012)
        except WebSocketDisconnect:
            pass
        finally:
            self._browsers.discard(queue)

    def _first_frame(self, shown: str | None) -> wire.Snapshot:
        nodes = [
            scenes.in_full(view) if view.node == shown else scenes.at_a_glance(view) for view in self.snapshot.nodes
        ]
        return msgspec.structs.replace(self.snapshot, nodes=tuple(nodes))

    def _phases(self, run: str) -> Response:
        found = next((one.phases for one in self.snapshot.runs if one.run == run), ())
        return Response(msgspec.json.encode(found), media_type="application/json")

    def _node(self, name: str) -> Response:
        found = next((one for one in self.snapshot.nodes if one.node == name), None)
        if found is None:
            raise HTTPException(404)
        return Response(wire.encode(scenes.in_full(found)), media_type="application/json")

    def _gpus(self, uuid: str, limit: int) -> Response:
        cards = ((view.node, facts) for view in self.snapshot.nodes for facts in view.facts.gpus)
        rows = [GpuRow.of(node, facts) for node, facts in cards if uuid in facts.uuid.lower()]
        return Response(msgspec.json.encode(rows[:limit]), media_type="application/json")

    def _history(self, request: Request, step: int) -> object:
        if not self.has_history:
            raise HTTPException(503)
        asked = request.query_params.getlist("series")
        found = [self._series(request.query_params, name, step) for name in asked]
        return found if len(found) > 1 else found[0]

    def _series(self, query: QueryParams, series: str, step: int) -> dict[str, object]:
        at = [float(moment) for moment in range(int(query["from"]), int(query["to"]), step)]
        said = {"series": series, "unit": "bytes", "step": step, "labels": {}}
        if series not in _FIGURES:
            return {**said, "at": [], "min": [], "max": [], "mean": []}
        number, gpu = int(query["node"].rsplit("-", 1)[1]), int(query.get("gpu", 0))
        level = scenes.LEVELS.get(query["node"], 0.5)
        mean: list[int | None] = [_FIGURES[series](number, gpu, moment, level) for moment in at]
        gap = range(len(at) // 3, len(at) // 3 + 12)
        mean = [None if index in gap else value for index, value in enumerate(mean)]
        low = [None if value is None else int(value * 0.97) for value in mean]
        high = [None if value is None else int(value * 1.015) for value in mean]
        return {**said, "at": at, "min": low, "max": high, "mean": mean}


_FIGURES: dict[str, Callable[[int, int, float, float], int]] = {
    "gpu_used_bytes": scenes.used_bytes,
    "torch_reserved_bytes": scenes.torch_bytes,
    "torch_allocated_bytes": lambda node, gpu, at, level: scenes.torch_bytes(node, gpu, at, level) * 4 // 5,
    "gpu_trainer_bytes": scenes.trainer_bytes,
    "gpu_probed_trainer_bytes": scenes.trainer_bytes,
    "gpu_engine_bytes": lambda node, gpu, at, level: scenes.used_bytes(node, gpu, at, level) * 3 // 10,
    "gpu_other_bytes": lambda *_: scenes.GIB // 3,
    "host_worker_bytes": lambda node, _gpu, at, level: 3 * scenes.used_bytes(node, 0, at / 9, level),
    "host_engine_bytes": lambda *_: 60 * scenes.GIB,
    "host_driver_bytes": lambda node, _gpu, at, level: scenes.used_bytes(node, 0, at / 9, level),
    "host_object_store_bytes": lambda *_: 0,
    "host_memory_used_bytes": lambda node, _gpu, at, level: 9 * scenes.used_bytes(node, 0, at / 9, level) + 400 * 2**30,
    "host_cgroup_used_bytes": lambda node, _gpu, at, level: 5 * scenes.used_bytes(node, 0, at / 9, level) + 50 * 2**30,
}
SCENES: dict[str, Callable[[float], wire.Snapshot]] = {
    "healthy": scenes.healthy,
    "troubled": scenes.troubled,
    "demo": lambda at: scenes.simulated(scenes.healthy(at)),
    "on-call": on_call.fleet,
    "mixed": on_call.mixed,
    "empty": lambda at: wire.Snapshot(at=at, server=scenes.SERVER),
    "foresight": foresight.fleet,
    "128": lambda at: scenes.crowded(at, 16),
    "1024": lambda at: scenes.crowded(at, 128),
    "10240": lambda at: scenes.crowded(at, 1280),
}


def play(stage: Stage) -> NoReturn:
    """A tick a second, for ever."""
    while True:
        time.sleep(1)
        stage.send(scenes.tick(stage.snapshot.nodes, time.time(), scenes.LEVELS))


def main() -> None:
    stage = Stage(SCENES[sys.argv[1]](time.time()))
    stage.open()
    print(stage.url, flush=True)
    try:
        play(stage)
    except KeyboardInterrupt:
        stage.close()


if __name__ == "__main__":
    main()
