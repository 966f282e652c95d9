"""The line between replicas, over a real NATS."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.nats.server import NatsServer, nats_running

from oomwatch.cluster.bus import Bus
from oomwatch.cluster.envelope import Envelope, Gone, Pulse, Stored

DEADLINE_SECONDS = 30.0


async def until(what: str, look: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + DEADLINE_SECONDS
    while not look():
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain for {what}"
        await asyncio.sleep(0.01)  # between two looks, never instead of one


class Replica:
    def __init__(self, name: str, url: str, site: str = "here") -> None:
        self.heard: list[Envelope] = []
        self.connects = 0
        self.bus = Bus(url, site, name)
        self.task = asyncio.ensure_future(self.bus.run(self.heard.append, self._note))

    def _note(self) -> None:
        self.connects += 1

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def story(folder: Path, tell: Callable[[NatsServer], "asyncio.Future[None] | object"]) -> None:
    with nats_running(folder) as server:
        asyncio.run(tell(server))  # type: ignore[arg-type]


def test_each_hears_the_others_and_not_itself_nor_another_site(tmp_path: Path) -> None:
    async def tell(server: NatsServer) -> None:
        a, b, other = Replica("a", server.url), Replica("b", server.url), Replica("c", server.url, "elsewhere")
        await until("all to connect", lambda: a.bus.is_connected and b.bus.is_connected and other.bus.is_connected)
        a.bus.publish(Stored(replica="a"))
        await until("b to hear", lambda: b.heard == [Stored(replica="a")])
        assert a.heard == other.heard == []
        await a.bus.last_word(Gone(replica="a"))
        await until("b to hear the goodbye", lambda: b.heard[1:] == [Gone(replica="a")])
        for one in (a, b, other):
            await one.stop()

    story(tmp_path, tell)


def test_a_killed_nats_is_missed_and_found_again_and_what_waited_is_sent(tmp_path: Path) -> None:
    async def tell(server: NatsServer) -> None:
        a, b = Replica("a", server.url), Replica("b", server.url)
        await until("both to connect", lambda: a.bus.is_connected and b.bus.is_connected)
        server.kill()
        await until("both to miss it", lambda: a.bus.problem is not None and b.bus.problem is not None)
        a.bus.publish(Stored(replica="a"))
        a.bus.publish(Pulse(replica="a", sent_at=1.0, started_at=1.0))
        assert a.bus.waiting() == 1  # what tells of now alone is not kept
        await asyncio.to_thread(server.start)
        await until("both to be back", lambda: (a.connects, b.connects) == (2, 2))
        await until("what waited to be sent", lambda: (a.bus.sent_total, a.bus.waiting()) == (1, 0))
        assert a.bus.problem is b.bus.problem is None
        a.bus.publish(Gone(replica="a"))
        await until("b to hear what comes next", lambda: Gone(replica="a") in b.heard)
        assert b.heard in ([Gone(replica="a")], [Stored(replica="a"), Gone(replica="a")])  # who was back first?
        for one in (a, b):
            await one.stop()

    story(tmp_path, tell)


def test_without_nats_a_bounded_queue_waits(tmp_path: Path) -> None:
    async def tell(server: NatsServer) -> None:
        server.kill()
        a = Replica("a", server.url)
        await until("it to say why", lambda: a.bus.problem not in (None, "not connected yet"))
        for _ in range(20_010):
            a.bus.publish(Stored(replica="a"))
        assert (a.bus.waiting(), a.bus.dropped_total) == (20_000, 10)
        await a.stop()

    story(tmp_path, tell)
