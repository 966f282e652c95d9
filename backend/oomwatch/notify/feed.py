"""Keeps a receiver such as Alertmanager up to date: what is due when is pure, and each receiver has a task of its own.

A receiver of this kind holds an alert for firing until the `endsAt` that it was last told. So what fires is told again
each minute, four minutes ahead, and what is over for five minutes, as Prometheus does: a restart of the receiver, or
some lost requests, do no harm.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.notify.backoff import pause_seconds
from oomwatch.notify.channel import Feed, Item
from oomwatch.notify.http import shown
from oomwatch.notify.outcome import Delivered, Failed, Outcome, TryAgain
from oomwatch.notify.secret import Secret
from oomwatch.tasks import rung

RESEND_SECONDS = 60.0
AHEAD_SECONDS = 240.0
ENDED_SECONDS = 300.0  # for how long it is told that something is over
BATCH = 256  # alerts in one request
TICK_SECONDS = 5.0  # how often it is looked whether something is due, if nothing happens
WATCHDOG = "the Watchdog"

logger = logging.getLogger(__name__)


class Mark(NamedTuple):
    """What a receiver was told last of an alert, and when (loop time)."""

    alert: wire.Alert | None
    at: float
    is_over: bool


class ToldSoFar:
    """By one receiver. Pure: times are arguments, `now` of the wall's clock and `tick` of one that never jumps."""

    def __init__(self) -> None:
        self._marks: dict[str, Mark] = {}

    def due(self, alerts: Sequence[wire.Alert], now: float, tick: float, *, watchdog: bool) -> dict[str, Item]:
        """What is to be told now, by id. `alerts`: those that are meant for the receiver, open and ended ones."""
        found: dict[str, Item] = {}
        if watchdog and self._is_old(self._marks.get(WATCHDOG), tick):
            found[WATCHDOG] = Item(None, now + AHEAD_SECONDS)
        for alert in alerts:
            ends_at = self._ends_at(alert, now, tick)
            if ends_at is not None:
                found[alert.id] = Item(alert, ends_at)
        return found | self._gone({alert.id for alert in alerts}, now)

    def _ends_at(self, alert: wire.Alert, now: float, tick: float) -> float | None:
        """None: nothing is to be told of it. Muting withholds a beginning, and nothing of what was told."""
        mark = self._marks.get(alert.id)
        if alert.told_at is None:
            return None
        if alert.state == "firing":
            return now + AHEAD_SECONDS if mark is None or mark.is_over or self._is_old(mark, tick) else None
        if alert.ended_at is None or now - alert.ended_at > ENDED_SECONDS:
            return None
        return alert.ended_at if mark is None or not mark.is_over or self._is_old(mark, tick) else None

    def _gone(self, here: set[str], now: float) -> dict[str, Item]:
        """What fires at the receiver and is not to be seen any more: forgotten, or meant for others by now."""
        gone = {key: mark for key, mark in self._marks.items() if key not in here and not mark.is_over}
        return {
            key: Item(msgspec.structs.replace(mark.alert, state="resolved", ended_at=now), now)
            for key, mark in gone.items()
            if mark.alert is not None
        }

    @staticmethod
    def _is_old(mark: Mark | None, tick: float) -> bool:
        return mark is None or tick - mark.at >= RESEND_SECONDS

    def note(self, told: dict[str, Item], now: float, tick: float) -> None:
        """The receiver has taken these."""
        for key, item in told.items():
            is_over = item.alert is not None and item.ends_at <= now
            self._marks[key] = Mark(item.alert, tick, is_over)
        old = [key for key, mark in self._marks.items() if mark.is_over and tick - mark.at > ENDED_SECONDS]
        for key in old:
            del self._marks[key]


class Feeder:
    """Tells one receiver. `alerts`: those that are meant for it now; `is_well`: whether the Watchdog may fire."""

    def __init__(
        self,
        feed: Feed,
        address: Secret,
        alerts: Callable[[], Sequence[wire.Alert]],
        is_well: Callable[[], bool],
        *,
        clock: Callable[[], float],
        chance: Callable[[], float],
    ) -> None:
        self._feed = feed
        self._address = address
        self._alerts = alerts
        self._is_well = is_well
        self._clock = clock
        self._chance = chance
        self._told = ToldSoFar()
        self._failures = 0  # in a row
        self._wake = asyncio.Event()
        self.state = wire.ChannelState(name=feed.config.name, kind=feed.config.kind)

    def wake(self) -> None:
        """Something has changed: look at once."""
        self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            pause = await self._tell()
            if pause is None:
                await rung(self._wake, TICK_SECONDS)
            else:
                await asyncio.sleep(pause)  # whatever happens meanwhile

    async def _tell(self) -> float | None:
        """Send what is due. Seconds to leave the receiver alone where it did not answer as it should.

        What is refused is told again in a minute like everything else: Alertmanager takes of a request what it can.
        """
        due = self._due()
        self._set(waiting=len(due))
        refusal: Failed | None = None
        for batch in _batches(due):
            outcome = await self._attempt(list(batch.values()))
            if isinstance(outcome, TryAgain):
                return self._fail(outcome)
            self._told.note(batch, self._clock(), asyncio.get_running_loop().time())
            self._set(waiting=max(0, self.state.waiting - len(batch)))
            refusal = outcome if isinstance(outcome, Failed) else refusal
            self._count(outcome)
        if due:
            self._conclude(refusal)
        return None

    def _due(self) -> dict[str, Item]:
        watchdog = self._feed.has_watchdog and self._is_well()
        return self._told.due(self._alerts(), self._clock(), asyncio.get_running_loop().time(), watchdog=watchdog)

    async def _attempt(self, items: Sequence[Item]) -> Outcome:
        try:
            return await self._feed.post(self._address, items, self._clock())
        except Exception as error:
            logger.exception("channel %s: alerts could not be put into a request", self.state.name)
            return Failed(f"a request could not be made ({type(error).__name__}); the server's log has the details")

    def _count(self, outcome: Delivered | Failed) -> None:
        state = self.state
        if isinstance(outcome, Delivered):
            self._set(delivered_total=state.delivered_total + 1, last_success_at=self._clock())
        else:
            self._set(failed_total=state.failed_total + 1)
            self._note_error(outcome.reason)

    def _conclude(self, refusal: Failed | None) -> None:
        """Everything that was due has been answered."""
        self._failures = 0
        health: wire.ChannelHealth = "ok" if refusal is None else "failed"
        if health != self.state.health:
            said = "takes alerts again" if refusal is None else refusal.reason
            level = logging.INFO if refusal is None else logging.ERROR
            logger.log(level, "channel %s: %s: %s", self.state.name, shown(self._address), said)
        self._set(health=health)

    def _fail(self, outcome: TryAgain) -> float:
        self._failures += 1
        pause = pause_seconds(self._failures, self._chance(), asked_seconds=outcome.after_seconds)
        self._set(health="failing", retries_total=self.state.retries_total + 1)
        self._note_error(outcome.reason)
        logger.warning("channel %s: %s; trying again in %.0f s", self.state.name, outcome.reason, pause)
        return min(pause, RESEND_SECONDS)

    def _note_error(self, reason: str) -> None:
        self._set(last_error_at=self._clock(), last_error=reason[: wire.TEXT_CHARS_MAX])

    def _set(self, **changes: object) -> None:
        self.state = msgspec.structs.replace(self.state, **changes)


def _batches(due: dict[str, Item]) -> Iterable[dict[str, Item]]:
    keys = list(due)
    for start in range(0, len(keys), BATCH):
        yield {key: due[key] for key in keys[start : start + BATCH]}


def united(states: Sequence[wire.ChannelState]) -> wire.ChannelState:
    """How a channel of several receivers fares: well where one of them is told, for they tell each other."""
    best = next((one for one in states if one.health == "ok"), states[0])
    failed = max(states, key=lambda one: one.last_error_at or 0.0)
    return msgspec.structs.replace(
        best,
        waiting=max(one.waiting for one in states),
        delivered_total=sum(one.delivered_total for one in states),
        failed_total=sum(one.failed_total for one in states),
        retries_total=sum(one.retries_total for one in states),
        last_success_at=max((one.last_success_at for one in states if one.last_success_at is not None), default=None),
        last_error_at=failed.last_error_at,
        last_error=failed.last_error,
    )
