"""A server that is one of several: what that takes, put together. Loaded only where the settings ask for it."""

import asyncio
import contextlib
import functools
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from oomwatch import wire
from oomwatch.cluster.abroad import Abroad, Crier
from oomwatch.cluster.bus import Bus
from oomwatch.cluster.chorus import Chorus
from oomwatch.cluster.follower import Follower
from oomwatch.cluster.keeping import Keeping
from oomwatch.cluster.leadership import Leadership
from oomwatch.cluster.members import Members
from oomwatch.cluster.replica import Replica
from oomwatch.cluster.rolls import Rolls
from oomwatch.metrics.family import ClusterCounts
from oomwatch.service.journal import Journal
from oomwatch.service.service import Service
from oomwatch.service.timepiece import steady_clock
from oomwatch.settings import Settings, database_url
from oomwatch.store.lease import Lease
from oomwatch.store.store import Store
from oomwatch.tasks import Crew
from oomwatch.web.herald import Herald
from oomwatch.web.threads import WatchedPool

T = TypeVar("T")
logger = logging.getLogger(__name__)


def replica_name(settings: Settings) -> str:
    """What this server is called among the others: by its host and its port, so that it is the same at every start."""
    return settings.cluster_replica or f"{socket.gethostname()}-{settings.listen.rpartition(':')[2]}"


class Clustered:
    """Made before the service has recalled anything, so that what it finds then is not said by every replica."""

    def __init__(self, settings: Settings, service: Service, store: Store, stack: contextlib.AsyncExitStack) -> None:
        self._service = service
        self._store = store
        self._call = _thread(stack, "cluster")
        me = replica_name(settings)
        self._members = Members(me)
        self._chorus = service.chorus = Chorus(service.engine.fleet, self._members, steady_clock)
        self._settings = settings
        self._lease = Lease(database_url(settings))
        self._lease_call = _thread(stack, "lease")
        stack.push_async_callback(self._lease_call, self._lease.close)
        self._me = me
        self.replica: Replica
        self.keeping: Keeping
        self._stop_delivering: Callable[[], Coroutine[Any, Any, None]]

    async def start(self, herald: Herald, journal: Journal) -> None:
        """Raises StoreError. Before `restore`: from here on the follower reads what the others say."""
        service, members, steady = self._service, self._members, steady_clock
        me, address = self._me, self._settings.external_url or self._settings.listen
        self.replica = replica = Replica(
            me,
            address,
            service,
            members,
            self._chorus,
            channels=herald.status,
            hear_channels=herald.hear,
            retry=functools.partial(_retry, herald),
            steady=steady,
        )
        self._bus = replica.bus = Bus(
            self._settings.cluster_nats or "", self._settings.cluster_site, me, replica.hear, replica.on_connect
        )
        doors = self._chorus.doors
        replica.crier = Crier(journal, doors, replica.publish, me)
        replica.abroad = Abroad(
            service.roster, service.reception, service.engine.fleet.nodes.get, doors, replica.publish, me, service.clock
        )
        replica.leadership = Leadership(
            self._lease, self._lease_call, members, replica.pulse, clock=service.clock, steady=steady
        )
        replica.rolls = Rolls(
            self._store,
            self._call,
            members,
            address=address,
            started_at=service.started_at,
            steady=steady,
            greet=replica.greet_for_all,
        )
        seq = await self._call(self._store.last_transition)
        replica.follower = Follower(self._store, self._call, self._chorus, service, seq)
        self.keeping = Keeping(replica, service, steady)
        service.reception.journal = replica.crier
        service.reception.on_leave = replica.crier.left

    def tell(self, transitions: Sequence[wire.Transition]) -> None:
        """What the journal tells people."""
        self._service.tell(transitions)
        self.replica.told(transitions)

    def set_to_work(self, crew: Crew, herald: Herald, resume: Callable[[], None]) -> None:
        replica = self.replica
        self._stop_delivering = functools.partial(_stopped, herald)
        crew.start("cluster: NATS", self._bus.run())
        crew.start("cluster: members", replica.rolls.run())
        crew.start("cluster: lease", replica.leadership.run())
        crew.start("cluster: others' words", self.keeping.follow_for_ever())
        crew.start("cluster: step", self.keeping.tick_for_ever())
        crew.start("cluster: delivery", self.duty(functools.partial(_deliver, herald, resume)))

    def counts(self) -> ClusterCounts:
        """For /metrics."""
        replica, bus = self.replica, self._bus
        return ClusterCounts(
            alive=self._members.alive(steady_clock()),
            leads=replica.leadership.leads,
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
            spoken_for=len(self._chorus.floor),
            unspoken=len(self._chorus.unspoken),
        )

    async def say_goodbye(self) -> None:
        """We stop: what is on its way arrives before another may deliver."""
        self.replica.leadership.step_down()
        await self._stop_delivering()
        await self.replica.say_goodbye()

    def duty(self, work: Callable[[], Coroutine[Any, Any, None]]) -> Coroutine[Any, Any, None]:
        """The same work, done only while this replica leads."""
        return self.replica.leadership.while_leading(work)


async def _deliver(herald: Herald, resume: Callable[[], None]) -> None:
    """Begin as after a restart; stop at once where another leads."""
    herald.lead()
    resume()
    try:
        await asyncio.Event().wait()
    finally:
        herald.rest()


async def _stopped(herald: Herald) -> None:
    herald.rest()
    await herald.ready()


def _retry(herald: Herald, channel: str) -> None:
    async def try_it() -> None:
        try:
            await herald.retry(channel)
        except Exception as error:  # the person asked another replica, and sees that it fails
            logger.warning("channel %s could not be tried again: %s", channel, error)

    _keep(asyncio.create_task(try_it(), name=f"retry {channel}"))


_tasks: "set[asyncio.Task[None]]" = set()


def _keep(task: "asyncio.Task[None]") -> None:
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def _thread(stack: contextlib.AsyncExitStack, name: str) -> Callable[..., Any]:
    """A thread of its own for what blocks, so that a database that hangs keeps nothing else."""
    pool = stack.enter_context(WatchedPool(1, name))

    async def call(fn: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, functools.partial(fn, *args))

    return call
