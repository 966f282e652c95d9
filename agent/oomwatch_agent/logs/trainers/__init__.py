"""The step metrics of trainers other than verl, as their consoles show them: over one line, two, or a whole block.

What one step says is gathered from line to line, renamed to verl's keys, and made into a `wire.Step` by `steps`. One
file a trainer, one line here. Each proves itself by its example; `seen_in` says where such lines were found.
"""

from collections.abc import Iterator

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering
from oomwatch_agent.logs.trainers import areal, easyr1, nemo, openrlhf, skyrl, slime, trl

TRAINERS = (
    trl.TRAINER,
    openrlhf.TRAINER,
    slime.TRAINER,
    skyrl.TRAINER,
    nemo.TRAINER,
    areal.TRAINER,
    easyr1.TRAINER,
)

GATES = tuple(gate for trainer in TRAINERS for gate in trainer.gates)
_ANY_GATE = frozenset(GATES)


class TrainerSteps:
    """The step metrics of every trainer of the table, in one log."""

    def __init__(self) -> None:
        self._gatherings = [Gathering(trainer) for trainer in TRAINERS]

    @property
    def open(self) -> bool:
        """Whether a block has begun, so that lines without any literal matter too."""
        return any(gathering.open for gathering in self._gatherings)

    def note(self, record: Record, gates: list[str]) -> Iterator[wire.Step]:
        """The steps that this line completes: at most one, of any sane log."""
        if _ANY_GATE.isdisjoint(gates) and not self.open:
            return
        for gathering in self._gatherings:
            if step := gathering.note(record, gates):
                yield step

    def flush(self) -> Iterator[wire.Step]:
        """The step of a block that the log ended with."""
        for gathering in self._gatherings:
            if gathering.open and (step := gathering.tell()):
                yield step
