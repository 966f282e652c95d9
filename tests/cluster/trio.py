"""Several real services with all of oomwatch.cluster around them; database, NATS and time are a test's own."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

from tests.server.house import START, Agent, House, hello, sample

from oomwatch import wire
from oomwatch.cluster.bus import Bus
from oomwatch.cluster.envelope import Envelope, decode, encode
from oomwatch.cluster.replica import Replica
from oomwatch.cluster.world import World
from oomwatch.letters import key_of
from oomwatch.service.journal import Entry, Journal
from oomwatch.service.sessions import Session
from oomwatch.store.errors import StoreError


class Row(NamedTuple):
    replica: str
    seen_seconds_ago: float


class Truth:
    """A database in memory, as far as replicas need one."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.transitions: list[wire.Transition] = []
        self.kept_silences: dict[str, wire.Silence] = {}
        self.messages: list[tuple[str, wire.AgentMessage]] = []
        self.progress: dict[tuple[str, str], int] = {}
        self.seen: dict[str, float] = {}  # when each node was heard last
        self.retired: list[str] = []
        self.is_gone = False
        self.is_unread = False  # history alone
        self.holder: str | None = None
        self._beats: dict[str, float] = {}
        self._now = now

    def append(self, transitions: Sequence[wire.Transition]) -> None:
        self.check()
        known = {key_of(one) for one in self.transitions}
        self.transitions += [one for one in transitions if key_of(one) not in known]

    def record(self, entries: Sequence[Entry]) -> None:
        self.check()
        for entry in entries:
            self.seen[entry.session.node] = entry.received_at
            key = (entry.session.node, entry.session.session)
            if not entry.seq or entry.seq > self.progress.get(key, 0):
                self.messages.append((entry.session.node, entry.message))
                self.progress[key] = max(entry.seq, self.progress.get(key, 0))

    def transitions_since(self, seq: int, *, limit: int = 1000) -> list[tuple[int, wire.Transition]]:
        self.check()
        return [*enumerate(self.transitions, 1)][seq : seq + limit]

    def silences(self, ending_after: float) -> list[wire.Silence]:
        self.check()
        return [one for one in self.kept_silences.values() if one.ends_at > ending_after]

    def retired_nodes(self) -> list[str]:
        self.check()
        return self.retired

    def last_seen(self, names: Collection[str]) -> dict[str, float]:
        self.check()
        return {node: self.seen[node] for node in names if node in self.seen}

    def samples_in_order(self, start: float, end: float, nodes: Collection[str]) -> Iterator[tuple[str, wire.Sample]]:
        return ((node, one) for node, one in self._read(start, end) if node in nodes and isinstance(one, wire.Sample))

    def recent_events(self, since: float, until: float) -> Iterator[tuple[str, wire.Event]]:
        return ((node, one) for node, one in self._read(since, until) if isinstance(one, wire.Event))

    def _read(self, since: float, until: float) -> Iterator[tuple[str, wire.Sample | wire.Event | wire.Bye]]:
        self.check()
        if self.is_unread:
            raise StoreError("the disk of the database is slow")
        told = [(node, one) for node, one in self.messages if not isinstance(one, wire.Hello)]
        return ((node, one) for node, one in sorted(told, key=lambda told: told[1].at) if since <= one.at <= until)

    def beat(self, replica: str, address: str, started_at: float) -> None:  # noqa: ARG002 - the store's
        self.check()
        self._beats[replica] = self._now()

    def members(self) -> list[Row]:
        self.check()
        return [Row(name, self._now() - at) for name, at in self._beats.items()]

    def leave(self, replica: str) -> None:
        self._beats.pop(replica, None)

    def check(self) -> None:
        if self.is_gone:
            raise StoreError("the database is gone")


class Hold:
    """The lease, as one replica sees it."""

    def __init__(self, truth: Truth, me: str) -> None:
        self._truth, self._me = truth, me

    def try_take(self) -> bool:
        self._truth.check()
        self._truth.holder = self._truth.holder or self._me
        return self._truth.holder == self._me

    def is_held(self) -> bool:
        return not self._truth.is_gone and self._truth.holder == self._me

    def release(self) -> None:
        if self._truth.holder == self._me:
            self._truth.holder = None


class Unreachable:
    """The lease of one that cannot reach PostgreSQL."""

    def try_take(self) -> bool:
        raise OSError("no route")

    def is_held(self) -> bool:
        raise OSError("no route")

    def release(self) -> None:
        """Nothing is held."""


class Line:
    """NATS as one replica sees it: what it says waits until the test lets it arrive."""

    def __init__(self) -> None:
        self.is_connected = True
        self.problem: str | None = None
        self.said: list[bytes] = []

    def publish(self, envelope: Envelope) -> None:
        if self.is_connected:
            self.said.append(encode(envelope))

    async def last_word(self, envelope: Envelope) -> None:
        self.publish(envelope)


class Channels:
    """Those of a replica, as far as it tells of them."""

    def __init__(self) -> None:
        self.heard: list[wire.ChannelState] = []
        self.retried: list[str] = []

    def status(self) -> list[wire.ChannelState]:
        return []

    def hear(self, states: Sequence[wire.ChannelState]) -> None:
        self.heard += states

    async def retry(self, name: str) -> bool:
        self.retried.append(name)
        return True


class Server:
    """One replica."""

    def __init__(self, name: str, truth: Truth, now: float, bus: Bus | None = None) -> None:
        self.house = House(now=now)
        self.name = name
        self.truth = truth
        self.is_dead = False
        self.service = self.house.service
        self.line, self.channels = Line(), Channels()
        self.house.journal = Journal(truth, _call, self.service.tell, flush_seconds=5.0)
        self.service.attach(self.house.journal)
        world = World(
            truth=truth,
            ask_truth=_call,
            history=truth,
            ask_history=_call,
            table=truth,
            ask_table=_call,
            lease=Hold(truth, name),
            ask_lease=_call,
            bus=bus or self.line,
            channels=self.channels,
            told=len(truth.transitions),
            stored_within=1.0,
            steady=lambda: self.house.now,
        )
        self.replica = Replica(name, name, self.service, world)
        self.chorus, self.doors, self.keeping = self.replica.chorus, self.replica.doors, self.replica.keeping
        self.replica.hearing.on_connect()

    async def second(self) -> None:
        await self.replica.rolls.beat()
        await self.replica.leadership.look()
        self.keeping.tick()
        await self.house.journal.flush()
        await self.keeping.follow()
        await self.replica.gaps.fill()
        self.service.beat()
        await self.house.journal.flush()

    def firing(self) -> dict[str, str]:
        """Ids of the alerts that its browsers see fire, by node."""
        return {one.labels["node"]: one.id for one in self.service.board.open() if one.state == "firing"}


class Trio:
    """`step` lets seconds pass; each second what was said arrives at those that live."""

    def __init__(self, names: str = "abc") -> None:
        self.now = START
        self.truth = Truth(lambda: self.now)
        self.servers = {name: Server(name, self.truth, START) for name in names}
        self.seqs: dict[str, int] = {}
        self.step(8)

    def __getitem__(self, name: str) -> Server:
        return self.servers[name]

    def alive(self) -> list[Server]:
        return [one for one in self.servers.values() if not one.is_dead]

    def connect(self, node: str, to: str, *, session: str = "s1") -> tuple[Session, Agent]:
        """Raises RefusalError."""
        house = self[to].house
        stored = self.truth.progress.get((node, session), 0)
        known = house.service.roster.known(hello(node, session=session)) is not None
        agent = Agent()
        greeting = hello(node, session=session, sent_at=self.now)
        return house.service.reception.admit(greeting, agent, 0 if known else stored), agent

    def say(self, session: Session, used_gib: float, to: str) -> None:
        seq = self.seqs[session.session + session.node] = self.seqs.get(session.session + session.node, 0) + 1
        self[to].service.reception.take(session, sample(seq, used_gib, self.now))

    def arrive(self) -> None:
        """What was said arrives; what that leads to as well."""
        said = True
        while said:
            said = False
            for server in self.alive():
                sent, server.line.said = server.line.said, []
                for other in self.alive() if server.line.is_connected else ():
                    if other is not server and other.line.is_connected:
                        for payload in sent:
                            envelope = decode(payload)
                            assert envelope is not None
                            other.replica.hearing.hear(envelope)
                            said = True

    def step(self, seconds: int = 1, each: Callable[[], Any] = lambda: None) -> None:
        for _ in range(seconds):
            self.now += 1
            for server in self.alive():
                server.house.now = self.now
            each()
            self.arrive()
            for server in self.alive():
                asyncio.run(server.second())
            self.arrive()

    def kill(self, name: str) -> None:
        self[name].is_dead = True
        if self.truth.holder == name:
            self.truth.holder = None

    def told(self, name: str) -> list[tuple[str, str]]:
        """What would go to the channels of a replica."""
        return [(one.labels["node"], one.state) for one in self[name].house.channels.offered]

    def stored(self) -> list[tuple[str, str]]:
        return [(one.labels["node"], one.state) for one in self.truth.transitions if one.change == "state"]

    def leader(self) -> str | None:
        leading = [one.name for one in self.alive() if one.replica.leadership.leads]
        assert len(leading) <= 1, leading
        return leading[0] if leading else None


async def _call(fn: Callable[..., Any], *arguments: object) -> object:
    await asyncio.sleep(0)
    return fn(*arguments)
