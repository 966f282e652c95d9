"""Carries transitions to channels: everything that is meant for one is told at least once, and no channel waits for
another.

A transition is in the store before it is offered. What a channel was told is in the store as well, so that a new
notifier goes on where the last one stopped, or was killed.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from oomwatch import wire
from oomwatch.letters import Account, Letter, Standing
from oomwatch.notify.backoff import Patience, pause_seconds
from oomwatch.notify.channel import Channel, Feed
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.courier import Courier
from oomwatch.notify.feeding import Feeding, Outlook
from oomwatch.notify.grouping import told_labels
from oomwatch.notify.inbox import Routed
from oomwatch.notify.notice import Notice
from oomwatch.notify.outbox import mail_again, mail_of
from oomwatch.notify.recovery import RESEND_SECONDS
from oomwatch.notify.route import Target
from oomwatch.story import UNJUDGED_SECONDS
from oomwatch.tasks import Crew, end

UNREADABLE = "another version of oomwatch wrote this message; it was made anew"
STOP_SECONDS = 3.0  # how long a message on its way may take when the server stops
logger = logging.getLogger(__name__)

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""`await call(fn, *args)`: run a method of the store in the thread that owns it."""
Stories: TypeAlias = Mapping[str, Sequence[wire.Transition]]


class Ledger(Protocol):
    """What the store keeps for channels. The methods block; they run in the store's thread."""

    def stories(self, since: float, unjudged_since: float) -> list[wire.Transition]:
        """Every transition of the alerts that fire, that changed `since`, or that have no verdict yet; in order."""
        ...

    def account(self, channel: str, alert_ids: Sequence[str], now: float) -> Account:
        """What a channel was told of these alerts, and what is on its way to it."""
        ...

    def keep_letters(self, letters: Sequence[Letter], standings: Sequence[Standing] = ()) -> None:
        """Write messages and what became of them, in one transaction. Twice is no error."""
        ...


class Teller(Protocol):
    """What keeps one channel: a courier, which sends messages, or what keeps receivers up to date."""

    def offer(self, news: Iterable[Routed]) -> None:
        """Transitions, in order, each with its route to here. Never blocks and never raises."""
        ...

    async def run(self) -> None:
        """Until it is stopped or cancelled."""
        ...

    def stop(self) -> None:
        """Let `run` end as soon as nothing is on its way."""
        ...

    def inherit(self, before: wire.ChannelState) -> None:
        """Count on from here. Before it runs."""
        ...

    def status(self) -> wire.ChannelState: ...


class Notifier:
    """Everything runs in one event loop; `offer` is called from that loop."""

    def __init__(
        self,
        channels: Sequence[Channel | Feed],
        config: NotifyConfig,
        ledger: Ledger,
        call: Call,
        *,
        clock: Callable[[], float] = time.time,
        outlook: Outlook = Outlook(),  # noqa: B008 - a tuple
        patience: Patience = lambda failures: pause_seconds(failures, random.random()),  # noqa: S311 - no secret
    ) -> None:
        self._ledger = ledger
        self._call = call
        self._clock = clock
        self._patience = patience
        self._router = config.router()
        self._couriers: dict[str, Courier] = {}
        self._tellers: dict[str, Teller] = {}  # couriers and others, in the order of alerts.yaml
        for channel in channels:
            name = channel.config.name
            if isinstance(channel, Feed):
                self._tellers[name] = Feeding(channel, self._router, outlook, clock=clock)
            else:
                courier = Courier(
                    channel, self._keep, self._tell_others, find=outlook.find, clock=clock, patience=patience
                )
                self._tellers[name] = self._couriers[name] = courier
        self._crew = Crew()
        self._changing = asyncio.Lock()  # of what runs: one after the other
        self._recovering: asyncio.Task[None] | None = None
        self._is_stopped = False

    def offer(self, transitions: Iterable[wire.Transition]) -> None:
        """Take news to all channels that they are meant for. Never blocks and never raises for what a channel does."""
        routed = [(one, self._targets(one)) for one in transitions]
        for name, teller in self._tellers.items():
            teller.offer([(one, targets.get(name)) for one, targets in routed])

    def _targets(self, transition: wire.Transition) -> dict[str, Target]:
        """By channel."""
        return {target.channel: target for target in self._router.targets(told_labels(transition))}

    async def start(self) -> None:
        """Begin to deliver; first what was left untold by an earlier life."""
        await self._recover(list(self._couriers))
        for name in self._tellers:
            self._run(name)

    async def retry(self, name: str) -> None:
        """Begin anew with one channel: what it refused is told again. Raises KeyError, or what the store raises."""
        courier = self._couriers[name]
        async with self._changing:
            if self._is_stopped:
                return
            courier.stop()
            await self._crew.end([_task(name)], grace_seconds=STOP_SECONDS)
            try:
                await courier.flush()
                courier.recover(*await self._account(name, await self._stories()))
            except BaseException:
                courier.go_on()
                raise
            finally:
                self._run(name)

    async def standing(self, name: str) -> Standing:
        """What others were told of a channel that is not ours to send to. Raises what the store raises."""
        account: Account = await self._call(self._ledger.account, name, [], self._clock())
        return account.standing

    async def announce(self, standing: Standing, make: Callable[[str], Notice]) -> None:
        """Tell all channels of another that fails, or works again. Raises what the store raises."""
        await self._keep(self._tell_others(standing.channel, make), [standing])

    def _run(self, name: str) -> None:
        self._crew.start(_task(name), self._tellers[name].run())

    async def _recover(self, names: Sequence[str]) -> None:
        try:
            stories = await self._stories()
            accounts = {name: await self._account(name, stories) for name in names}
        except Exception:
            logger.exception("cannot read what channels were told; they get new alerts, and it is tried again")
            for name in names:
                self._couriers[name].go_on()
            self._recovering = asyncio.create_task(self._recover_later(names), name="recover channels")
            return
        for name, account in accounts.items():
            self._couriers[name].recover(*account)

    async def _recover_later(self, names: Sequence[str]) -> None:
        """What nobody was told while the store could not be read must not wait for the next start."""
        left, failures = list(names), 1
        while left:
            await asyncio.sleep(self._patience(failures))
            try:
                await self.retry(left[0])
            except Exception as error:  # the store says the same to the journal, which tells it
                failures += 1
                logger.debug("what channels were told cannot be read yet: %s", error)
            else:
                left.pop(0)

    async def _stories(self) -> Stories:
        now = self._clock()
        stories: dict[str, list[wire.Transition]] = {}
        for one in await self._call(self._ledger.stories, now - RESEND_SECONDS, now - UNJUDGED_SECONDS):
            stories.setdefault(one.id, []).append(one)
        return stories

    async def _account(self, name: str, stories: Stories) -> tuple[Account, Stories, dict[str, Target]]:
        """Of one channel, with the alerts that are meant for it, or were when it was told of them."""
        account: Account = await self._call(self._ledger.account, name, list(stories), self._clock())
        unreadable = [one for one in account.waiting if mail_again(one) is None]
        if unreadable:  # given up, they count as not told, and are made anew
            await self._keep([one._replace(state="failed", error=UNREADABLE) for one in unreadable], [])
            account = await self._call(self._ledger.account, name, list(stories), self._clock())
        targets = {key[0]: self._router.stray(name) for key in account.told}
        for alert, story in stories.items():
            if name in (found := self._targets(story[0])):
                targets[alert] = found[name]
        return account, stories, targets

    async def _keep(self, letters: Sequence[Letter], standings: Sequence[Standing]) -> None:
        await self._call(self._ledger.keep_letters, letters, standings)

    async def stop(self) -> None:
        """Let messages on their way arrive, then stop. What still waits is in the store."""
        if self._recovering is not None:
            await end([self._recovering])
        async with self._changing:
            self._is_stopped = True
            for teller in self._tellers.values():
                teller.stop()
            await self._crew.end(grace_seconds=STOP_SECONDS)

    def dead(self) -> list[str]:
        """Names of the channels whose task has ended by a defect: to them nothing is sent any more."""
        dead = self._crew.dead()
        return [name for name in self._tellers if _task(name) in dead]

    def inherit(self, states: Iterable[wire.ChannelState]) -> None:
        """Totals so far of channels of these names. Before `start`."""
        for state in states:
            if state.name in self._tellers:
                self._tellers[state.name].inherit(state)

    def status(self) -> list[wire.ChannelState]:
        """How each channel fares, in the order of alerts.yaml."""
        return [teller.status() for teller in self._tellers.values()]

    def fed(self) -> list[wire.ChannelState]:
        """The same of those that are kept up to date and sent no messages."""
        return [teller.status() for name, teller in self._tellers.items() if name not in self._couriers]

    def _tell_others(self, channel: str, make: Callable[[str], Notice]) -> list[Letter]:
        mails = [(courier, mail_of(name, make(name))) for name, courier in self._couriers.items() if name != channel]
        for courier, mail in mails:
            courier.put(mail)
        return [mail.letter for _, mail in mails]


def _task(channel: str) -> str:
    return f"notify {channel}"
