"""Sends to any store that takes Prometheus' remote write, in order, each batch until it is taken or refused."""

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import NamedTuple

import httpx

from oomwatch.notify.backoff import pause_seconds
from oomwatch.notify.gate import authorities
from oomwatch.notify.http import retry_after_seconds
from oomwatch.options import SettingError
from oomwatch.oserror import with_remedy
from oomwatch.senders.batches import Batch, Packer, Queue
from oomwatch.senders.sending import Counts, OwnUp, Read, always, every, guarded

TIMEOUT_SECONDS = 30.0
PAUSE_SECONDS_MAX = 300.0  # whatever the store asks for: what waits is not kept for longer
ANSWER_CHARS = 200
HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
    "User-Agent": "oomwatch",
}


class _Answer(NamedTuple):
    """`again`: the same batch may be taken later; `after_seconds`: not sooner."""

    problem: str | None = None
    again: bool = False
    after_seconds: float | None = None


class RemoteWrite(Counts):
    """Two loops: one collects every `interval_seconds`, one sends what waits."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        read: Read,
        own_up: OwnUp,
        *,
        labels: Mapping[str, str],
        interval_seconds: float,
        on_duty: Callable[[], bool] = always,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        super().__init__("remote write")
        self._client = client
        self._url = httpx.URL(url)
        self._read = read
        self._own_up = own_up
        self._interval_seconds = interval_seconds
        self._on_duty = on_duty
        self._clock = clock
        self._chance = chance
        self._packer = Packer(labels, snappy())
        self._queue = Queue()

    @property
    def waiting(self) -> int:
        """Batches."""
        return len(self._queue)

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await asyncio.gather(
                every(self._interval_seconds, self._gather, self.name, self._own_up, self._on_duty),
                self._send_for_ever(),
            )
        finally:
            await self._client.aclose()

    async def _gather(self) -> None:
        made, at_ms = self._read(), round(self._clock() * 1000)
        batches = await asyncio.to_thread(lambda: self._packer.pack(made(), at_ms))
        self.dropped_total += self._queue.put(batches)

    async def _send_for_ever(self) -> None:
        while True:
            batch = await self._queue.next()
            await guarded(lambda batch=batch: self._send(batch), self.name, self._own_up)  # type: ignore[misc]

    async def _send(self, batch: Batch) -> None:
        failures = 0
        while (answer := await self._post(batch.body)).again:
            failures += 1
            self.fail(answer.problem or "")
            pause = pause_seconds(failures, self._chance(), asked_seconds=answer.after_seconds)
            await asyncio.sleep(min(pause, PAUSE_SECONDS_MAX))
        if answer.problem is None:
            self.succeed(batch.samples)
        else:
            self.fail(answer.problem)
            self.refused_total += batch.samples

    async def _post(self, body: bytes) -> _Answer:
        try:
            answer = await asyncio.wait_for(self._client.post(self._url, content=body), TIMEOUT_SECONDS)
        except (asyncio.TimeoutError, httpx.TransportError) as error:
            return _Answer(f"{self._url.host} does not answer: {with_remedy(error)}", again=True)
        if answer.is_success:
            return _Answer()
        said = " ".join(answer.text.split())[:ANSWER_CHARS]
        again = answer.is_server_error or answer.status_code == HTTPStatus.TOO_MANY_REQUESTS
        after = retry_after_seconds(answer.headers.get("Retry-After"), self._clock()) if again else None
        return _Answer(f"{self._url.host} answered {answer.status_code}: {said}", again, after)


def remote_client(token: str | None) -> httpx.AsyncClient:
    """No redirects: they would carry the token to another host. Its own limits of time, for bodies are large.

    Raises SettingError where the certificates of the authorities cannot be loaded.
    """
    authorization = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        trust = authorities()
    except httpx.ConnectError as error:
        raise SettingError(f"remote_write_url: {error}") from error
    headers = {**HEADERS, **authorization}
    return httpx.AsyncClient(verify=trust, timeout=TIMEOUT_SECONDS, follow_redirects=False, headers=headers)


def snappy() -> Callable[[bytes], bytes]:
    """The compressor of remote write: Snappy's block format. Raises SettingError where the extra is not installed."""
    try:
        import cramjam  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise SettingError('remote_write_url: this needs Snappy: pip install "oomwatch[remote-write]"') from error
    return lambda body: bytes(cramjam.snappy.compress_raw(body))
