"""Tells the other channels of a feed that fails: an Alertmanager that nobody can reach is no place to learn of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from oomwatch import wire
from oomwatch.letters import Standing
from oomwatch.notify.health import Health
from oomwatch.notify.notice import Notice
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain

LOOK_SECONDS = 5.0

logger = logging.getLogger(__name__)


class Announcer(Protocol):
    """Whoever remembers what others were told of a channel, and tells them."""

    async def standing(self, name: str) -> Standing: ...

    async def announce(self, standing: Standing, make: Callable[[str], Notice]) -> None: ...


class FeedWatch:
    """`status`: how the feeds fare now."""

    def __init__(
        self, status: Callable[[], Sequence[wire.ChannelState]], announcer: Announcer, clock: Callable[[], float]
    ) -> None:
        self._status = status
        self._announcer = announcer
        self._clock = clock
        self._known: dict[str, Health] = {}

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        while True:
            try:
                await self.look(asyncio.get_running_loop().time())
            except Exception:
                logger.exception("cannot tell other channels how the feeds fare; trying again")
            await sleep(LOOK_SECONDS)

    async def look(self, now: float) -> None:
        """Once: by the same rules as for every other channel. Raises what the store raises."""
        states = [one for one in self._status() if one.last_success_at is not None or one.last_error_at is not None]
        self._known = {one.name: self._known.get(one.name) or await self._remembered(one) for one in states}
        for state in states:
            await self._judge(self._known[state.name], state, now)

    async def _judge(self, health: Health, state: wire.ChannelState, now: float) -> None:
        before, wall = health.standing, self._clock()
        if not health.note(outcome_of(state), now, wall):
            return
        health.state = msgspec.structs.replace(state, health=health.state.health)
        try:
            await self._announcer.announce(health.standing, lambda to: health.notice(to, wall))
        except BaseException:
            health.standing = before  # nobody knows of it yet
            raise

    async def _remembered(self, state: wire.ChannelState) -> Health:
        new = wire.ChannelState(name=state.name, kind=state.kind)
        return Health(new, await self._announcer.standing(state.name))


def outcome_of(state: wire.ChannelState) -> Outcome:
    """As if the channel had just been sent something."""
    reason = state.last_error or ""
    if state.health == "ok":
        return Delivered()
    return Failed(reason) if state.health == "failed" else TryAgain(reason)
