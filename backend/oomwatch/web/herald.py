"""The notifier in force: made anew when alerts.yaml, or a secret, says something else of the channels."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.letters import Standing
from oomwatch.notify.channel import Charts, Surroundings
from oomwatch.notify.channels import open_channels
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.feeding import Outlook
from oomwatch.notify.http import Client
from oomwatch.notify.notice import Notice
from oomwatch.notify.notifier import Ledger, Notifier
from oomwatch.notify.secret import Secret, kept_elsewhere
from oomwatch.notify.words import Frame
from oomwatch.service.journal import Call


class Means(NamedTuple):
    """All that delivery depends on. Where two are equal there is nothing to change over."""

    config: NotifyConfig  # without what mutes, and without the heartbeat
    secrets: tuple[tuple[Secret, ...], ...]  # of each channel, those that stand elsewhere


class Prepared(NamedTuple):
    means: Means
    notifier: Notifier  # not yet started


class Herald:
    """Offers transitions to the channels of the day. Use from the event loop."""

    def __init__(
        self,
        ledger: Ledger,
        write: Call,
        client: Client,
        *,
        external_url: str | None,
        clock: Callable[[], float],
        environ: Mapping[str, str] = os.environ,
        charts: Charts | None = None,
        outlook: Outlook = Outlook(),  # noqa: B008 - a tuple
        delivers: bool = True,
    ) -> None:
        """`delivers` False: of several servers another does, until `lead` is called."""
        self._ledger = ledger
        self._write = write
        self._client = client
        self._external_url = external_url
        self._clock = clock
        self._environ = environ
        self._charts = charts
        self._outlook = outlook
        self._delivers = delivers
        self._means: Means | None = None
        self._taking: Notifier | None = None  # who is offered what comes, and may yet have to wait for the other
        self._running: Notifier | None = None
        self._changing: asyncio.Task[Any] | None = None
        self._status: list[wire.ChannelState] = []
        self._counted: dict[str, wire.ChannelState] = {}  # totals by channel, of notifiers that are gone

    def prepare(self, config: NotifyConfig) -> Prepared | None:
        """What this configuration takes to be put in force; None: it is. Raises SettingError."""
        means = self._means_of(config)
        if means == self._means:
            return None
        frame = Frame(language=config.language, external_url=self._external_url)
        channels = open_channels(config.channels, Surroundings(frame, self._client, self._environ, self._charts))
        notifier = Notifier(channels, config, self._ledger, self._write, clock=self._clock, outlook=self._outlook)
        return Prepared(means, notifier)

    def _means_of(self, config: NotifyConfig) -> Means:
        plain = msgspec.structs.replace(config, inhibit=(), quiet_hours=(), maintenance=(), heartbeat=None)
        return Means(plain, tuple(kept_elsewhere(one, self._environ, one.place) for one in config.channels))

    def replace(self, prepared: Prepared | None) -> None:
        """Change over to these channels; None: all stays."""
        if prepared is None:
            return
        self._means = prepared.means
        self._client.allow_private_addresses(self._means.config.allow_private_addresses)
        if self._delivers:
            self._change_over(prepared.notifier)

    def _change_over(self, successor: Notifier | None) -> None:
        self._taking = successor
        self._changing = asyncio.create_task(self._change(self._changing, successor), name="change channels")

    # ------------------------------------------------------------ one of several servers

    def lead(self) -> None:
        """Deliver from now on: what nobody was told is found in the store."""
        if self._means is not None and not self._delivers:
            config, self._means, self._delivers = self._means.config, None, True
            self.replace(self.prepare(config))

    def rest(self) -> None:
        """Another delivers."""
        self._delivers = False
        self._change_over(None)

    def hear(self, states: Sequence[wire.ChannelState]) -> None:
        """How the channels fare at the one that delivers."""
        if not self._delivers:
            self._status = list(states)

    # ------------------------------------------------------------ changing over

    async def _change(self, earlier: "asyncio.Task[Any] | None", successor: Notifier | None) -> None:
        """The old one lets go first: what it has not delivered the new one finds in the store."""
        if earlier is not None:
            await earlier
        predecessor, self._running = self._running, None
        if predecessor is not None:
            await predecessor.stop()
            self._status = predecessor.status()
            self._counted |= {one.name: one for one in self._status}
        if successor is None:
            return
        successor.inherit(self._counted.values())
        await successor.start()
        self._running = successor

    async def ready(self) -> None:
        """The last change of channels is through."""
        seen = None
        while seen is not self._changing:
            seen = self._changing
            if seen is not None:
                await seen

    def offer(self, transitions: Sequence[wire.Transition]) -> None:
        """Before there is any notifier they are left to it: they are stored."""
        if self._taking is not None:
            self._taking.offer(transitions)

    def problems(self) -> list[str]:
        """Why people are not told, in sentences; a channel whose receiver fails is none: it is tried again."""
        if self._changing is not None and self._changing.done() and _failed(self._changing):
            return ["the channels could not be changed, by a defect; see the log, and restart the server"]
        dead = self._running.dead() if self._running is not None else []
        return [f"nothing is sent to the channel {name} any more, by a defect; restart the server" for name in dead]

    def status(self) -> list[wire.ChannelState]:
        """How each channel fares, in the order of alerts.yaml; while channels are changed, as they fared before."""
        if self._running is not None:
            self._status = self._running.status()
        return self._status

    def fed(self) -> list[wire.ChannelState]:
        """The same of those that are kept up to date and sent no messages; none while channels are changed."""
        return self._running.fed() if self._running is not None else []

    async def standing(self, name: str) -> Standing:
        """What others were told of a channel that is kept up to date. Raises what the store raises."""
        await self.ready()
        return Standing(name, self._clock()) if self._running is None else await self._running.standing(name)

    async def announce(self, standing: Standing, make: Callable[[str], Notice]) -> None:
        """Tell the channels of the day of another one. Raises what the store raises."""
        await self.ready()
        if self._running is not None:
            await self._running.announce(standing, make)

    async def retry(self, name: str) -> bool:
        """Tell a channel again what it refused. False: there is no such channel. Raises what the store raises."""
        await self.ready()
        if self._running is None or name not in [channel.name for channel in self._running.status()]:
            return False
        await self._running.retry(name)
        return True

    async def stop(self) -> None:
        await self.ready()
        if self._running is not None:
            await self._running.stop()
        await self._client.aclose()


def _failed(task: "asyncio.Task[Any]") -> bool:
    return task.cancelled() or task.exception() is not None
