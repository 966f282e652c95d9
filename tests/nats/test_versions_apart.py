"""During a rolling upgrade: one replica is newer, says things that the others do not know, and all go on together."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
from tests.cluster.trio import Server, Truth
from tests.nats.server import NatsServer, nats_running
from tests.server.house import START, Agent, hello, sample

import nats
from oomwatch.cluster.bus import Bus
from oomwatch.cluster.envelope import Envelope, encode

FULL, FREE = 79.0, 10.0
DEADLINE_SECONDS = 30.0


def newer(envelope: Envelope) -> bytes:
    """As the next version will put it: with more in everything that can hold more."""
    told = msgspec.msgpack.decode(encode(envelope))
    return msgspec.msgpack.encode(_with_more(told))


def _with_more(told: Any) -> Any:
    if isinstance(told, list):
        return [_with_more(one) for one in told]
    if not isinstance(told, dict):
        return told
    plain = {key: value if key in ("labels", "texts", "facts") else _with_more(value) for key, value in told.items()}
    return plain if set(told) <= {"en", "zh"} else {**plain, "since_next_version": {"deep": [1, 2]}}


class Site:
    """Three servers on a real NATS; the database and time are the test's own."""

    def __init__(self, url: str) -> None:
        self.now = START
        self.truth = Truth(lambda: self.now)
        self.buses = {name: Bus(url, "site", name, spell=newer if name == "c" else encode) for name in "abc"}
        self.servers = {name: Server(name, self.truth, START, bus) for name, bus in self.buses.items()}
        hearing = {name: one.replica.hearing for name, one in self.servers.items()}
        self.tasks = [
            asyncio.ensure_future(bus.run(hearing[name].hear, hearing[name].on_connect))
            for name, bus in self.buses.items()
        ]
        self.strange = 0  # envelopes that none of the three has sent

    async def until(self, what: str, look: Callable[[], bool]) -> None:
        deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS
        while not look():
            assert asyncio.get_running_loop().time() < deadline, f"waited in vain for {what}"
            await asyncio.sleep(0.005)  # between two looks, never instead of one

    async def arrive(self) -> None:
        """All that was said is heard."""
        await self.until("what was said to arrive", self._has_all_arrived)

    def _has_all_arrived(self) -> bool:
        sent = sum(bus.sent_total for bus in self.buses.values())
        heard = {name: bus.heard_total + bus.unknown_total for name, bus in self.buses.items()}
        return all(
            not bus.waiting() and heard[name] == sent - bus.sent_total + self.strange
            for name, bus in self.buses.items()
        )

    async def step(self, seconds: int, each: Callable[[], None] = lambda: None) -> None:
        for _ in range(seconds):
            self.now += 1
            for server in self.servers.values():
                server.house.now = self.now
            each()
            await self.arrive()
            for server in self.servers.values():
                await server.second()
            await self.arrive()

    def firing(self) -> list[list[str]]:
        return [list(self.servers[name].firing()) for name in "abc"]

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def on_site(tell: Callable[[Site, NatsServer], Coroutine[Any, Any, None]], folder: Path) -> None:
    async def story(server: NatsServer) -> None:
        site = Site(server.url)
        await site.until("all to connect", lambda: all(bus.is_connected for bus in site.buses.values()))
        await site.step(8)
        await tell(site, server)
        assert [bus.malformed_total + bus.defects_total for bus in site.buses.values()] == [0, 0, 0]
        await site.stop()

    with nats_running(folder) as server:
        asyncio.run(story(server))


async def fill_and_free(site: Site, node: str, door: str) -> None:
    """A card fills up and is free again, and all see the same of it."""
    reception = site.servers[door].service.reception
    session = reception.admit(hello(node, sent_at=site.now), Agent(), 0)
    seqs = iter(range(1, 100))

    def say(gib: float) -> None:
        reception.take(session, sample(next(seqs), gib, site.now))

    await site.step(4, lambda: say(FREE))
    await site.step(3, lambda: say(FULL))
    assert site.firing() == [[node]] * 3
    await site.step(14, lambda: say(FREE))
    assert site.firing() == [[]] * 3


def test_alerts_are_said_once_and_seen_everywhere_whether_the_door_is_newer_or_older(tmp_path: Path) -> None:
    async def tell(site: Site, _: NatsServer) -> None:
        await fill_and_free(site, "at-c", "c")
        await fill_and_free(site, "at-a", "a")
        told = [(one.labels["node"], one.state) for one in site.truth.transitions]
        assert told == [(node, state) for node in ("at-c", "at-a") for state in ("firing", "resolved")]

    on_site(tell, tmp_path)


def test_what_only_the_newer_one_knows_is_counted_and_disturbs_nobody(tmp_path: Path) -> None:
    async def tell(site: Site, server: NatsServer) -> None:
        strange = [
            {"type": "sung", "replica": "c", "song": [1, 2]},
            {**_said("n1"), "message": {"type": "smell", "seq": 1, "strength": 3}},
            {**_said("n1"), "message": {"type": "event", "seq": 2, "at": site.now, "body": {"kind": "coffee_empty"}}},
        ]
        client = await nats.connect(server.url)
        for one in strange:
            await client.publish("oomwatch.site.new", msgspec.msgpack.encode(one))
        await client.close()
        site.strange = 2  # c takes what bears its name for its own
        await site.until("both to hear it", lambda: site.buses["a"].unknown_total == site.buses["b"].unknown_total == 1)
        unknown = [site.servers[name].replica.abroad.unknown_total for name in "ab"]
        assert unknown == [2, 2]

    on_site(tell, tmp_path)


def _said(node: str) -> dict[str, object]:
    return {
        "type": "said",
        "replica": "c",
        "node": node,
        "session": "s",
        "seq": 1,
        "received_at": START,
        "claimed_at": START,
        "interval_seconds": 1.0,
    }
