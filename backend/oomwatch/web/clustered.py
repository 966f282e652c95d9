"""A server that is one of several: a replica on this server's own parts. Loaded only where the settings ask for it."""

import asyncio
import contextlib
import functools
import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from oomwatch.cluster.bus import Bus
from oomwatch.cluster.replica import Replica
from oomwatch.cluster.world import World
from oomwatch.metrics.family import ClusterCounts
from oomwatch.service.journal import Call
from oomwatch.service.service import Service
from oomwatch.service.timepiece import steady_clock
from oomwatch.settings import Settings, database_address
from oomwatch.store.lease import Lease
from oomwatch.store.store import Store
from oomwatch.tasks import Crew
from oomwatch.web.herald import Herald
from oomwatch.web.threads import WatchedPool

T = TypeVar("T")


def replica_name(settings: Settings) -> str:
    """What this server is called among the others: by its host and its port, so that it is the same at every start."""
    return settings.cluster_replica or f"{socket.gethostname()}-{settings.listen.rpartition(':')[2]}"


async def clustered(
    settings: Settings, service: Service, store: Store, herald: Herald, stack: contextlib.AsyncExitStack
) -> "Clustered":
    """To be called before anything is recalled. Raises StoreError."""
    me, database = replica_name(settings), database_address(settings)
    lease, roll = Lease(database), Store.hurried(database)
    ask_lease, ask_roll, ask_truth, ask_history = (
        _thread(stack, name) for name in ("lease", "members", "others' words", "gaps")
    )
    stack.push_async_callback(ask_lease, lease.close)
    stack.push_async_callback(ask_roll, roll.close)
    bus = Bus(settings.cluster_nats or "", settings.cluster_site, me)
    world = World(
        truth=store,
        ask_truth=ask_truth,
        history=store,
        ask_history=ask_history,
        table=roll,
        ask_table=ask_roll,
        lease=lease,
        ask_lease=ask_lease,
        bus=bus,
        channels=herald,
        told=await ask_truth(store.last_transition),
        stored_within=float(settings.flush_interval),
        steady=steady_clock,
    )
    return Clustered(Replica(me, settings.external_url or settings.listen, service, world), bus, herald)


class Clustered:
    """What the rest of the server sees of it."""

    def __init__(self, replica: Replica, bus: Bus, herald: Herald) -> None:
        self.replica = replica
        self._bus = bus
        self._herald = herald

    @property
    def leads(self) -> bool:
        return self.replica.leadership.leads

    def set_to_work(self, crew: Crew, resume: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """`resume`: what is done first by one that has come to lead."""
        hearing = self.replica.hearing
        for name, work in {
            "NATS": self._bus.run(hearing.hear, hearing.on_connect),
            "delivery": self.duty(functools.partial(self._deliver, resume)),
            **self.replica.works(),
        }.items():
            crew.start(f"cluster: {name}", work)

    def counts(self) -> ClusterCounts:
        """For /metrics."""
        replica, bus = self.replica, self._bus
        spoken_for, unspoken = replica.chorus.counts()
        return ClusterCounts(
            alive=replica.members.alive(steady_clock()),
            leads=self.leads,
            is_connected=bus.is_connected,
            envelopes={
                "sent": bus.sent_total,
                "heard": bus.heard_total,
                "dropped": bus.dropped_total,
                "unknown": bus.unknown_total + replica.abroad.unknown_total,
                "malformed": bus.malformed_total,
            },
            waiting=bus.waiting(),
            lag=replica.abroad.lag,
            words_total=replica.follower.read_total,
            spoken_for=spoken_for,
            unspoken=unspoken,
        )

    async def say_goodbye(self) -> None:
        """We stop: what is on its way arrives before another may deliver."""
        self.replica.leadership.step_down()
        self._herald.rest()
        await self._herald.ready()
        await self.replica.say_goodbye()

    def duty(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Coroutine[Any, Any, None]:
        """The same work, done only while this replica leads."""
        return self.replica.leadership.while_leading(work)

    async def _deliver(self, resume: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin as after a restart; stop at once where another leads."""
        self._herald.lead()
        try:
            await resume()
            await asyncio.Event().wait()
        finally:
            self._herald.rest()


def _thread(stack: contextlib.AsyncExitStack, name: str) -> Call:
    """A thread of its own for what blocks, so that a database that hangs keeps nothing else."""
    pool = stack.enter_context(WatchedPool(1, name))

    async def call(fn: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, functools.partial(fn, *args))

    return call
