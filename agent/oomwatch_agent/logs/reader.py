"""`LineReader`: the lines of one log in, recognised events out. Pure; it knows no clock and no file.

How text of a model never becomes an alert
    1. Every pattern is matched at the start of a record, after its envelopes are off: a class name, a logger's
       sentence, a step's number must stand there. Prose that mentions them has something before them.
    2. Patterns ask for the numbers and the punctuation that programs print, not for words such as "oom".
    3. What verl prints of samples, from `[prompt]` to `[score]`, is skipped for the process that prints it, so even a
       model that writes a whole error message at the start of a line is not heard.
    4. Only numbers and names from closed lists leave: a text that came through would be a number, not a sentence.

Cost: a line is first searched for a few literals (`Pattern.gate`), and most lines end there.
"""

import re

import msgspec

from oomwatch import wire
from oomwatch_agent.logs import device_oom, engines, host_oom, verl
from oomwatch_agent.logs.context import (
    CONFIG_GATES,
    HEADER_GATES,
    SAMPLE_GATES,
    TRACEBACK_GATES,
    Bounded,
    PhaseMemory,
    RunName,
    Streams,
    Writer,
    header_of,
)
from oomwatch_agent.logs.envelope import Record, unwrap
from oomwatch_agent.logs.pattern import Pattern, first_match

PATTERNS: tuple[Pattern, ...] = (*verl.PATTERNS, *engines.PATTERNS, *device_oom.PATTERNS, *host_oom.PATTERNS)

_CONTEXT_GATES = frozenset((*TRACEBACK_GATES, *SAMPLE_GATES, *CONFIG_GATES, *HEADER_GATES))
_GATES = tuple(dict.fromkeys((*(pattern.gate for pattern in PATTERNS), *sorted(_CONTEXT_GATES))))
# One pass over the line for all of them; a gate that contains another one needs no pass of its own.
_ANY_GATE = re.compile(
    "|".join(re.escape(gate) for gate in _GATES if not any(other != gate and other in gate for other in _GATES))
)
_SAME_OOM_LINES = 2000  # one error is printed by the worker, by whoever waited for it, and at the end of the driver
_REMEMBERED_OOMS = 256


class Recognised(msgspec.Struct, frozen=True, kw_only=True):
    """One event, and what the line said of the process that wrote it."""

    body: wire.EventBody
    line: int | None = None
    pid: int | None = None
    actor: str | None = None
    ip: str | None = None
    rank: int | None = None
    repeated: int = 1  # how many lines Ray says that this one stands for
    run: str | None = None  # as the printed configuration named it

    def origin(self, source: str) -> wire.Origin:
        """Where it was read: `source` is a base name, never a path."""
        return wire.Origin(source=source, line=self.line, pid=self.pid, actor=self.actor, ip=self.ip, rank=self.rank)


class LineReader:
    """Reads one log in order. `pid` is the process whose own file it is; `phases` is shared by the logs of one run."""

    def __init__(self, *, pid: int | None = None, phases: PhaseMemory | None = None) -> None:
        self._pid = pid
        self._phases = phases or PhaseMemory()
        self._streams = Streams()
        self._run = RunName()
        self._headers: dict[str, str] = {}
        self._ooms: Bounded[int] = Bounded(_REMEMBERED_OOMS)
        self._fed = 0

    @property
    def run(self) -> str | None:
        """The run that the log has named so far."""
        return self._run.name

    @property
    def job(self) -> str | None:
        """The Ray job that the file's first line names."""
        return self._headers.get("job_id")

    def feed(self, line: str, number: int) -> tuple[Recognised, ...]:
        """The events of one line. `number` is its number in the file, 0 where it is not known. Never raises."""
        self._fed += 1
        if _ANY_GATE.search(line) is None:
            return ()
        gates = [gate for gate in _GATES if gate in line]
        record = unwrap(line)
        self._note(record, gates)
        if self._streams.in_sample(record, self._fed):
            return ()
        bodies = first_match(_patterns_of(gates), record.text)
        return tuple(self._recognised(body, record, number) for body in bodies if self._is_new(body, record))

    def _note(self, record: Record, gates: list[str]) -> None:
        """What this line says about those to come."""
        if not _CONTEXT_GATES.isdisjoint(gates):
            self._streams.note(record, self._fed)
            self._run.note(record.text, self._fed)
            if header := header_of(record.text):
                self._headers.setdefault(*header)

    def _is_new(self, body: wire.EventBody, record: Record) -> bool:
        """False for an OOM text that this log has already shown of the same process."""
        if not isinstance(body, wire.DeviceOom):
            return True
        key = (self._writer(record).pid, body)
        seen = self._ooms.pop(key, None)
        self._ooms[key] = self._fed
        return seen is None or self._fed - seen > _SAME_OOM_LINES

    def _recognised(self, body: wire.EventBody, record: Record, number: int) -> Recognised:
        writer = self._writer(record)
        if isinstance(body, wire.DeviceOom):
            body = msgspec.structs.replace(body, phase=writer.phase or self._phases.of(writer.pid))
        else:
            writer = Writer(record.pid or self._pid, record.actor or self._headers.get("actor_name"), record.ip)
            self._follow_phase(body, record, writer.pid)
        return Recognised(
            body=body,
            line=number or None,
            pid=writer.pid,
            actor=writer.actor,
            ip=writer.ip,
            rank=record.rank,
            repeated=record.repeated,
            run=self.run,
        )

    def _follow_phase(self, body: wire.EventBody, record: Record, pid: int | None) -> None:
        if isinstance(body, wire.TorchMemory):
            self._phases.note(pid, body.phase)
        elif isinstance(body, wire.Step):
            self._phases.step_ended()
        if isinstance(body, wire.TorchMemory | wire.Step):
            self._streams.close_traceback(record)

    def _writer(self, record: Record) -> Writer:
        """Whom an error in this record is about: the traceback's process, else whoever printed it."""
        told = self._streams.writer(record, self._fed) or Writer()
        if told.pid is not None:
            return told
        actor = record.actor or self._headers.get("actor_name")
        return Writer(record.pid or self._pid, actor, record.ip, told.phase)


_BY_GATES: dict[tuple[str, ...], tuple[Pattern, ...]] = {}


def _patterns_of(gates: list[str]) -> tuple[Pattern, ...]:
    """The patterns whose gate is among `gates`, in the order of the table."""
    key = tuple(gates)
    found = _BY_GATES.get(key)
    if found is None:
        found = tuple(pattern for pattern in PATTERNS if pattern.gate in gates)
        if len(_BY_GATES) < 1000:  # noqa: PLR2004 - real logs show a few dozen combinations
            _BY_GATES[key] = found
    return found
