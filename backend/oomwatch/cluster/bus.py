"""The line between replicas: NATS. It never blocks who speaks, and keeps nothing that the others could do without.

What is said waits in a queue of bounded length; while NATS is away the oldest is dropped, and counted. Nothing depends
on its arrival: what was stored is read from the database, and readings that the others missed are in the history.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from oomwatch.cluster.envelope import Envelope, MalformedEnvelopeError, Pulse, decode, encode
from oomwatch.oserror import in_words, with_remedy
from oomwatch.tasks import rung

QUEUE_MAX = 20_000  # some 20 s of a thousand agents
PENDING_BYTES = 64 * 2**20  # that have arrived and were not looked at
AGAIN_SECONDS = 1.0
CONNECT_SECONDS = 2.0
PING_SECONDS = 2  # a NATS that has gone without a word is missed after two of these
PINGS_OUT = 2
FLUSH_EVERY = 200  # envelopes, between which others get their turn

Hear: TypeAlias = Callable[[Envelope], None]
OnConnect: TypeAlias = Callable[[], None]

logger = logging.getLogger(__name__)


class Bus:
    """See the module. `spell` makes bytes of what is said."""

    def __init__(self, url: str, site: str, me: str, *, spell: Callable[[Envelope], bytes] = encode) -> None:
        self._url = url
        self._subject = f"oomwatch.{site}"
        self._me = me
        self._spell = spell
        self._client: Client | None = None
        self._queue: deque[Envelope] = deque()
        self._news = asyncio.Event()
        self.sent_total = self.heard_total = self.unknown_total = self.malformed_total = 0
        self.dropped_total = 0  # found no room to wait
        self.defects_total = 0
        self.problem: str | None = "not connected yet"

    @property
    def is_connected(self) -> bool:
        return self._client is not None and self._client.is_connected

    def waiting(self) -> int:
        return len(self._queue)

    def publish(self, envelope: Envelope) -> None:
        """Send it as soon as there is a line."""
        if not self.is_connected and isinstance(envelope, Pulse):
            return  # a pulse tells of now
        self._queue.append(envelope)
        if len(self._queue) > QUEUE_MAX:
            self._queue.popleft()
            self.dropped_total += 1
        self._news.set()

    async def run(self, hear: Hear, on_connect: OnConnect) -> None:
        """Connect, and send what waits, until cancelled.

        `hear` is called with each envelope of another replica, in the event loop, `on_connect` after each connecting.
        """
        try:
            while True:
                await self._stay_connected(hear, on_connect)
                await self._send()
                await rung(self._news, AGAIN_SECONDS)
                self._news.clear()
        finally:
            await self._close()

    async def last_word(self, envelope: Envelope) -> None:
        """Send this, at once, where there is a line: we stop."""
        if self._client is not None and self._client.is_connected:
            try:
                await self._client.publish(f"{self._subject}.gone", self._spell(envelope))
                await asyncio.wait_for(self._client.flush(), AGAIN_SECONDS)
            except (NatsError, OSError, asyncio.TimeoutError):
                logger.debug("the others could not be told goodbye")

    async def _stay_connected(self, hear: Hear, on_connect: OnConnect) -> None:
        if self._client is not None and not self._client.is_closed:
            return
        client = Client()
        try:
            await asyncio.wait_for(
                client.connect(
                    self._url,
                    name=f"oomwatch {self._me}",
                    no_echo=True,
                    connect_timeout=int(CONNECT_SECONDS),
                    reconnect_time_wait=int(AGAIN_SECONDS),
                    max_reconnect_attempts=-1,
                    ping_interval=PING_SECONDS,
                    max_outstanding_pings=PINGS_OUT,
                    allow_reconnect=True,
                    disconnected_cb=self._note_loss,
                    reconnected_cb=partial(self._note_line, on_connect),
                    error_cb=self._note_error,
                ),
                2 * CONNECT_SECONDS,
            )
            await client.subscribe(
                f"{self._subject}.>", cb=partial(self._take, hear), pending_bytes_limit=PENDING_BYTES
            )
        except (NatsError, OSError, asyncio.TimeoutError) as error:
            self._fail(with_remedy(error))
            await _closed(client)
            return
        self._client = client
        await self._note_line(on_connect)

    async def _send(self) -> None:
        client = self._client
        while client is not None and client.is_connected and self._queue:
            for _ in range(min(FLUSH_EVERY, len(self._queue))):
                envelope = self._queue.popleft()
                kind = str(envelope.__struct_config__.tag)
                try:
                    await client.publish(f"{self._subject}.{kind}", self._spell(envelope))
                except (NatsError, OSError) as error:
                    self.dropped_total += 1
                    logger.warning("NATS does not take an envelope of the kind %s: %s", kind, in_words(error))
                    continue
                self.sent_total += 1
            await asyncio.sleep(0)

    # ------------------------------------------------------------ what NATS calls

    async def _take(self, hear: Hear, message: Msg) -> None:
        try:
            envelope = decode(message.data)
            if envelope is None:
                self.unknown_total += 1
            elif envelope.replica != self._me:
                self.heard_total += 1
                hear(envelope)
        except MalformedEnvelopeError as error:
            self.malformed_total += 1
            if self.malformed_total == 1:
                logger.warning("an envelope on NATS (%s) is malformed, and is skipped: %s", message.subject, error)
        except Exception:
            self.defects_total += 1
            logger.exception("an envelope could not be taken in; everything else goes on")

    async def _note_line(self, on_connect: OnConnect) -> None:
        logger.info("NATS: connected")
        self.problem = None
        on_connect()
        self._news.set()

    async def _note_loss(self) -> None:
        self._fail("the connection is lost")

    async def _note_error(self, error: Exception) -> None:
        logger.debug("NATS: %s", error)

    def _fail(self, problem: str) -> None:
        if self.problem is None or self.problem == "not connected yet":
            logger.warning("NATS: %s; it is tried again", problem)
        self.problem = problem

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await _closed(client)


async def _closed(client: Client) -> None:
    closing: asyncio.Future[Any] = asyncio.ensure_future(client.close())
    await asyncio.wait([closing], timeout=AGAIN_SECONDS)
    closing.cancel()
