"""A site under random blows, told stories by its agents, and held against what these demand.

Each node's card fills up and is free again, over and over. It stays so until every browser has seen it and the receiver
was told (what is over before anyone could be told is told once, docs/explanation/alerts.md), so that whatever is killed
meanwhile the story demands exactly one alert a time: stored once, told once that it fires and once that it is over.
"""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from tests.acceptance.crowd import FREE_GIB, FULL_GIB, Crowd, StandInAgent, Watcher
from tests.acceptance.several import within
from tests.chaos.agents import RealAgent
from tests.chaos.inbox import Inbox, inbox
from tests.chaos.sites import Blow, Row, Site, whole

STAND_INS, BROWSERS, REAL = 6, 3, 2
SEEN_SECONDS = 180.0  # from what an agent says to every browser seeing it, while blows fall on a busy machine
SHORTEST_SECONDS, LONGEST_SECONDS = 0.2, 4.0  # between two blows, and for which a card stays as it is once it is seen
LOOK_SECONDS = 0.1
FIRING, RESOLVED = "firing", "resolved"
Node = StandInAgent | RealAgent
Opening = Callable[[Path, str], AbstractContextManager[Site]]


class Timeline:
    """What was done and seen, to be read when something is amiss."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.lines: list[str] = []
        self.blows: Counter[str] = Counter()

    def add(self, text: str) -> None:
        self.lines.append(f"{time.monotonic() - self._began:7.2f}  {text}")


class Outcome(NamedTuple):
    """What was tried, and all that was not as it should be."""

    episodes: int
    blows: Counter[str]
    wrong: list[str]
    seconds: float

    def in_words(self) -> str:
        blows = ", ".join(f"{name} {count}" for name, count in sorted(self.blows.items()))
        tried = f"{self.episodes} episodes in {self.seconds:.0f} s, {self.blows.total()} blows ({blows})"
        return f"{tried}; wrong: {len(self.wrong)}"


class World(NamedTuple):
    site: Site
    inbox: Inbox
    crowd: Crowd[Watcher]
    nodes: dict[str, Node]
    blows: Sequence[Blow]

    def seen(self, node: str) -> list[set[str]]:
        """What each browser takes to be firing of a node: ids of alerts."""
        return [_firing(browser, node) for browser in self.crowd.browsers]

    def is_seen(self, node: str, *, full: bool) -> bool:
        """Whether every browser is connected and sees the node as it is."""
        connected = all(browser.is_connected for browser in self.crowd.browsers)
        return connected and all(len(one) == int(full) for one in self.seen(node))


def _firing(browser: Watcher, node: str) -> set[str]:
    alerts = list(browser.alerts.values())
    return {one["id"] for one in alerts if one["state"] == FIRING and one["labels"].get("node") == node}


@contextlib.contextmanager
def _world(folder: Path, library: Path | None, opening: Opening) -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        told = stack.enter_context(inbox())
        site = stack.enter_context(opening(folder, told.url))
        stand_ins = {name: StandInAgent(name, f"ws://127.0.0.1:{site.way.port}") for name in _names("gpu", STAND_INS)}
        real = (
            {} if library is None else {n: RealAgent(n, site.way.port, folder, library) for n in _names("real", REAL)}
        )
        for agent in real.values():
            stack.callback(agent.close)
        address = f"http://127.0.0.1:{site.way.port}"
        crowd = Crowd(stand_ins, [Watcher(address) for _ in range(BROWSERS)])
        stack.enter_context(crowd.busy())
        blows = [*site.blows, *_receiver_blows(told), *(blow for one in real.values() for blow in _agent_blows(one))]
        yield World(site, told, crowd, {**stand_ins, **real}, blows)


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind}-{number:02}" for number in range(count)]


def _receiver_blows(told: Inbox) -> Iterator[Blow]:
    yield Blow("receiver answers 500", "receiver", lambda: told.fail(on=True), lambda: told.fail(on=False), 5.0)
    yield Blow("receiver hangs", "receiver", lambda: told.hang(on=True), lambda: told.hang(on=False), 6.0)


def _agent_blows(agent: RealAgent) -> Iterator[Blow]:
    yield Blow("kill -9 an agent", agent.node, agent.kill, agent.start, 3.0)
    yield Blow("suspend an agent", agent.node, agent.pause, agent.go_on, 4.0)


class Run:
    """One run of a site. `chaos` gives the blows; `story` the lives of the nodes; the end is the model's."""

    def __init__(self, world: World, seed: int, seconds: float, timeline: Timeline) -> None:
        self._world = world
        self._seed = seed
        self._until = time.monotonic() + seconds
        self._timeline = timeline
        self._episodes: Counter[str] = Counter()
        self._failures: list[Exception] = []

    def go(self) -> list[str]:
        """What was wrong."""
        stories = [threading.Thread(target=self._guarded, args=(self._story, node)) for node in self._world.nodes]
        for story in stories:
            story.start()
        self._guarded(self._chaos)  # in this thread: a PostgreSQL ends with the thread that started it
        for story in stories:
            story.join()
        self._guarded(whole, self._world.site)
        return [repr(one) for one in self._failures] or self._checked()

    @property
    def episodes(self) -> int:
        return self._episodes.total()

    def _guarded(self, work: Callable[..., None], *arguments: object) -> None:
        try:
            work(*arguments)
        except Exception as error:
            self._timeline.add(f"FAILED: {error!r}")
            self._failures.append(error)
            self._until = 0.0

    def _goes_on(self) -> bool:
        return time.monotonic() < self._until

    def _chaos(self) -> None:
        """One blow after the other, now and then two at once."""
        dice, struck = random.Random(f"{self._seed} blows"), list[tuple[float, Blow]]()
        while self._goes_on() or struck:
            now = time.monotonic()
            for due_at, blow in [one for one in struck if one[0] <= now or not self._goes_on()]:
                self._timeline.add(f"mend: {blow.name}")
                blow.mend()
                struck.remove((due_at, blow))
            if self._goes_on() and len(struck) < 2:
                hurt = [known.place for _, known in struck]
                blow = dice.choice([one for one in self._world.blows if one.place not in hurt])
                self._timeline.add(f"blow: {blow.name}")
                self._timeline.blows[blow.name] += 1
                blow.strike()
                struck.append((time.monotonic() + dice.uniform(SHORTEST_SECONDS, blow.longest_seconds), blow))
            time.sleep(dice.uniform(SHORTEST_SECONDS, LONGEST_SECONDS))  # what is random here is the pause itself

    def _story(self, node: str) -> None:
        dice = random.Random(f"{self._seed} {node}")
        while self._goes_on():
            self._episodes[node] += 1
            for used_gib, is_full in ((FULL_GIB, True), (FREE_GIB, False)):
                self._world.nodes[node].used_gib = used_gib
                self._timeline.add(f"{node} is {'full' if is_full else 'free'}")
                seen = lambda is_full=is_full: self._world.is_seen(node, full=is_full)  # noqa: E731
                within(
                    SEEN_SECONDS, f"{node} is seen {'full' if is_full else 'free'}", seen, lambda: self._explained(node)
                )
                self._timeline.add(f"{node} is seen {'full' if is_full else 'free'}")
                place = (node, FIRING if is_full else RESOLVED)
                is_told = lambda place=place: self._world.inbox.told()[place] >= self._episodes[node]  # noqa: E731
                within(SEEN_SECONDS, f"the receiver is told {place}", is_told, lambda: self._explained(node))
                time.sleep(dice.uniform(SHORTEST_SECONDS, LONGEST_SECONDS))  # so long it stays so

    def _explained(self, node: str) -> object:
        browsers = self._world.crowd.browsers
        return {
            "seen": self._world.seen(node),
            "browsers connected": [one.is_connected for one in browsers],
            "servers": [(one.name, one.program.running and one.ready()) for one in self._world.site.servers],
            "stored": [row for row in self._world.site.rows() if row[0] == node][-4:],
        }

    def _checked(self) -> list[str]:
        """What the stories demand against what is stored and was told."""
        world, demanded = self._world, self._demanded()
        with contextlib.suppress(AssertionError):  # what is missing then is told below
            within(SEEN_SECONDS, "all is told", lambda: world.inbox.told() == demanded)
            within(SEEN_SECONDS, "all is stored", lambda: _counted(world.site.rows()) == demanded)
            within(SEEN_SECONDS, "all is seen", lambda: all(world.is_seen(node, full=False) for node in world.nodes))
        rows = world.site.rows()
        wrong = [f"told under one id, and not the same: {one}" for one in world.inbox.changed]
        wrong += _differences("told", world.inbox.told(), demanded) + _differences("stored", _counted(rows), demanded)
        wrong += [f"stored {count} times: {node} {alert} {state}" for node, alert, state, count in rows if count != 1]
        wrong += [f"a browser still sees {node} firing" for node in world.nodes if not world.is_seen(node, full=False)]
        return wrong

    def _demanded(self) -> Counter[tuple[str, str]]:
        return Counter({(node, state): count for node, count in self._episodes.items() for state in (FIRING, RESOLVED)})


def _counted(rows: Sequence[Row]) -> Counter[tuple[str, str]]:
    """How many alerts of each node reached each state."""
    return Counter((node, state) for node, _, state, _ in rows if state in (FIRING, RESOLVED))


def _differences(what: str, found: Counter[tuple[str, str]], demanded: Counter[tuple[str, str]]) -> list[str]:
    places = sorted({*found, *demanded})
    return [
        f"{what}: {node} {state} {found[node, state]} times, demanded {demanded[node, state]}"
        for node, state in places
        if found[node, state] != demanded[node, state]
    ]


def chaos(
    folder: Path, opening: Opening, *, seed: int, seconds: float, library: Path | None
) -> tuple[Outcome, Timeline]:
    """Blows on a site for so long, and what became of it."""
    timeline, began = Timeline(), time.monotonic()
    with _world(folder, library, opening) as world:
        agents = world.crowd.agents.values()
        within(SEEN_SECONDS, "all are connected", lambda: all(one.is_connected for one in agents))
        run = Run(world, seed, seconds, timeline)
        wrong = run.go()
    return Outcome(run.episodes, timeline.blows, wrong, time.monotonic() - began), timeline
