"""A run's configuration, where a log or a file holds it: read as data, never evaluated, under bounds.

verl's driver prints it with pprint: a Python dict over some 900 lines, each in Ray's envelope, with lines of other
processes between them.
"""

import ast
from typing import NamedTuple

from oomwatch import wire
from oomwatch_agent.logs.config_keys import allowed_values
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.model_keys import ModelPaths, model_paths

BEGINS = "{'actor_rollout_ref': {"
_MOST_LINES = 6000  # of the log, until the end of the dict must have come
_MOST_CHARS = 512 * 1024  # verl 0.9's has 70 thousand
_DEEPEST = 60


class Printed(NamedTuple):
    """A printed configuration without its envelopes."""

    text: str
    numbers: tuple[int, ...]  # of its lines, in the log


class PrintedConfig:
    """Collects a printed configuration out of the lines of one log."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._numbers: list[int] = []
        self._chars = 0
        self._depth = 0
        self._writer: tuple[str | None, int | None] | None = None
        self._until = 0
        self.models = ModelPaths()  # of the configuration that was complete last; they stay on the node

    @property
    def open(self) -> bool:
        """Whether it has begun and not ended."""
        return self._writer is not None

    def note(self, record: Record, now: int) -> wire.Config | None:
        """Take in a line; the configuration that it completes. `now` counts the log's lines."""
        printed = self.collect(record, now)
        if printed is None:
            return None
        content = parse(printed.text)
        self.models = model_paths(content) if isinstance(content, dict) else ModelPaths()
        return config_of(content)

    def collect(self, record: Record, now: int) -> Printed | None:
        """Take in a line; the text that it completes. `now` counts the log's lines."""
        if record.text.startswith(BEGINS):
            self._lines, self._numbers, self._chars, self._depth = [], [], 0, 0
            self._writer, self._until = (record.ip, record.pid), now + _MOST_LINES
        elif self._writer != (record.ip, record.pid):
            return None
        self._lines.append(record.text)
        self._numbers.append(now)
        self._chars += len(record.text)
        self._depth += sum(map(record.text.count, "{[(")) - sum(map(record.text.count, "}])"))
        if self._depth > _DEEPEST or now > self._until or self._chars > _MOST_CHARS:
            self._writer = None
            return None
        return self._whole() if self._depth <= 0 else None

    def _whole(self) -> Printed:
        whole = Printed("\n".join(self._lines), tuple(self._numbers))
        self._lines, self._numbers, self._writer = [], [], None
        return whole


def parse(text: str) -> object:
    """The value of a Python literal; None for what is none. Nothing in it is ever called."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def config_of(content: object) -> wire.Config | None:
    """What may leave of a resolved configuration; None where there is nothing of the kind."""
    values = allowed_values(content) if isinstance(content, dict) else {}
    return wire.Config(values=values, framework="verl") if values else None
