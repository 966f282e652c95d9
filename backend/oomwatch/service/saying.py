"""What a transition says to people: in words, with what to change, and with the report of what ran out of memory."""

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet
from oomwatch.service.adviser import Adviser
from oomwatch.service.defects import Defects
from oomwatch.service.seams import Incidents
from oomwatch.wording import put_into_words


class Saying:
    """Reads the engine and changes nothing in it."""

    def __init__(self, engine: Engine, defects: Defects, incidents: Incidents | None) -> None:
        self._engine = engine
        self._advise = Adviser(engine.fleet, defects)
        self._incidents = incidents

    def __call__(self, transition: wire.Transition) -> wire.Transition:
        """By the rules in force."""
        return self.by(self._engine.rules, transition, simulated=self.is_simulated(transition.labels))

    def by(self, rules: RuleSet, transition: wire.Transition, *, simulated: bool) -> wire.Transition:
        """By other rules, or of a node that is no more."""
        if self._incidents is not None:
            transition = self._incidents.with_incident(transition)
        return put_into_words(self._advise(transition), rules, simulated=simulated)

    def note(self, transition: wire.Transition, now: float) -> None:
        """The engine has said this; it is yet to be put into words."""
        if self._incidents is not None:
            self._incidents.note(transition, now)

    def is_simulated(self, labels: dict[str, str]) -> bool:
        """Whether a subject is of a node that is simulated."""
        node = self._engine.fleet.nodes.get(labels.get("node", ""))
        if node is not None:
            return node.hello.simulated
        run = self._engine.fleet.runs.get(labels.get("run", ""))
        return run is not None and run.simulated
