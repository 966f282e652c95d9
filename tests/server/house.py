"""A service with hand-written fakes at its seams, and a clock that a test moves: the scaffold of its tests."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.rule import RuleSet
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import UNKNOWN, Verdict
from oomwatch.rulefile import parse_rules
from oomwatch.service.journal import BYTES_MAX, UNSTORED_MAX, Entry, Journal
from oomwatch.service.seams import Incidents
from oomwatch.service.service import Service
from oomwatch.service.sessions import Session

GIB = 2**30
START = 1_700_000_000.0
T = TypeVar("T")

FULL_AT_ONCE = parse_rules(
    """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    keep_firing_for: 10s
    summary: "GPU {gpu} of {node} is {value} full"
"""
).rules
FULL_AFTER_A_WHILE = parse_rules(
    """
rules:
  - alert: full
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    for: 30s
    keep_firing_for: 10s
    summary: "GPU {gpu} of {node} is {value} full"
"""
).rules


def hello(
    node: str = "gpu-07",
    *,
    session: str = "s1",
    sent_at: float = START,
    gpus: int = 1,
    run: str | None = None,
    simulated: bool = False,
    protocol: int = wire.PROTOCOL_VERSION,
    check: bool = False,
) -> wire.Hello:
    """A node with H100s and a host of 1000 GiB."""
    cards = tuple(
        wire.GpuFacts(gpu=str(index), uuid=f"GPU-{node}-{index}", name="H100", total_bytes=80 * GIB)
        for index in range(gpus)
    )
    return wire.Hello(
        protocol=protocol,
        agent_version="0.1.0",
        node=node,
        session=session,
        sent_at=sent_at,
        interval_seconds=1.0,
        facts=wire.NodeFacts(gpus=cards, host=wire.HostFacts(memory_total_bytes=1000 * GIB)),
        run=run,
        simulated=simulated,
        check=check,
    )


def sample(seq: int, used_gib: float, at: float = START, *, gpus: int = 1) -> wire.Sample:
    """Every card as full as the other."""
    cards = tuple(
        wire.GpuSample(gpu=str(index), used_bytes=int(used_gib * GIB), utilization_ratio=0.5) for index in range(gpus)
    )
    return wire.Sample(seq=seq, at=at, gpus=cards, host=wire.HostSample(memory_used_bytes=100 * GIB))


class Broken(Kind, frozen=True, kw_only=True):
    """A condition with a defect that shows on one node."""

    scopes: tuple[str, ...] = ("gpu",)
    hears: tuple[str, ...] = ("readings",)
    over_when_run: None = None
    predicts: None = None

    def judge(self, _fleet: Fleet, subject: Subject, _now: float) -> Verdict:
        if subject.name == "gpu-07":
            raise ZeroDivisionError
        return UNKNOWN


class Browsers:
    """Keeps what the audience is shown."""

    def __init__(self, log: list[str]) -> None:
        self.shown: list[wire.LiveMessage] = []
        self.is_broken = False
        self._log = log

    def publish(self, messages: Iterable[wire.LiveMessage]) -> None:
        if self.is_broken:
            raise ZeroDivisionError
        for message in messages:
            self.shown.append(message)
            if isinstance(message, wire.AlertChanged):
                self._log.append(f"shown {message.alert.state}")

    def of(self, kind: type[T]) -> list[T]:
        return [message for message in self.shown if isinstance(message, kind)]


class Channels:
    """Keeps what people are sent."""

    def __init__(self, log: list[str]) -> None:
        self.offered: list[wire.Transition] = []
        self.states: list[wire.ChannelState] = []
        self.is_broken = False
        self._log = log

    def offer(self, transitions: Sequence[wire.Transition]) -> None:
        if self.is_broken:
            raise ZeroDivisionError
        self.offered += transitions
        self._log += [f"sent {transition.state}" for transition in transitions]

    def status(self) -> list[wire.ChannelState]:
        return self.states


class Shelf:
    """An archive in memory that can be made to fail."""

    def __init__(self, log: list[str]) -> None:
        self.transitions: list[wire.Transition] = []
        self.messages: list[wire.AgentMessage] = []
        self.is_full = False
        self.takes_no_transitions = False
        self._log = log

    def append(self, transitions: Sequence[wire.Transition]) -> None:
        self._refuse_if_full()
        if self.takes_no_transitions:
            raise OSError("a lock")
        self.transitions += transitions
        self._log += [f"stored {transition.state}" for transition in transitions]

    def record(self, entries: Sequence[Entry]) -> None:
        self._refuse_if_full()
        self.messages += [entry.message for entry in entries]

    def _refuse_if_full(self) -> None:
        if self.is_full:
            raise OSError("the disk is full")


class Agent:
    """The agent's end of a connection, as the service sees it."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.asked: list[wire.ActRequest] = []
        self.dismissed: list[wire.Refused | None] = []

    def acknowledge(self, seq: int) -> None:
        self.acknowledged.append(seq)

    def ask(self, request: wire.ActRequest) -> None:
        self.asked.append(request)

    def dismiss(self, refused: wire.Refused | None) -> None:
        self.dismissed.append(refused)


class House:
    """A service, everything around it, and the time."""

    def __init__(
        self,
        rules: RuleSet = FULL_AT_ONCE,
        *,
        entries_max: int = 1000,
        bytes_max: int = BYTES_MAX,
        unstored_max: int = UNSTORED_MAX,
        now: float = START,
        incidents: Incidents | None = None,
    ) -> None:
        self.now = now
        self.set_by = 0.0  # how far the clock is off the time that has passed
        self.log: list[str] = []
        self.browsers, self.channels, self.shelf = Browsers(self.log), Channels(self.log), Shelf(self.log)
        self.service = Service(
            rules, self.browsers, self.channels, clock=self._clock, steady=lambda: self.now, incidents=incidents
        )
        self.journal = Journal(
            self.shelf,
            _call,
            self.service.tell,
            flush_seconds=5.0,
            entries_max=entries_max,
            bytes_max=bytes_max,
            unstored_max=unstored_max,
        )
        self.service.attach(self.journal)

    def connect(self, greeting: wire.Hello | None = None, *, stored_seq: int = 0) -> tuple[Session, Agent]:
        agent = Agent()
        return self.service.reception.admit(greeting or hello(sent_at=self.now), agent, stored_seq), agent

    def _clock(self) -> float:
        return self.now + self.set_by

    def flush(self) -> None:
        _run(self.journal.flush())

    def pass_time(self, seconds: float) -> None:
        """Time goes by in a server that runs: it looks at its clock, and is never asked what time has changed."""
        self.pass_until(self.now + seconds)

    def pass_until(self, until: float) -> None:
        while self.now < until:
            self.now = min(until, self.now + 1)
            self.service.open_alerts()

    def wait(self, seconds: int, each_second: Callable[[], object] = lambda: None) -> None:
        for _ in range(seconds):
            self.now += 1
            each_second()
            self.service.beat()
            self.flush()


async def _call(fn: Callable[..., Any], *arguments: object) -> object:
    await asyncio.sleep(0)  # as a thread would, it lets others run before the work is done
    return fn(*arguments)


def _run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)
