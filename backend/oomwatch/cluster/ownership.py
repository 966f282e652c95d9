"""PURE: who speaks for what. A node's door does; for one whose door is dead, the replica that a hash picks."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2s
from typing import NamedTuple

LEADER = ""  # the home of what belongs to no node


class Door(NamedTuple):
    replica: str
    since: float  # when the latest that it heard of the node was received, in Unix seconds


class Doors:
    """The replica that each node's agent is connected to, or was last."""

    def __init__(self) -> None:
        self._doors: dict[str, Door] = {}

    def learn(self, node: str, replica: str, received_at: float) -> bool:
        """A replica has heard the node. False: that was before another did, and says nothing any more."""
        known = self._doors.get(node)
        if known is not None and known.replica != replica and received_at < known.since:
            return False
        self._doors[node] = Door(replica, received_at)
        return True

    def of(self, node: str) -> str | None:
        door = self._doors.get(node)
        return None if door is None else door.replica

    def forget(self, node: str) -> None:
        self._doors.pop(node, None)

    def behind(self, replica: str) -> list[str]:
        """The nodes whose agents are connected to it."""
        return [node for node, door in self._doors.items() if door.replica == replica]


def owner(home: str, doors: Doors, alive: Sequence[str], leader: str | None) -> str | None:
    """Who speaks for a home: a node, or LEADER. None: nobody knows."""
    if home == LEADER:
        return leader
    door = doors.of(home)
    return door if door in alive else picked(home, alive)


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
