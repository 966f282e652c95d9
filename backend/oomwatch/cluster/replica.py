"""This server as one of several: all its parts, put together, and what it tells the others.

    door: agent -> reception -> journal -> crier -> NATS -> abroad -> the others' reception -> their engines
    ours: engine -> chorus -> journal -> database -> told -> nudge over NATS -> the others' followers -> their boards

`hearing.py` takes in what the others tell, `keeping.py` keeps in step with them.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any

from oomwatch import wire
from oomwatch.cluster.abroad import Abroad, Crier
from oomwatch.cluster.chorus import Chorus
from oomwatch.cluster.envelope import Envelope, Gone, Pulse, Retried, Stored, Unstored
from oomwatch.cluster.follower import Follower
from oomwatch.cluster.gaps import Gaps
from oomwatch.cluster.hearing import Circle, Hearing
from oomwatch.cluster.keeping import Keeping, Works
from oomwatch.cluster.leadership import Leadership
from oomwatch.cluster.members import Members
from oomwatch.cluster.ownership import Doors
from oomwatch.cluster.rolls import Rolls
from oomwatch.cluster.world import World
from oomwatch.service.service import Service

UNSTORED_AT_ONCE = 20  # of at most some 10 KiB each: NATS takes a megabyte (max_payload)

logger = logging.getLogger(__name__)


class Replica:
    """Made once the service has its journal, and before it recalls anything: what is found then is not said by all."""

    def __init__(self, me: str, address: str, service: Service, world: World) -> None:
        steady, clock = world.steady, service.clock
        self.me = me
        self.address = address
        self.service = service
        self.channels = world.channels
        self.bus = world.bus
        self.nudged = asyncio.Event()  # there may be something new in the database
        self._retries: asyncio.Queue[str] = asyncio.Queue()
        self._is_stopped = False
        self.members = Members(me)
        self.doors = Doors()
        self.leadership = Leadership(world.lease, world.ask_lease, self.members, self.pulse, clock=clock, steady=steady)
        self.chorus = Chorus(service.engine.fleet, self.members, self.doors, self.leadership.leader, steady)
        self.follower = Follower(world.truth, world.ask_truth, self.chorus, service, world.told)
        self.rolls = self._rolls(world)
        self.crier = Crier(service.journal, self.doors, self.publish, me)
        self.gaps = Gaps(world.history, world.ask_history, service, world.stored_within, steady)
        nodes = service.engine.fleet.nodes
        self.abroad = Abroad(service.roster, self.gaps, nodes.get, self.doors, self.publish, me, clock)
        self.hearing = Hearing(self._circle(), steady)
        self.keeping = Keeping(self._works(), service, steady)
        service.chorus, service.on_told = self.chorus, self.told
        service.reception.journal, service.reception.on_leave = self.crier, self.crier.left

    def _rolls(self, world: World) -> Rolls:
        return Rolls(
            world.table,
            world.ask_table,
            self.members,
            address=self.address,
            started_at=self.service.started_at,
            steady=world.steady,
            greet=self.greet_for_all,
        )

    def _circle(self) -> Circle:
        return Circle(
            self.service,
            self.members,
            self.doors,
            self.leadership,
            self.chorus,
            self.abroad,
            self.nudged,
            hear_channels=self.channels.hear,
            greet_for_all=self.greet_for_all,
            retry=self.retry,
        )

    def _works(self) -> Works:
        return Works(
            self.me,
            self.bus,
            self.members,
            self.leadership,
            self.chorus,
            self.abroad,
            self.follower,
            self.rolls,
            self.nudged,
            ails=self.ails,
            pulse=self.pulse,
            greet_for=self.greet_for,
        )

    def works(self) -> dict[str, Coroutine[Any, Any, None]]:
        """What goes on until the server stops, by name, beside the bus."""
        return {
            "members": self.rolls.run(),
            "lease": self.leadership.run(),
            "others' words": self.keeping.follow_for_ever(),
            "gaps": self.gaps.fill_for_ever(),
            "step": self.keeping.tick_for_ever(),
            "retries": self._retry_for_ever(),
        }

    # ------------------------------------------------------------ what we tell

    def publish(self, envelope: Envelope) -> None:
        self.bus.publish(envelope)

    def told(self, transitions: Sequence[wire.Transition]) -> None:
        """These were told here: the others read them in the database or, where it takes none, hear them from us."""
        if self.service.journal.problem is None:
            self.nudge()
        else:
            for begin in range(0, len(transitions), UNSTORED_AT_ONCE):
                some = tuple(transitions[begin : begin + UNSTORED_AT_ONCE])
                self.publish(Unstored(replica=self.me, transitions=some))

    def nudge(self) -> None:
        """There is something new in the database."""
        self.publish(Stored(replica=self.me))

    def pulse(self) -> None:
        """Tell the others that we are here."""
        if self._is_stopped:
            return
        leads = self.leadership.leads
        self.publish(
            Pulse(
                replica=self.me,
                sent_at=self.service.clock(),
                started_at=self.service.started_at,
                address=self.address,
                leads=self.leadership.since,
                ails=self.ails(),
                channels=tuple(self.channels.status()) if leads else (),
            )
        )

    def ails(self) -> bool:
        """Whether the database cannot be written from here."""
        return self.service.journal.problem is not None or self.rolls.problem is not None

    def greet_for_all(self) -> None:
        """Say hello for every agent that is connected here."""
        for node in [session.node for session in self.service.roster if session.peer is not None]:
            self.greet_for(node)

    def greet_for(self, node: str) -> None:
        """Tell the others its hello, where its agent is connected here, and not by a line that nobody has ended."""
        if self.doors.of(node) not in (None, self.me):
            return
        session, record = self.service.roster.find(node), self.service.engine.fleet.nodes.get(node)
        if session is not None and session.peer is not None and record is not None and not record.stopped:
            self.crier.cry(session, 0, session.heard_at, record.hello)

    async def say_goodbye(self) -> None:
        """We stop: the others need not wait until they miss us."""
        self._is_stopped = True
        await self.leadership.give_up()
        await self.rolls.leave()
        await self.bus.last_word(Gone(replica=self.me))

    # ------------------------------------------------------------ channels that refused something

    def retry(self, channel: str) -> None:
        """Have the leader tell a channel again what it refused."""
        if self.leadership.leads:
            self._retries.put_nowait(channel)
        else:
            self.publish(Retried(replica=self.me, channel=channel))

    async def _retry_for_ever(self) -> None:
        while True:
            channel = await self._retries.get()
            try:
                await self.channels.retry(channel)
            except Exception as error:  # the person asked another replica, and sees that it fails
                logger.warning("channel %s could not be tried again: %s", channel, error)
