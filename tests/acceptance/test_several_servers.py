"""Three servers, a load balancer, PostgreSQL and NATS, as at a site; each is killed in turn while alerts come and go.

Nothing is lost, nothing is told twice, every browser sees the same, and /readyz says how things stand.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.acceptance.crowd import (
    FREE_GIB,
    FULL_GIB,
    STAND_IN,
    Browser,
    Crowd,
    StandInAgent,
    delivered,
    drop_cut_connections,
    real_agent,
)
from tests.acceptance.several import START_SECONDS, Replica, Several, balancing, three_servers, within
from tests.server.receiver import Receiver

NODES = tuple(f"{STAND_IN}{number:02}" for number in range(12))
NEWER = NODES[-1]  # its agent is of the next version
TRAINING, DYING = "real-healthy", "real-oom"  # nodes of real agents, whose training is simulated
# From a blow to every browser seeing the same: ten seconds are promised, and printed what it took; a busy machine gets
# three times that.
WHOLE_SECONDS = 30.0


class Site:
    """All of it."""

    def __init__(self, receiver: Receiver, servers: Several) -> None:
        self.receiver = receiver
        self.replicas, self.postgres, self.nats, self.db = servers
        self.full: set[str] = set()
        self.crowd: Crowd[Browser]

    def fill(self, *nodes: str) -> None:
        self._use(nodes, FULL_GIB)
        self.full |= set(nodes)

    def empty(self, *nodes: str) -> None:
        self._use(nodes, FREE_GIB)
        self.full -= set(nodes)

    def _use(self, nodes: tuple[str, ...], used_gib: float) -> None:
        for node in nodes:
            self.crowd.agents[node].used_gib = used_gib

    def is_whole(self) -> bool:
        """Every browser sees that the same alerts fire, of the nodes that are full."""
        seen = [browser.firing() for browser in self.crowd.browsers if browser.replica.program.running]
        return all(one == seen[0] and set(one) == self.full for one in seen)

    def explain(self) -> object:
        seen = {one.replica.name: sorted(one.firing().items()) for one in self.crowd.browsers}
        doors = {one.node: (one.is_connected, one.connects, one.refused[-1:]) for one in self.crowd.agents.values()}
        return {"full": sorted(self.full), "seen": seen, "agents": doors, "told": delivered(self.receiver)}

    def be_whole(self, after: str) -> None:
        took = within(WHOLE_SECONDS, f"all browsers see the same after {after}", self.is_whole, self.explain)
        print(f"after {after}: whole in {took:.1f} s")

    def all_are_told(self, status: str, *nodes: str) -> None:
        look = lambda: all(delivered(self.receiver)[node, status] for node in nodes)  # noqa: E731
        within(START_SECONDS, f"{nodes} are told {status}", look, self.explain)

    def leader(self) -> Replica:
        leaders: list[Replica] = []

        def look() -> bool:
            leaders[:] = [
                one for one in self.replicas if one.program.running and one.metric("oomwatch_cluster_leader") == 1
            ]
            return len(leaders) == 1

        within(START_SECONDS, "one replica leads", look)
        return leaders[0]

    def stored(self) -> list[tuple[str, str, str, int]]:
        """(node, id, state, how often) of what was stored of alerts' states."""
        with psycopg.connect(self.db) as connection:
            return connection.execute(
                "SELECT node, id, state, count(*) FROM transitions WHERE change = 'state' AND node LIKE 'gpu-%' "
                "GROUP BY node, id, state ORDER BY node, min(seq)"
            ).fetchall()


@pytest.fixture
def site(tmp_path: Path, receiver: Receiver) -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        stack.callback(drop_cut_connections)
        made = Site(receiver, stack.enter_context(three_servers(tmp_path, receiver.url)))
        port = stack.enter_context(balancing(tmp_path, made.replicas))
        made.crowd = Crowd(
            {node: StandInAgent(node, f"ws://127.0.0.1:{port}", is_newer=node == NEWER) for node in NODES},
            [Browser(replica) for replica in made.replicas],
        )
        stack.enter_context(made.crowd.busy())
        for node, scenario, speed in ((TRAINING, "healthy", 20.0), (DYING, "oom", 8.0)):
            stack.callback(real_agent(node, port, scenario, speed, tmp_path).kill)
        connected = lambda: all(one.is_connected for one in made.crowd.agents.values())  # noqa: E731
        within(START_SECONDS, "all are connected", connected)
        yield made
        del made.crowd


@pytest.mark.acceptance
def test_nothing_is_lost_or_doubled_whatever_is_killed(site: Site) -> None:
    agents = site.crowd.agents
    leader = site.leader()
    everyone = (*NODES, TRAINING, DYING)
    within(START_SECONDS, "each knows every node", lambda: all(one.knows(everyone) for one in site.replicas))
    site.fill(*NODES[:3])
    site.be_whole("three cards filled up")
    site.all_are_told("firing", *NODES[:3])
    within(WHOLE_SECONDS, "nothing is amiss", lambda: all(one.ready() == (200, []) for one in site.replicas))

    # A server, the one that delivers, while cards fill up and one is free again.
    leader.program.kill()
    site.fill(*NODES[3:6])
    site.empty(NODES[0])
    site.be_whole("a server was killed")
    site.all_are_told("firing", *NODES[3:6])
    site.all_are_told("resolved", NODES[0])
    leader.start()
    within(
        START_SECONDS, "it is back", lambda: leader.ready()[0] == 200, lambda: (leader.ready(), leader.program.output)
    )
    site.be_whole("it was started again")

    # PostgreSQL: people are told all the same, and it is said.
    site.postgres.stop("immediate")
    site.fill(NODES[6])
    site.be_whole("PostgreSQL was stopped")
    site.all_are_told("firing", NODES[6])
    look = lambda: all(any("database" in one for one in replica.ready()[1]) for replica in site.replicas)  # noqa: E731
    within(WHOLE_SECONDS, "each says that the database is gone", look)
    started_without = next(one for one in site.replicas if one is not site.leader())
    started_without.program.kill()
    started_without.start()
    look = lambda: any("waits for it" in one for one in started_without.ready()[1])  # noqa: E731
    within(START_SECONDS, "one that is started meanwhile says that it waits", look)
    site.postgres.start()
    within(START_SECONDS, "nothing is amiss", lambda: all(one.ready() == (200, []) for one in site.replicas))

    # NATS.
    site.nats.kill()
    site.fill(NODES[7])
    site.be_whole("NATS was killed")
    site.all_are_told("firing", NODES[7])
    look = lambda: all(any("NATS" in one for one in replica.ready()[1]) for replica in site.replicas)  # noqa: E731
    within(WHOLE_SECONDS, "each says that NATS is gone", look)
    site.nats.start()
    within(START_SECONDS, "nothing is amiss", lambda: all(one.ready() == (200, []) for one in site.replicas))
    site.be_whole("NATS was started again")

    site.empty(*site.full)
    site.be_whole("all are free")
    site.all_are_told("resolved", *NODES[:8])
    assert delivered(site.receiver) == {(node, status): 1 for node in NODES[:8] for status in ("firing", "resolved")}
    within(WHOLE_SECONDS, "all is stored", lambda: len(site.stored()) == 16)
    assert [(node, state, count) for node, _, state, count in site.stored()] == [
        (node, state, 1) for node in NODES[:8] for state in ("firing", "resolved")
    ]
    assert len({alert for _, alert, _, _ in site.stored()}) == 8
    within(START_SECONDS, "all that agents said is stored", lambda: all(len(a._outbox) < 12 for a in agents.values()))
    _no_step_is_lost(site)
    _each_has_the_reports(site)
    assert [one.metric("oomwatch_cluster_envelopes_total", outcome="malformed") for one in site.replicas] == [0, 0, 0]


def _no_step_is_lost(site: Site) -> None:
    """Of the real training, whoever its agent was connected to."""
    (run,) = (one["run"] for one in site.replicas[0].get("/api/v1/runs") if TRAINING in one["nodes"])
    steps = [one["step"]["step"] for one in site.replicas[1].get(f"/api/v1/runs/{run}/steps")]
    assert len(steps) > 10
    assert steps == list(range(steps[0], steps[0] + len(steps)))


def _each_has_the_reports(site: Site) -> None:
    """Of what ran out of memory, whoever led when it did."""
    found: list[list[str]] = []

    def look() -> bool:
        found[:] = [[one["id"] for one in replica.get("/api/v1/incidents")] for replica in site.replicas]
        return bool(found[0]) and found[0] == found[1] == found[2]

    within(START_SECONDS, "each has the reports of what ran out of memory", look, lambda: found)
