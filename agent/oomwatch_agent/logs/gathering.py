"""What a trainer says of a step, gathered from line to line until it is whole. See `trainers` for who says what."""

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.steps import step_from

_MOST_KEYS = 2000
_LONGEST_BLOCK_LINES = 600  # AReaL's table of a step has some 30 rows, EasyR1's tree some 80
_MOST_WAITING = 8  # slime's rollouts run ahead of its training by one or two

Metrics: TypeAlias = dict[str, object]

_PAIR = re.compile(r"'(?P<key>[\w/@.() %\-]{1,120})': '?(?P<value>[^,'{}\[\]]{1,60})'?(?=[,}])")


def pairs(text: str) -> Metrics:
    """Names and values of a printed Python dict, as far as they are numbers or short words."""
    return {match["key"]: match["value"].strip() for match in _PAIR.finditer(text)}


class Trainer(msgspec.Struct, frozen=True, kw_only=True):
    """How one trainer prints a step. `names` maps its keys to verl's; `read` is fed with each of its lines."""

    name: str
    gates: tuple[str, ...]
    names: Mapping[str, str]
    read: "Callable[[Gathering, Record], wire.Step | None]"
    example: tuple[str, ...]  # raw lines that together give one step
    seen_in: str


class Gathering:
    """What a trainer has said so far of the steps that are not told yet. One for each trainer and log."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._lines_left = 0
        self.metrics: Metrics = {}
        self.waiting: dict[int, Metrics] = {}  # by step: what is kept until the rest comes
        self.step: int | None = None
        self.count = 0  # of the steps told, for trainers that print no number
        self.path: list[tuple[int, str]] = []  # of EasyR1's tree: indentation and name
        self.writer: tuple[str | None, int | None] | None = None

    @property
    def open(self) -> bool:
        """Whether the next lines belong to a block that has begun."""
        return self._lines_left > 0

    def note(self, record: Record, gates: list[str]) -> wire.Step | None:
        """Take in a line; the step that it completes."""
        if not self.open and not any(gate in gates for gate in self._trainer.gates):
            return None
        if self.open and self.writer == (record.ip, record.pid):
            self._lines_left -= 1
        return self._trainer.read(self, record)

    def begin(self, record: Record) -> None:
        """From here on every line of this process is part of the block, until `tell`."""
        self.metrics, self.path = {}, []
        self._lines_left = _LONGEST_BLOCK_LINES
        self.writer = (record.ip, record.pid)

    def is_mine(self, record: Record) -> bool:
        """Whether the open block and this line were printed by the same process."""
        return self.open and self.writer == (record.ip, record.pid)

    def add(self, key: str, value: object) -> None:
        if len(self.metrics) < _MOST_KEYS:
            self.metrics[key] = value

    def tell(self, step: int | None = None) -> wire.Step | None:
        """The step of what was gathered, which is forgotten."""
        metrics, self.metrics, self._lines_left = self.metrics, {}, 0
        number = self.step if step is None else step
        if number is None:
            return None
        renamed = {self._trainer.names.get(key, key): value for key, value in metrics.items()}
        told = step_from(number, renamed)
        self.count += told is not None
        return told

    def keep(self, step: int, metrics: Metrics) -> None:
        """Set aside what is only a part of a step."""
        self.waiting[step] = {**self.waiting.pop(step, {}), **metrics}
        while len(self.waiting) > _MOST_WAITING:
            del self.waiting[next(iter(self.waiting))]
