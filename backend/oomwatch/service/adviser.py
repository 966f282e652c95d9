"""What each alert says beside its figures: worked out once, when it is raised, and repeated as long as it is told of.

Advice needs the fleet as it was when the alert fired, and an open alert is told of again every few seconds.
"""

from collections import OrderedDict

from msgspec import structs

from oomwatch import wire
from oomwatch.advice import advise
from oomwatch.core.fleet import Fleet
from oomwatch.service.defects import Defects

KEPT = 2000  # alerts


class Adviser:
    """Puts remedies on transitions."""

    def __init__(self, fleet: Fleet, defects: Defects) -> None:
        self._fleet = fleet
        self._defects = defects
        self._known: OrderedDict[str, tuple[tuple[wire.Cause, ...], tuple[wire.Remedy, ...]]] = OrderedDict()

    def __call__(self, transition: wire.Transition) -> wire.Transition:
        """The transition with the remedies of its alert. A defect in finding them costs them alone."""
        if not transition.causes or transition.remedies:
            return transition
        causes, remedies = self._known.get(transition.id, ((), ()))
        if causes != transition.causes and transition.state == "firing":
            remedies = self._found(transition)
            self._known[transition.id] = transition.causes, remedies
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return structs.replace(transition, remedies=remedies)

    def _found(self, transition: wire.Transition) -> tuple[wire.Remedy, ...]:
        found = transition
        with self._defects.going_on(f"finding what to change for {transition.alert}"):
            found = advise(transition, self._fleet)
        return found.remedies
