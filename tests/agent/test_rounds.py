"""Who takes a sample: the thread that looks, while all is well; the event loop where that would be stuck."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

from oomwatch import wire
from oomwatch_agent.looker import Looker, Paces
from oomwatch_agent.pace import Pace
from oomwatch_agent.rounds import Rounds
from oomwatch_agent.sampler import Collected, Sampler
from oomwatch_agent.source import Reading, Sight, Source

GIB = 1024**3
DEADLINE_SECONDS = 20.0
LOOKS = "oomwatch looks"  # a thread's name


class Card:
    """One that can be looked at; to read it hangs while its gate is shut, as it is by itself where it `takes_long`."""

    name = "card"
    looks_an_interval = 4

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.takes_long = False
        self.eyes = threading.Event()  # a look hangs until it is set
        self.eyes.set()
        self.looks = 0
        self.readers: list[tuple[bool, str]] = []  # slow or not, and the thread

    def open(self) -> wire.NodeFacts:
        return wire.NodeFacts(gpus=(wire.GpuFacts(gpu="0", uuid="GPU-0", name="H100", total_bytes=80 * GIB),))

    def read(self, *, slow: bool) -> Reading:
        self.readers.append((slow, threading.current_thread().name))
        if self.takes_long:
            self.gate.clear()
        assert self.gate.wait(DEADLINE_SECONDS)
        return Reading(gpus=(wire.GpuSample(gpu="0", used_bytes=GIB),))

    def read_by(self, thread: str) -> int:
        """How often."""
        return sum(name == thread for _, name in self.readers)

    def look(self) -> list[Sight]:
        self.looks += 1
        assert self.eyes.wait(DEADLINE_SECONDS)
        return [Sight("0", GIB, 80 * GIB)]

    def close(self) -> None:
        pass


class Host:
    """Always answers."""

    name = "host"

    def open(self) -> wire.NodeFacts:
        return wire.NodeFacts(host=wire.HostFacts(memory_total_bytes=100 * GIB))

    def read(self, *, slow: bool) -> Reading:  # noqa: ARG002 - the seam's
        return Reading(host=wire.HostSample(memory_used_bytes=GIB))

    def close(self) -> None:
        pass


class Agent:
    """Rounds over a card and a host, and the samples that they gave."""

    def __init__(self, interval_seconds: float) -> None:
        self.card = Card()
        self.taken: list[Collected] = []
        sources: list[Source] = [self.card, Host()]
        self._looker = Looker(sources, Paces(interval_seconds, interval_seconds / 10), self._hurry)
        self._sampler = Sampler(sources, answer_within_seconds=0.4 * interval_seconds, looker=self._looker)
        self.rounds = Rounds(
            self._sampler,
            self._looker,
            Pace("n1", interval_seconds, slow_seconds=5 * interval_seconds),
            answer_within_seconds=0.4 * interval_seconds,
            may_be_slow=lambda: True,
            take_in=self._take_in,
        )

    def _take_in(self, collected: Collected) -> None:
        self.taken.append(collected)
        if self.card.takes_long and not collected.sample.gpus:  # the sample has gone without it
            self.card.gate.set()

    def _hurry(self) -> None:
        self.rounds.hurry()

    def close(self) -> None:
        self.card.gate.set()
        self.card.eyes.set()
        self._sampler.close()


async def _until(condition: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not condition():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.005)

    await asyncio.wait_for(poll(), DEADLINE_SECONDS)


def _run(story: Callable[[Agent], Awaitable[None]], *, interval_seconds: float = 0.1) -> None:
    async def run() -> None:
        agent = Agent(interval_seconds)
        await agent.rounds.begin(DEADLINE_SECONDS)
        running = asyncio.create_task(agent.rounds.run())
        try:
            await story(agent)
        finally:
            agent.rounds.stop()
            await running
            agent.close()

    asyncio.run(run())


def test_while_all_is_well_the_thread_that_looks_reads_the_sources() -> None:
    async def story(agent: Agent) -> None:
        await _until(lambda: agent.card.read_by(LOOKS) >= 3)
        await _until(lambda: len(agent.taken) >= 4)

    _run(story)


def test_a_source_that_takes_long_each_time_is_read_by_another_thread_and_costs_the_one_that_looks_twice() -> None:
    async def story(agent: Agent) -> None:
        await _until(lambda: agent.card.read_by(LOOKS) > 0)
        begun = len(agent.card.readers) + 1  # of one it may have asked itself already whether it takes long
        agent.card.takes_long = True
        await _until(lambda: len(agent.card.readers) >= begun + 6)
        assert LOOKS not in [name for _, name in agent.card.readers[begun + 2 :]]
        agent.card.takes_long = False

    _run(story)


def test_where_that_thread_is_stuck_samples_go_on_and_another_one_looks() -> None:
    async def story(agent: Agent) -> None:
        await _until(lambda: agent.card.read_by(LOOKS) > 0)
        agent.card.gate.clear()
        taken, looks = len(agent.taken), agent.card.looks
        await _until(lambda: len(agent.taken) >= taken + 4)
        assert all(collected.sample.host is not None for collected in agent.taken[taken:])
        assert agent.taken[-1].sample.gpus == ()
        await _until(lambda: agent.card.looks > looks + 1)
        read = agent.card.read_by(LOOKS)
        agent.card.gate.set()
        await _until(lambda: agent.card.read_by(LOOKS) > read)

    _run(story)


def test_where_looks_alone_hang_samples_go_on_and_threads_do_not_pile_up() -> None:
    async def story(agent: Agent) -> None:
        await _until(lambda: agent.card.read_by(LOOKS) > 0)
        agent.card.eyes.clear()
        taken, looks = len(agent.taken), agent.card.looks
        await _until(lambda: len(agent.taken) >= taken + 10)
        assert agent.card.looks <= looks + 2, "each is of a thread that is lost"

    _run(story)


def test_slow_reads_are_not_for_the_thread_that_looks() -> None:
    async def story(agent: Agent) -> None:
        await _until(lambda: sum(slow for slow, _ in agent.card.readers) >= 3)
        assert LOOKS not in {name for slow, name in agent.card.readers if slow}, "it would be kept from its looks"

    _run(story)


def test_what_cannot_wait_is_read_at_once() -> None:
    async def story(agent: Agent) -> None:
        taken = len(agent.taken)
        await asyncio.to_thread(agent.rounds.hurry)
        await _until(lambda: len(agent.taken) == taken + 1)  # long before the next one is due

    _run(story, interval_seconds=3600.0)


def test_a_stopped_one_takes_nothing_in() -> None:
    async def story(agent: Agent) -> None:
        agent.rounds.stop()
        taken = len(agent.taken)
        await asyncio.to_thread(agent.rounds.hurry)
        assert len(agent.taken) == taken

    _run(story)
