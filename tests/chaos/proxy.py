"""A way to servers that can be cut, or fall silent, as a network does."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Sequence

BLOCK_BYTES = 65536
CONNECT_SECONDS = 2.0


class Way:
    """Listens at `port` and passes on to the first server that takes a connection, another one first each time."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.port = 0
        self._ports = tuple(ports)
        self._next = 0
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._ends: set[asyncio.StreamWriter] = set()
        self._works: set[asyncio.Task[None]] = set()
        self._is_ready = threading.Event()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()), name="way")

    def cut(self) -> None:
        """End every connection."""
        self._loop.call_soon_threadsafe(self._drop_all)

    def silence(self, *, on: bool) -> None:
        """Pass nothing on for a while, and leave all connections open."""
        self._loop.call_soon_threadsafe(self._open.clear if on else self._open.set)

    def start(self) -> None:
        self._thread.start()
        self._is_ready.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._open.set()
        self._is_ready.set()
        await self._over.wait()
        server.close()
        for work in self._works:
            work.cancel()
        self._drop_all()
        await asyncio.gather(*self._works, return_exceptions=True)

    def _drop_all(self) -> None:
        for end in self._ends:
            end.transport.abort()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._works.add(this)
        self._ends.add(writer)
        try:
            far = await self._connected()
            if far is not None:
                self._ends.add(far[1])
                await asyncio.gather(self._pass_on(reader, far[1]), self._pass_on(far[0], writer))
                self._ends.discard(far[1])
        except asyncio.CancelledError:
            pass  # the way is closed
        finally:
            self._works.discard(this)
            self._ends.discard(writer)
            writer.transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self._ports:
            port = self._ports[self._next % len(self._ports)]
            self._next += 1
            with contextlib.suppress(OSError, asyncio.TimeoutError):
                return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), CONNECT_SECONDS)
        return None

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while content := await reader.read(BLOCK_BYTES):
                await self._open.wait()
                writer.write(content)
                await writer.drain()
        writer.transport.abort()


@contextlib.contextmanager
def way_to(ports: Sequence[int]) -> Iterator[Way]:
    way = Way(ports)
    way.start()
    try:
        yield way
    finally:
        way.close()
