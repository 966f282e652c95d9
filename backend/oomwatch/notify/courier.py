"""Delivers to one channel: waits, bundles, sends, and tries again. One task, so that a dead channel delays no other."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec

from oomwatch import wire
from oomwatch.notify.backoff import pause_seconds
from oomwatch.notify.channel import Channel
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.grouping import Group, TransitionKey, is_news, notice_of, severity_of
from oomwatch.notify.outcome import Failed, Outcome, TryAgain
from oomwatch.notify.pool import Pool

logger = logging.getLogger(__name__)


class ChannelStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a channel fares. Times are Unix seconds; None: has not happened since the start."""

    name: str
    kind: str
    queue_length: int
    delivered_total: int = 0  # messages
    failed_total: int = 0  # messages given up for good
    retries_total: int = 0  # attempts that are to be repeated
    dropped_total: int = 0  # transitions for which the queue had no room
    last_success_at: float | None = None
    last_error_at: float | None = None
    last_error: str | None = None


class Courier:
    def __init__(
        self,
        channel: Channel,
        config: NotifyConfig,
        mark: Callable[[str, Sequence[TransitionKey]], Awaitable[None]],
        *,
        clock: Callable[[], float],
        chance: Callable[[], float],
    ) -> None:
        self._channel = channel
        self._mark = mark
        self._clock = clock
        self._chance = chance
        self._pool = Pool(
            wait_seconds=config.group_wait,
            interval_seconds=config.group_interval,
            merge_resolved=channel.config.send_resolved,
        )
        self._status = ChannelStatus(name=self.name, kind=channel.config.kind, queue_length=0)
        self._unmarked: list[TransitionKey] = []
        self._free_at = 0.0  # loop time before which nothing is sent
        self._failures = 0  # in a row
        self._stopping = False
        self._wake = asyncio.Event()

    @property
    def name(self) -> str:
        return self._channel.config.name

    def offer(self, transitions: Iterable[wire.Transition]) -> None:
        wanted = [transition for transition in transitions if self._wants(transition)]
        if wanted:
            self._pool.add(wanted, asyncio.get_running_loop().time())
            self._wake.set()

    def _wants(self, transition: wire.Transition) -> bool:
        config = self._channel.config
        grave = wire.SEVERITIES.index(severity_of(transition)) >= wire.SEVERITIES.index(config.severity)
        return (
            grave
            and is_news(transition)
            and (transition.state == "firing" or (transition.state == "resolved" and config.send_resolved))
        )

    def status(self) -> ChannelStatus:
        return msgspec.structs.replace(
            self._status, queue_length=len(self._pool), dropped_total=self._pool.dropped_total
        )

    def stop(self) -> None:
        """Finish the message on its way, then return from `run`."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        now = asyncio.get_running_loop().time
        while not self._stopping:
            self._wake.clear()
            groups = self._pool.take(now()) if now() >= self._free_at else []
            if not groups:
                await self._rest(now())
            for group in groups:
                if not await self._deliver(group):
                    break

    async def _rest(self, now: float) -> None:
        """Until something is due and the channel is free, or until there is news."""
        next_at = self._pool.next_at()
        timeout = None if next_at is None else max(next_at, self._free_at) - now
        waiting = asyncio.ensure_future(self._wake.wait())
        try:
            await asyncio.wait([waiting], timeout=timeout)
        finally:
            waiting.cancel()

    async def _deliver(self, group: Group) -> bool:
        """Send one message and draw the consequences. False: the rest has to wait as well."""
        outcome = await self._attempt(group)
        now = asyncio.get_running_loop().time()
        if isinstance(outcome, TryAgain):
            self._failures += 1
            pause = pause_seconds(self._failures, self._chance(), asked_seconds=outcome.after_seconds)
            self._free_at = now + pause
            self._pool.retry(group.topic, now)
            self._note_error(outcome.reason, retries=1)
            logger.warning("channel %s: %s; trying again in %.1f s", self.name, outcome.reason, pause)
            return False
        self._failures = 0
        self._free_at = now + self._channel.pause_seconds
        self._pool.forget(group)
        if isinstance(outcome, Failed):
            self._note_error(outcome.reason, failed=1)
            logger.error("channel %s: message not sent: %s", self.name, outcome.reason)
        else:
            await self._note_success(group)
        return True

    async def _attempt(self, group: Group) -> Outcome:
        try:
            return await self._channel.send(notice_of(group, self._clock()))
        except Exception as error:
            logger.exception("channel %s: a message could not be made", self.name)
            return Failed(f"the message could not be made ({type(error).__name__}); the server's log has the details")

    async def _note_success(self, group: Group) -> None:
        before = self._status
        self._status = msgspec.structs.replace(
            before, delivered_total=before.delivered_total + 1, last_success_at=self._clock()
        )
        self._unmarked.extend(group.covers)
        try:
            await self._mark(self.name, tuple(self._unmarked))
        except Exception:
            # It has arrived: the worst that can come of this is that it is sent once more after a restart.
            logger.exception(
                "channel %s: cannot note what was delivered; trying again with the next message", self.name
            )
        else:
            self._unmarked.clear()

    def _note_error(self, reason: str, *, retries: int = 0, failed: int = 0) -> None:
        before = self._status
        self._status = msgspec.structs.replace(
            before,
            retries_total=before.retries_total + retries,
            failed_total=before.failed_total + failed,
            last_error_at=self._clock(),
            last_error=reason,
        )
