"""PURE: who speaks for what. A node's door does; for one whose door is dead, the replica that a hash picks."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2s
from typing import NamedTuple

LEADER = ""  # the home of what belongs to no node
ELSEWHERE = "?"  # the door of an agent that has gone to some other replica; no replica has this name
LISTEN_SECONDS = 5.0  # every agent says something each second, and its door passes it on
AFTER_SECONDS = 0.001  # a claim that follows upon another is by so much the later one, whatever the clocks say


class Door(NamedTuple):
    replica: str
    at: float  # when the latest that it heard of the node was received, in Unix seconds, or later: see `Doors.claim`


class Doors:
    """The replica that each node's agent is connected to, or was last.

    Which of two heard an agent last their clocks tell, which may differ. So whoever hears it itself after another did
    says of it a time that is later than any that it knows.
    """

    def __init__(self) -> None:
        self._doors: dict[str, Door] = {}
        self._listens_since: float | None = None  # a node's door may be one that we have not heard yet

    def claim(self, node: str, me: str, received_at: float) -> float:
        """The agent itself has said something here. Gives the time that counts."""
        known = self._doors.get(node)
        if known is not None:
            received_at = max(received_at, known.at if known.replica == me else known.at + AFTER_SECONDS)
        self._doors[node] = Door(me, received_at)
        return received_at

    def learn(self, node: str, replica: str, at: float) -> bool:
        """Another replica claims to have heard the node. False: before one did that we know of; it counts no more."""
        known = self._doors.get(node)
        if known is not None and known.replica != replica and at <= known.at:
            return False
        self._doors[node] = Door(replica, at)
        return True

    def of(self, node: str) -> str | None:
        door = self._doors.get(node)
        return None if door is None else door.replica

    def let_go(self, node: str) -> None:
        """Its agent has gone to another replica, and which one is not known until that one says so."""
        known = self._doors.get(node)
        self._doors[node] = Door(ELSEWHERE, known.at if known is not None else 0.0)

    def listen(self, now: float) -> None:
        """From now on the others are heard: whoever has an agent that went elsewhere can say so.

        Where nobody does, one is picked. `now` is of a clock that nobody sets.
        """
        self._doors = {node: door for node, door in self._doors.items() if door.replica != ELSEWHERE}
        self._listens_since = now

    def has_listened(self, now: float) -> bool:
        """Whether every door had the time to be heard."""
        return self._listens_since is not None and now - self._listens_since >= LISTEN_SECONDS


def owner(node: str, doors: Doors, alive: Sequence[str]) -> str | None:
    """Who speaks for a node. None: nobody knows."""
    door = doors.of(node)
    if door == ELSEWHERE:
        return None
    return door if door in alive else picked(node, alive)


def picked(home: str, replicas: Iterable[str]) -> str | None:
    """Rendezvous hashing: where one replica goes, what others were picked for stays."""
    return max(replicas, key=lambda replica: (_weight(replica, home), replica), default=None)


def _weight(replica: str, home: str) -> bytes:
    return blake2s(f"{replica}\n{home}".encode(), digest_size=8).digest()


def home_of(labels: Mapping[str, str], nodes_of_run: Mapping[str, Iterable[str]]) -> str:
    """The node whose speaker speaks for an alert with these labels: its own, or the first one of its run."""
    node = labels.get("node")
    if node is not None:
        return node
    return min(nodes_of_run.get(labels.get("run", ""), ()), default=LEADER)
