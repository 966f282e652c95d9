"""The notifier in force: made anew when alerts.yaml says something else of the channels."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oomwatch import wire
from oomwatch.letters import Standing
from oomwatch.notify.channel import Charts
from oomwatch.notify.channels import open_channels
from oomwatch.notify.config import NotifyConfig
from oomwatch.notify.http import Client
from oomwatch.notify.notice import Notice
from oomwatch.notify.notifier import Ledger, Notifier
from oomwatch.notify.words import Frame
from oomwatch.service.journal import Call


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
    ) -> None:
        self._ledger = ledger
        self._write = write
        self._client = client
        self._external_url = external_url
        self._clock = clock
        self._environ = environ
        self._charts = charts
        self._config: NotifyConfig | None = None
        self._notifier: Notifier | None = None
        self._changing: asyncio.Task[Any] | None = None
        self._waiting: list[wire.Transition] = []
        self._status: list[wire.ChannelState] = []

    def prepare(self, config: NotifyConfig) -> Notifier:
        """The notifier for this configuration, not yet started. Raises SettingError."""
        frame = Frame(language=config.language, external_url=self._external_url)
        channels = open_channels(config.channels, frame, self._client, self._environ, charts=self._charts)
        return Notifier(channels, config, self._ledger, self._write, clock=self._clock)

    def replace(self, config: NotifyConfig) -> None:
        """Change over to these channels, unless they are the same. Raises SettingError and then changes nothing."""
        if config == self._config:
            return
        successor = self.prepare(config)
        self._config = config
        self._client.allow_private_addresses(config.allow_private_addresses)
        self._changing = asyncio.create_task(self._change(self._changing, successor), name="change channels")

    async def _change(self, earlier: "asyncio.Task[Any] | None", successor: Notifier) -> None:
        """The old one lets go first: what it has not delivered the new one finds in the store."""
        if earlier is not None:
            await earlier
        predecessor, self._notifier = self._notifier, None
        if predecessor is not None:
            await predecessor.stop()
        await successor.start()
        self._notifier = successor
        waiting, self._waiting = self._waiting, []
        successor.offer(waiting)

    async def ready(self) -> None:
        """The last change of channels is through."""
        if self._changing is not None:
            await self._changing

    def offer(self, transitions: Sequence[wire.Transition]) -> None:
        if self._notifier is not None:
            self._notifier.offer(transitions)
        else:
            self._waiting += transitions

    def problems(self) -> list[str]:
        """Why people are not told, in sentences; a channel whose receiver fails is none: it is tried again."""
        if self._changing is not None and self._changing.done() and _failed(self._changing):
            return ["the channels could not be changed, by a defect; see the log, and restart the server"]
        dead = self._notifier.dead() if self._notifier is not None else []
        return [f"nothing is sent to the channel {name} any more, by a defect; restart the server" for name in dead]

    def status(self) -> list[wire.ChannelState]:
        """How each channel fares, in the order of alerts.yaml; while channels are changed, as they fared before."""
        if self._notifier is not None:
            self._status = self._notifier.status()
        return self._status

    async def standing(self, name: str) -> Standing:
        """What others were told of a channel that is kept up to date elsewhere. Raises what the store raises."""
        await self.ready()
        return Standing(name, self._clock()) if self._notifier is None else await self._notifier.standing(name)

    async def announce(self, standing: Standing, make: Callable[[str], Notice]) -> None:
        """Tell the channels of the day of another one. Raises what the store raises."""
        await self.ready()
        if self._notifier is not None:
            await self._notifier.announce(standing, make)

    async def retry(self, name: str) -> bool:
        """Tell a channel again what it refused. False: there is no such channel. Raises what the store raises."""
        await self.ready()
        if self._notifier is None or name not in [channel.name for channel in self._notifier.status()]:
            return False
        await self._notifier.retry(name)
        return True

    async def stop(self) -> None:
        await self.ready()
        if self._notifier is not None:
            await self._notifier.stop()
        await self._client.aclose()


def _failed(task: "asyncio.Task[Any]") -> bool:
    return task.cancelled() or task.exception() is not None
