"""What earlier lines of a log say about later ones: tracebacks, printed samples, the run's name, the phase it is in."""

import re
from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec

from oomwatch_agent.logs.envelope import Record
from oomwatch_agent.logs.phases import phase_of_function

# ray::WorkerDict.update_actor() (pid=25591, ip=192.0.2.2, ...: whose error the text below it is
_RAY_FRAME = re.compile(
    r"\bray::(?P<actor>[\w.\-]{1,64}?)(?:\.(?P<method>\w{1,64}))?\(\) \(pid=(?P<pid>\d{1,10}), ip=(?P<ip>[\w.:]{2,45})"
)
_FRAME = re.compile(r'\s+File ".{1,500}", line \d+, in (?P<function>\w{1,80})')
TRACEBACK_GATES = ("ray::", '", line ', "Traceback (most")

# verl's reward manager prints samples as [prompt] ... [response] ... [ground_truth] ... [score] 1.0
_SAMPLE_BEGINS = ("[prompt]", "[response]")
_SAMPLE_ENDS = ("[score]",)
SAMPLE_GATES = ("[prompt]", "[response]", "[score]")
_LONGEST_SAMPLE_LINES = 5000  # a sample that never ends must not silence its process for good

# Ray actors and tasks that print samples, prompts and rewards on their standard output, and have no GPU of their own:
# verl's driver and reward managers (main_task until 0.3), EasyR1's Runner, slime's and OpenRLHF's drivers.
_PRINTS_SAMPLES = re.compile(
    r"main_task$|Runner$|\w*TaskRunner\w*$|\w*RewardManager\w*$|\w*RewardLoop\w*$|AgentLoop\w*$|RolloutManager$|PPOTrainer$"
)

_SECTION = re.compile(r"[ {]'trainer': \{")
_NAMES = re.compile(r"'(?P<key>project_name|experiment_name)': '(?P<value>[^'$]{1,120})'")
CONFIG_GATES = ("'trainer': {", "_name': '")
_LONGEST_SECTION_LINES = 400  # verl 0.9's trainer section has 36

_FILE_HEADER = re.compile(r":(?P<key>job_id|actor_name):(?P<value>[\w.\-]{1,64})$")
HEADER_GATES = (":job_id:", ":actor_name:")

_NEAR_LINES = 300  # between a traceback's last frame and its error: a few of its own, and what others print meanwhile
_TRACEBACK_LINES = 2000  # after so many lines of the log an error has nothing to do with that traceback
_MOST_STREAMS = 4096

T = TypeVar("T")


class Bounded(OrderedDict[object, T], Generic[T]):
    """A mapping that forgets its oldest entry: what a hostile log can make us keep has an end."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: object, value: T) -> None:
        super().__setitem__(key, value)
        if len(self) > self._most:
            self.popitem(last=False)


class PhaseMemory:
    """The last phase that each process (or, where it is silent, any process) of a node's run was seen in."""

    def __init__(self) -> None:
        self._by_pid: Bounded[str | None] = Bounded(_MOST_STREAMS)
        self._last: str | None = None

    def note(self, pid: int | None, phase: str | None) -> None:
        self._last = phase
        if pid is not None:
            self._by_pid[pid] = phase

    def step_ended(self) -> None:
        self._by_pid.clear()
        self._last = None

    def of(self, pid: int | None) -> str | None:
        """Rank 0 alone prints memory lines, but all ranks are in the same phase."""
        return self._by_pid.get(pid, self._last)


class Writer(msgspec.Struct, frozen=True):
    """The process that a traceback is about, and the phase that its functions tell."""

    pid: int | None = None
    actor: str | None = None
    ip: str | None = None
    phase: str | None = None


class _Stream(msgspec.Struct):
    """One process as a log shows it: its lines stay in order, whatever comes between them."""

    writer: Writer | None = None
    writer_until: int = 0
    near_until: int = 0
    sample_until: int = 0


class Streams:
    """Tracebacks and printed samples of every process in a log, told apart by the process that printed them."""

    def __init__(self) -> None:
        self._streams: Bounded[_Stream] = Bounded(_MOST_STREAMS)

    def note(self, record: Record, now: int) -> None:
        """Take in a line. `now` counts the log's lines."""
        stream = self._of(record)
        if record.text.startswith(_SAMPLE_BEGINS):
            stream.sample_until = now + _LONGEST_SAMPLE_LINES
        elif record.text.startswith(_SAMPLE_ENDS):
            stream.sample_until = 0
        if stream.sample_until < now:
            _note_traceback(stream, record.text, now)

    def in_sample(self, record: Record, now: int) -> bool:
        """Whether this line is text of a dataset or a model, between [prompt] and [score]."""
        return now <= self._of(record).sample_until

    def writer(self, record: Record, now: int) -> Writer | None:
        """Whom the open traceback of this line's process is about."""
        stream = self._of(record)
        return stream.writer if now <= stream.writer_until else None

    def near_traceback(self, record: Record, now: int) -> bool:
        """Whether a traceback of this line's process came just before."""
        return now <= self._of(record).near_until

    def close_traceback(self, record: Record) -> None:
        """An ordinary record came: what follows is a new story."""
        stream = self._of(record)
        stream.writer_until = stream.near_until = 0

    def _of(self, record: Record) -> _Stream:
        key = (record.ip, record.pid)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = _Stream()
        return stream


def _note_traceback(stream: _Stream, text: str, now: int) -> None:
    if frame := _RAY_FRAME.search(text):
        phase = phase_of_function(frame["method"] or frame["actor"])
        stream.writer = Writer(int(frame["pid"]), frame["actor"], frame["ip"], phase)
    elif text.startswith("Traceback (most recent"):
        if now > stream.writer_until:
            stream.writer = Writer()
    elif (line := _FRAME.match(text)) and stream.writer is not None and now <= stream.writer_until:
        # The outermost function that tells a phase is right: compute_ref_log_prob calls compute_log_prob.
        if stream.writer.phase is None and (phase := phase_of_function(line["function"])):
            stream.writer = msgspec.structs.replace(stream.writer, phase=phase)
    else:
        return
    stream.writer_until, stream.near_until = now + _TRACEBACK_LINES, now + _NEAR_LINES


def prints_samples(actor: str | None) -> bool:
    """Whether text of a model may stand anywhere in what this actor prints."""
    return actor is not None and _PRINTS_SAMPLES.match(actor) is not None


class RunName:
    """The run's name out of verl's printed configuration: a Python dict over some 900 lines, of which two count.

    Both keys stand in other sections too, as "${...}" references; the real ones are in the section 'trainer'.
    """

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        self._section_until = 0

    @property
    def name(self) -> str | None:
        """ "project/experiment" once both were seen."""
        project, experiment = self._found.get("project_name"), self._found.get("experiment_name")
        return f"{project}/{experiment}" if project and experiment else None

    def note(self, text: str, now: int) -> None:
        if _SECTION.match(text):
            self._found = {}
            self._section_until = now + _LONGEST_SECTION_LINES
        if now > self._section_until:
            return
        for key, value in _NAMES.findall(text):
            if value.isprintable():
                self._found.setdefault(key, value)


def header_of(text: str) -> tuple[str, str] | None:
    """ "job_id" or "actor_name" and its value, where the line is one of the first two of a Ray worker's file."""
    match = _FILE_HEADER.match(text)
    return (match["key"], match["value"]) if match else None
