"""EasyR1: a tree of YAML a step."""

import re

from oomwatch import wire
from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.gathering import Gathering, Trainer
from oomwatch_agent.logs.units import NUMBER

_STEP = re.compile(r"Step (?P<step>\d{1,15})$")
_ROW = re.compile(rf"(?P<indent> {{0,12}})(?P<key>[\w@.()\-]{{1,60}}):(?: (?P<value>{NUMBER}|\.nan|-?\.inf))?$")


def _read(gathering: Gathering, record: Record) -> wire.Step | None:
    """A YAML tree below "Step 5". Any line that is no part of it ends it."""
    row = _ROW.match(record.text) if gathering.is_mine(record) else None
    if row:
        indent = len(row["indent"])
        gathering.path = [level for level in gathering.path if level[0] < indent]
        if row["value"] is None:
            gathering.path.append((indent, row["key"]))
        else:
            gathering.add("/".join([*(name for _, name in gathering.path), row["key"]]), row["value"])
        return None
    if gathering.open and not gathering.is_mine(record):
        return None
    told = gathering.tell() if gathering.open else None
    if begun := _STEP.match(record.text):
        gathering.begin(record)
        gathering.step = int(begun["step"])
    return told


TRAINER = Trainer(
    name="EasyR1",
    gates=("Step ",),
    names={},
    read=_read,
    example=(
        "(Runner pid=9) Step 5",
        "(Runner pid=9) perf:",
        "(Runner pid=9)   max_memory_reserved_gb: 61.23",
        "(Runner pid=9) response_length:",
        "(Runner pid=9)   mean: 512.5",
        "(Runner pid=9) timing_s:",
        "(Runner pid=9)   gen: 31.4",
        "(Runner pid=9)   step: 95.2",
        "(Runner pid=9) ",
        "(Runner pid=9) Start validation...",
    ),
    seen_in="composed: EasyR1's ConsoleLogger prints the metrics' tree as YAML",
)
