"""`LineReader`: the lines of one log in, recognised events out. PURE; it knows no clock and no file.

How text of a model never becomes an alert
    1. Every pattern is matched at the start of a record, after its envelopes are off: a class name, a logger's
       sentence, a step's number must stand there. Prose that mentions them has something before them.
    2. Patterns ask for the numbers and the punctuation that programs print, not for words such as "oom".
    3. What verl prints of samples, from `[prompt]` to `[score]`, is skipped for the process that prints it, so even a
       model that writes a whole error message at the start of a line is not heard.
    4. What prints samples in other forms (drivers, reward managers) is believed to have failed only where a traceback
       of its own came just before: a model may print that, too, but hardly does. Its standard error is believed.
    5. Only numbers and names from closed lists leave: a text that came through would be a number, not a sentence.

Cost: a line is first searched for a few literals (`Pattern.gate`), and most lines end there.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from oomwatch import wire
from oomwatch_agent.logs import config_text, trainers
from oomwatch_agent.logs.context import (
    Bounded,
    PhaseMemory,
    RunName,
    Streams,
    Writer,
    header_of,
    prints_samples,
)
from oomwatch_agent.logs.doubts import Doubts
from oomwatch_agent.logs.envelope import Record, unwrap
from oomwatch_agent.logs.model_keys import ModelPaths
from oomwatch_agent.logs.pattern import Bodies, first_match
from oomwatch_agent.logs.scan import Chunk, Row, wanted
from oomwatch_agent.logs.table import CONTEXT_GATES, GATES, PATTERNS, any_gate, bodies_of, patterns_of
from oomwatch_agent.logs.wrapped import Rejoiner

# What is worth telling of lines that gave nothing: not the ordinary words, and not what only helps with other lines.
_TELLING_GATES = frozenset(pattern.gate for pattern in PATTERNS) - {"It took", "Detected ", "memory"}
_FAILURES = (wire.DeviceOom, wire.HostOom, wire.GpuLost, wire.NcclError, wire.DiskFull, wire.ShmSmall)
_SAME_OOM_LINES = 2000  # one error is printed by the worker, by whoever waited for it, and at the end of the driver
_REMEMBERED_OOMS = 256


class OwnPatterns(Protocol):
    """Patterns that a person brought (`oomwatch_agent.own_patterns`): they may need more than purity allows."""

    @property
    def gates(self) -> tuple[str, ...]:
        """A literal for each of them, that stands in every line that it may match."""
        ...

    def bodies_of(self, line: str, text: str) -> Bodies:
        """The events of a raw line with the record `text` in it."""
        ...


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
    models: ModelPaths = ModelPaths()  # of a configuration: where its models lie, which stays on the node

    def origin(self, source: str) -> wire.Origin:
        """Where it was read: `source` is a base name, never a path."""
        return wire.Origin(source=source, line=self.line, pid=self.pid, actor=self.actor, ip=self.ip, rank=self.rank)


class LineReader:
    """Reads one log in order. `pid` is the process whose own file it is; `phases` is shared by the logs of one run.

    `errors_only` says that it is some process' standard error, where nobody prints samples.
    `read` takes a log as it lies in a file, chunk by chunk; `feed` takes one whole record at a time.
    """

    def __init__(
        self,
        *,
        pid: int | None = None,
        phases: PhaseMemory | None = None,
        own: OwnPatterns | None = None,
        errors_only: bool = False,
    ) -> None:
        self._pid = pid
        self._errors_only = errors_only
        self._phases = phases or PhaseMemory()
        self._streams = Streams()
        self._run = RunName()
        self._headers: dict[str, str] = {}
        self._ooms: Bounded[int] = Bounded(_REMEMBERED_OOMS)
        self._fed = 0
        self._doubts = Doubts(_TELLING_GATES)
        self._config = config_text.PrintedConfig()
        self._steps = trainers.TrainerSteps()
        self._own = own
        self._own_gates = own.gates if own else ()
        self._any_gate = any_gate(self._own_gates)
        self._rejoiner = Rejoiner(bodies_of)

    @property
    def run(self) -> str | None:
        """The run that the log has named so far."""
        return self._run.name

    @property
    def actor(self) -> str | None:
        """The Ray actor that the file is of, as its first lines say."""
        return self._headers.get("actor_name")

    @property
    def job(self) -> str | None:
        """The Ray job that the file's first line names."""
        return self._headers.get("job_id")

    def read(self, chunk: Chunk) -> Iterator[Recognised]:
        """The events of a chunk. A row that may go on in the next one is held back: `flush` when there is no more."""
        for row in wanted(chunk, self._any_gate, self._is_attentive):
            for whole in self._rejoiner.feed(row):
                yield from self._feed_row(whole)

    def flush(self) -> Iterator[Recognised]:
        """The events of what was held back: nothing more has come for now."""
        for row in self._rejoiner.flush():
            yield from self._feed_row(row)

    def feed(self, line: str, number: int) -> tuple[Recognised, ...]:
        """The events of one line. `number` is its number in the file, 0 where it is not known. Never raises."""
        self._fed += 1
        gates = [gate for gate in GATES if gate in line]
        if not gates and not self._follows_block and not any(gate in line for gate in self._own_gates):
            return ()
        record = unwrap(line)
        self._note(record, gates)
        if self._streams.in_sample(record, self._fed):
            self._doubts.in_sample()
            return ()
        bodies = first_match(patterns_of(gates), record.text) or tuple(self._of_several_lines(record, gates))
        bodies = self._believed(bodies, record)
        if self._own:
            bodies += self._own.bodies_of(line, record.text)
        if not bodies and not self._follows_block:
            self._doubts.unknown(gates)
        return tuple(self._recognised(body, record, number) for body in bodies if self._is_new(body, record))

    def end(self) -> Iterator[Recognised]:
        """What the log's last lines meant, when none will follow."""
        yield from self.flush()
        for step in self._steps.flush():
            yield self._recognised(step, Record(text=""), 0)

    def reasons(self) -> Iterator[str]:
        """Why lines that hold a word of some pattern were no records, for a person who wonders."""
        yield from self._doubts.reasons()

    def _believed(self, bodies: Bodies, record: Record) -> Bodies:
        """Without failures that text of a model may have made up."""
        if self._errors_only or not any(isinstance(body, _FAILURES) for body in bodies):
            return bodies
        if not prints_samples(self._actor_of(record)) or self._streams.near_traceback(record, self._fed):
            return bodies
        self._doubts.without_traceback()
        return tuple(body for body in bodies if not isinstance(body, _FAILURES))

    def _actor_of(self, record: Record) -> str | None:
        return record.actor or self._headers.get("actor_name")

    @property
    def _follows_block(self) -> bool:
        return self._config.open or self._steps.open

    def _is_attentive(self) -> bool:
        """Whether the next line matters whatever is in it."""
        return self._rejoiner.waiting or self._follows_block

    def _feed_row(self, row: Row) -> Sequence[Recognised]:
        self._fed += row.passed
        return self.feed(row.text, row.number)

    def _of_several_lines(self, record: Record, gates: list[str]) -> Iterator[wire.EventBody]:
        """What this line completes: a printed configuration, or a step told over several lines."""
        if (self._config.open or config_text.BEGINS in gates) and (config := self._config.note(record, self._fed)):
            yield config
        yield from self._steps.note(record, gates)

    def _note(self, record: Record, gates: list[str]) -> None:
        """What this line says about those to come."""
        if not CONTEXT_GATES.isdisjoint(gates):
            self._streams.note(record, self._fed)
            self._run.note(record.text, self._fed)
            if header := header_of(record.text):
                self._headers.setdefault(*header)

    def _is_new(self, body: wire.EventBody, record: Record) -> bool:
        """False for an error that this log has already shown of the same process."""
        if not isinstance(body, wire.DeviceOom | wire.NcclError | wire.ShmSmall):
            return True
        key = (self._writer(record).pid, record.rank, body)
        seen = self._ooms.pop(key, None)
        self._ooms[key] = self._fed
        return seen is None or self._fed - seen > _SAME_OOM_LINES

    def _recognised(self, body: wire.EventBody, record: Record, number: int) -> Recognised:
        writer = self._writer(record)
        if isinstance(body, wire.DeviceOom):
            body = msgspec.structs.replace(body, phase=writer.phase or self._phases.of(writer.pid))
        else:
            if isinstance(body, wire.HostOom) and record.repeated > 1:
                body = msgspec.structs.replace(body, kills=body.kills * record.repeated)
            writer = Writer(record.pid or self._pid, self._actor_of(record), record.ip)
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
            models=self._config.models if isinstance(body, wire.Config) else ModelPaths(),
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
        return Writer(record.pid or self._pid, self._actor_of(record), record.ip, told.phase)
