"""Which of what this replica finds it says, and which words of the others it has heard (service.seams.Chorus)."""

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Sequence

from oomwatch import wire
from oomwatch.cluster.floor import HANDOVER_SECONDS, Floor
from oomwatch.cluster.members import Members
from oomwatch.cluster.ownership import LEADER, Doors, home_of, owner
from oomwatch.cluster.unspoken import Unspoken
from oomwatch.core.fleet import Fleet
from oomwatch.letters import TransitionKey, key_of

KNOWN_KEPT = 100_000  # transitions: of a thousand cards some hours, and what is read again is of seconds
KEPT_BACK = ("state", "severity", "outcome")  # what is said once, and so must not get lost with its speaker


class Chorus:
    """`leader` says who leads; `steady` is a clock that nobody sets. Use from the event loop."""

    def __init__(
        self,
        fleet: Fleet,
        members: Members,
        doors: Doors,
        leader: Callable[[], str | None],
        steady: Callable[[], float],
    ) -> None:
        self._fleet = fleet
        self._members = members
        self._doors = doors
        self._leader = leader
        self._steady = steady
        self._floor = Floor()
        self._unspoken = Unspoken()
        self._known: OrderedDict[TransitionKey, None] = OrderedDict()

    # ------------------------------------------------------------ the service's side

    def ours(self, found: Sequence[wire.Transition]) -> list[wire.Transition]:
        """What is ours to say at once. Mutes and acts of others' alerts are theirs to find, and are dropped."""
        alive = self._members.alive(self._steady())
        ours = []
        for one in found:
            if self._is_ours(self._home_of(one.labels), alive):
                ours.append(one)
            elif one.change in KEPT_BACK:
                self._unspoken.put(one)
        return ours

    def said(self, transitions: Sequence[wire.Transition]) -> None:
        self._remember(transitions)

    def stood_still(self) -> None:
        self._floor.yield_all()

    def awaited(self, shown: Iterable[wire.Alert], here: Container[str]) -> set[str]:
        foreign = [one for one in shown if one.state == "firing" and one.id not in here]
        return {one.id for one in foreign if not self.speaks_for(one.labels)} | self._unspoken.ids()

    # ------------------------------------------------------------ the others' side

    def news(self, words: Iterable[wire.Transition]) -> list[wire.Transition]:
        """Those of these words that we have neither said nor heard; from now on we have."""
        new = [word for word in words if key_of(word) not in self._known]
        self._remember(new)
        for word in new:
            self._unspoken.hear(word)
        return new

    def _remember(self, transitions: Iterable[wire.Transition]) -> None:
        self._known.update(dict.fromkeys(map(key_of, transitions)))
        while len(self._known) > KNOWN_KEPT:
            self._known.popitem(last=False)

    # ------------------------------------------------------------ the floor

    def review(self, at: float) -> None:
        """Once a second; `at` in Unix seconds."""
        self._unspoken.expire(at)
        now = self._steady()
        alive = self._members.alive(now)
        homes = [LEADER, *self._fleet.nodes]
        self._floor.review(homes, lambda home: self._owner(home, alive) == self._members.me, now)

    @property
    def is_waiting(self) -> bool:
        """Whether something has come to us that is yet to be read of."""
        return self._floor.is_waiting

    def counts(self) -> tuple[int, int]:
        """How many homes we speak for, and how many transitions wait for another's word."""
        return len(self._floor), len(self._unspoken)

    def due(self, waited_seconds: float = HANDOVER_SECONDS) -> list[str]:
        """Homes that came to us, and are to be read of."""
        return self._floor.due(self._steady(), waited_seconds=waited_seconds)

    def has_overdue(self, now: float) -> bool:
        """Whether something was found a while ago that is ours to say by now, and nobody has said. Unix seconds."""
        return self._unspoken.has_any(lambda one: self.speaks_for(one.labels), now - HANDOVER_SECONDS)

    def take(self, homes: Sequence[str], shown: Iterable[wire.Alert], here: Container[str]) -> "Turn":
        """Everything that was said of these homes is known by now."""
        ours = dict.fromkeys(self._floor.take(homes))
        found = self._unspoken.take(lambda one: self._home_of(one.labels) in ours or self.speaks_for(one.labels))
        awaited = {one.id for one in found}
        orphans = [
            one
            for one in shown
            if one.state == "firing"
            and one.id not in here
            and one.id not in awaited
            and self._home_of(one.labels) in ours
        ]
        return found, orphans

    def speaks_for(self, labels: dict[str, str]) -> bool:
        return self._is_ours(self._home_of(labels), self._members.alive(self._steady()))

    def _home_of(self, labels: dict[str, str]) -> str:
        run = self._fleet.runs.get(labels.get("run", "")) if "node" not in labels else None
        home = home_of(labels, {run.name: run.nodes} if run is not None else {})
        return home if home in self._fleet.nodes else LEADER

    def _owner(self, home: str, alive: Sequence[str]) -> str | None:
        if home == LEADER:
            return self._leader()
        if self._doors.of(home) is None and not self._doors.has_listened(self._steady()):
            return None
        return owner(home, self._doors, alive)

    def _is_ours(self, home: str, alive: Sequence[str]) -> bool:
        return home in self._floor and self._owner(home, alive) == self._members.me


Turn = tuple[list[wire.Transition], list[wire.Alert]]
"""What was found and is ours to say now, and alerts that fire, are ours now, and are not open in our engine."""
