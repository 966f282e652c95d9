"""The one owner of the engine, and the only reader of the clock: what arrives is judged, kept, told and shown here.

Everything that touches the engine is a plain method, called from the event loop, that never waits: between two of them
nothing is half done. What waits (the database, the network) is at the other end of the journal, the audience and the
notifier.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from oomwatch import __version__, wire
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet
from oomwatch.service.board import Board
from oomwatch.service.journal import Entry, Journal
from oomwatch.service.picture import Picture
from oomwatch.service.sessions import Numbered, Peer, RefusalError, Roster, Session
from oomwatch.wording import put_into_words, rule_view

BEAT_SECONDS = 1.0
PAUSE_SECONDS = 3.0  # nothing ran for longer: the machine or the process stood still, and heard nobody
JUMP_SECONDS = 2.0  # as for the agents' clocks: less is none
FORGET_SECONDS = 86_400.0  # a node or run of which nothing was heard for so long is taken off the page
FORGETTING_SECONDS = 3600.0  # how often that is looked for
STUCK_SECONDS = 10.0  # a second's work that is so late is no load any more, but a defect

logger = logging.getLogger(__name__)


def steady_clock() -> float:
    """Seconds that nobody sets. Where the system tells it, the time in which the machine slept counts."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class StillConnectedError(Exception):
    """A node whose agent is connected cannot be forgotten."""


class Audience(Protocol):
    """The browsers."""

    def publish(self, messages: Iterable[wire.LiveMessage]) -> None: ...


class Herald(Protocol):
    """The notification channels."""

    def offer(self, transitions: Sequence[wire.Transition]) -> None: ...


class Recorder(Protocol):
    """Writes down what the engine is given, before it is given."""

    def observe(self, message: wire.AgentMessage, node: str, now: float) -> None: ...

    def recall(self, message: wire.AgentMessage, node: str, now: float) -> None: ...

    def restore(self, firing: Sequence[wire.Transition], now: float) -> None: ...

    def advance(self, now: float) -> None: ...

    def excuse_silence(self, seconds: float) -> None: ...

    def clock_jumped(self, seconds: float) -> None: ...

    def retire(self, node: str, now: float) -> None: ...

    def forget(self, before: float) -> None: ...


class Service:
    """See the module. `journal` has to be set (`attach`) before anything is taken."""

    def __init__(
        self,
        rules: RuleSet,
        audience: Audience,
        herald: Herald,
        *,
        recorder: Recorder | None = None,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_clock,
    ) -> None:
        self.clock = clock
        self._steady = steady
        self.engine = Engine(rules)
        self.roster = Roster()
        self.board = Board(self._in_words)
        self.journal: Journal
        self.started_at = self._read_at = clock()
        self._steady_at = self._beat_at = steady()
        self._has_paused = self._has_passed_over = False
        self._forget_at = self._beat_at  # soon: of what the database remembers, some may be long gone
        self.rules_error: str | None = None
        self.unknown_total = 0
        self.malformed_total = 0
        self.failures_total = 0  # of our own code; each is in the log
        self.is_stopping = False
        self._broken_rules: set[str] = set()
        self._audience = audience
        self._herald = herald
        self._recorder = recorder
        self.picture = Picture(self.engine.fleet, self._skew_of)

    def attach(self, journal: Journal) -> None:
        """The journal tells people through `tell`, and so can only be made after the service."""
        self.journal = journal

    # ------------------------------------------------------------ the clock

    def _now(self) -> float:
        """The time. Whoever comes first after a pause of this process, or after the clock was set, sees to that."""
        now, steady = self.clock(), self._steady()
        elapsed = steady - self._steady_at
        jumped = now - self._read_at - elapsed
        self._read_at, self._steady_at = now, steady
        if abs(jumped) > JUMP_SECONDS:
            self._clock_jumped(jumped)
        if elapsed > PAUSE_SECONDS:
            self._excuse_silence(elapsed)
        return now

    def _clock_jumped(self, seconds: float) -> None:
        logger.warning("the clock of this machine was set by %+.1f s; what was measured by it is corrected", seconds)
        if self._recorder is not None:
            self._recorder.clock_jumped(seconds)
        self.engine.clock_jumped(seconds)
        self.board.clock_jumped(seconds)
        for session in self.roster:
            session.clock_jumped(seconds)

    def _excuse_silence(self, seconds: float) -> None:
        """Nobody was heard, since nobody listened."""
        logger.warning("the server stood still for %.1f s; that is no silence of any agent", seconds)
        if self._recorder is not None:
            self._recorder.excuse_silence(seconds)
        self.engine.excuse_silence(seconds)
        for session in self.roster:
            session.heard_at += seconds
        self._has_paused = True

    # ------------------------------------------------------------ agents

    def admit(self, hello: wire.Hello, peer: Peer, stored_seq: int) -> Session:
        """Take an agent in by its first hello. Raises RefusalError.

        `stored_seq` is what the database says of a session that is not in memory.
        """
        if self.is_stopping:
            raise RefusalError(wire.RefusedReason.SHUTTING_DOWN, "the server is going down", retry=True)
        now = self._now()
        session = self.roster.admit(hello, peer, stored_seq, now)
        self._take_hello(session, hello, now)
        return session

    def leave(self, session: Session, peer: Peer) -> None:
        """The connection has ended. Whether that is an alarm, silence will tell."""
        self.roster.leave(session, peer)

    def take(self, session: Session, message: wire.AgentMessage) -> None:
        """A message of an admitted agent. One that was processed before is only kept, where that is still to do."""
        now = self._now()
        session.heard_at = now
        session.messages_total += 1
        if isinstance(message, wire.Hello):
            session.greet(message, now)
            self._take_hello(session, message, now)
            return
        message = self._with_run(session.on_our_clock(message, now), session.node)
        if message.seq > session.processed_seq:
            session.processed_seq = message.seq
            self._observe(message, session.node, now)
        self.journal.keep(Entry(session, message.seq, now, message))

    def _with_run(self, message: Numbered, node: str) -> Numbered:
        """Runs by their names; an event that names none belongs to the run that its agent was given. In history too."""
        message = self.engine.fleet.names.apply(message)
        record = self.engine.fleet.nodes.get(node)
        if not isinstance(message, wire.Event) or message.run is not None or record is None or record.hello.run is None:
            return message
        return msgspec.structs.replace(message, run=record.hello.run)

    def _take_hello(self, session: Session, hello: wire.Hello, now: float) -> None:
        self._observe(hello, hello.node, now)
        self.journal.keep(Entry(session, 0, now, hello))

    def skip(self, session: Session, unknown: wire.Unknown) -> None:
        """A message of a type that is newer than this server."""
        session.heard_at = self._now()
        session.unknown_total += 1
        self.unknown_total += 1
        if unknown.seq is not None:
            session.processed_seq = max(session.processed_seq, unknown.seq)
            self.journal.skip(session, unknown.seq)

    def count_malformed(self, session: Session) -> None:
        session.heard_at = self._now()
        session.malformed_total += 1
        self.malformed_total += 1

    def _observe(self, message: wire.AgentMessage, node: str, now: float) -> None:
        if self._recorder is not None:
            self._recorder.observe(message, node, now)
        with self._going_on(f"judging a message of node {node}"):
            self._announce(self.engine.observe(message, node, now))
            self.picture.note(message, node)
        self._own_up()

    # ------------------------------------------------------------ time

    def beat(self) -> None:
        """A second has passed: judge what time changes, and show what is new.

        After a pause the frames that queued up meanwhile come first: what time changes is judged a second later.
        """
        now = self._now()
        self._has_passed_over, self._has_paused = self._has_paused and not self._has_passed_over, False
        if self._has_passed_over:
            return
        self._beat_at = self._steady_at
        self._judge_time(now)
        if self._steady_at >= self._forget_at:
            self._forget_at = self._steady_at + FORGETTING_SECONDS
            self._forget(now - FORGET_SECONDS)
        with self._going_on("showing what is new"):
            self._publish_changes(now)
            alerts = self.board.refresh(self.engine.episodes(), now, except_for=self.journal.in_flight)
            self._audience.publish([*self.picture.readings(now), *(wire.AlertChanged(alert=alert) for alert in alerts)])

    def _judge_time(self, now: float) -> None:
        if self._recorder is not None:
            self._recorder.advance(now)
        with self._going_on("judging what time changes"):
            self._announce(self.engine.advance(now))
        self._own_up()

    @contextlib.contextmanager
    def _going_on(self, doing: str) -> Iterator[None]:
        """A defect of our own costs what it concerns and nothing else: it is logged and counted."""
        try:
            yield
        except Exception:
            self.count_failure()
            logger.exception("%s failed; everything else goes on", doing)

    def count_failure(self) -> None:
        """A defect of our own; whoever found it has logged it."""
        self.failures_total += 1

    def _own_up(self) -> None:
        """Count the defects of single rules; of each rule in force the first one is in the log."""
        if not self.engine.failures:
            return
        for failure in self.engine.failures:
            self.failures_total += 1
            if failure.rule not in self._broken_rules:
                self._broken_rules.add(failure.rule)
                logger.error(
                    "the rule %s cannot be judged of %s; every other rule goes on",
                    failure.rule,
                    " ".join(filter(None, failure.subject)),
                    exc_info=failure.error,
                )
        self.engine.failures.clear()

    def seconds_since_beat(self) -> float:
        return self._steady() - self._beat_at

    # ------------------------------------------------------------ forgetting

    def knows(self, node: str) -> bool:
        """Whether there is anything to forget of a node: itself, or an alert of it."""
        return node in self.engine.fleet.nodes or any(
            episode.labels.get("node") == node for episode in self.engine.episodes()
        )

    def check_gone(self, node: str) -> None:
        """Raises StillConnectedError."""
        session = self.roster.find(node)
        if session is not None and session.peer is not None:
            raise StillConnectedError(f'the agent of node "{node}" is connected; stop it first')

    def retire(self, node: str) -> None:
        """A person says that a node is gone for good: its alerts end, nothing is left. Raises StillConnectedError."""
        self.check_gone(node)
        now = self._now()
        is_simulated = self._is_simulated({"node": node})
        runs = set(self.engine.fleet.runs)
        if self._recorder is not None:
            self._recorder.retire(node, now)
        ended = self.engine.retire(node, now)
        self.journal.announce(
            [put_into_words(transition, self.engine.rules, simulated=is_simulated) for transition in ended]
        )
        self._tell_forgotten([node], [run for run in runs if run not in self.engine.fleet.runs])

    def _forget(self, before: float) -> None:
        with self._going_on("forgetting what is long gone"):
            if self._recorder is not None:
                self._recorder.forget(before)
            self._tell_forgotten(*self.engine.forget(before))

    def _tell_forgotten(self, nodes: Sequence[str], runs: Sequence[str]) -> None:
        self.roster.forget(nodes)
        if nodes or runs:
            self._audience.publish([self.picture.forget(nodes, runs)])

    # ------------------------------------------------------------ rules and restarts

    def replace_rules(self, rules: RuleSet) -> None:
        """Put other rules in force; `report_rules` shows them. What they end is said in the words of the old ones."""
        old = self.engine.rules
        ended = self.engine.replace_rules(rules, self._now())
        self._broken_rules.clear()
        self.journal.announce([self._in_words(transition, old) for transition in ended])

    def report_rules(self, error: str | None) -> None:
        """Show which rules are in force, and what is wrong with their file."""
        self.rules_error = error
        self._audience.publish([wire.RulesChanged(server=self.server_info(), rules=self.rules())])

    def recall(self, messages: Iterable[tuple[str, wire.AgentMessage]], heard_at: dict[str, float]) -> None:
        """Take stored (node, message) pairs in, before any agent is admitted. A node's hello comes first.

        `heard_at`: when each node counts as heard last. It had no time to connect again yet.
        """
        for node, message in messages:
            now = heard_at.get(node, self.started_at)
            if self._recorder is not None:
                self._recorder.recall(message, node, now)
            self.engine.recall(message, node, now)

    def restore(self, firing: Sequence[wire.Transition], ended: Iterable[wire.Alert]) -> None:
        """Go on with the alerts that were open before a restart. `ended`: those that were over, oldest first."""
        now = self._now()
        if self._recorder is not None:
            self._recorder.restore(firing, now)
        self.board.remember_ended(ended)
        self._announce(self.engine.restore(firing, now))
        self.board.refresh(self.engine.episodes(), now, except_for=self.journal.in_flight)

    # ------------------------------------------------------------ telling

    def _announce(self, transitions: Sequence[wire.Transition]) -> None:
        if transitions:
            self.journal.announce([self._in_words(transition) for transition in transitions])

    def _in_words(self, transition: wire.Transition, rules: RuleSet | None = None) -> wire.Transition:
        is_simulated = self._is_simulated(transition.labels)
        return put_into_words(transition, rules or self.engine.rules, simulated=is_simulated)

    def _is_simulated(self, labels: dict[str, str]) -> bool:
        node = self.engine.fleet.nodes.get(labels.get("node", ""))
        if node is not None:
            return node.hello.simulated
        run = self.engine.fleet.runs.get(labels.get("run", ""))
        return run is not None and run.simulated

    def tell(self, transitions: Sequence[wire.Transition]) -> None:
        """The journal has stored these, or could not: either way people are told now."""
        now = self._now()
        with self._going_on("showing alerts"):
            self._publish_changes(now)
            self._audience.publish([wire.AlertChanged(alert=self.board.take(one, now)) for one in transitions])
        self._herald.offer(transitions)

    # ------------------------------------------------------------ showing

    def snapshot(self) -> wire.Snapshot:
        """Everything, as of now. Whoever watches already is told first what the snapshot holds and they do not."""
        now = self._now()
        self._publish_changes(now)
        return wire.Snapshot(
            at=now,
            server=self.server_info(),
            nodes=tuple(self.picture.nodes(now)),
            runs=tuple(self.picture.runs()),
            alerts=self.board.all(),
            rules=self.rules(),
        )

    def rules(self) -> tuple[wire.Rule, ...]:
        return tuple(rule_view(rule) for rule in self.engine.rules.rules if rule.enabled)

    def open_alerts(self) -> list[wire.Alert]:
        """What is pending or firing, with its numbers as of now; what fires was stored first."""
        now = self._now()
        awaited = self.journal.in_flight
        told = [alert for alert in self.board.open() if alert.id in awaited]
        return told + [self.board.view(one, now) for one in self.engine.episodes() if one.id not in awaited]

    def _skew_of(self, node: str) -> float:
        session = self.roster.find(node)
        return session.skew_seconds if session else 0.0

    def server_info(self) -> wire.ServerInfo:
        return wire.ServerInfo(version=__version__, started_at=self.started_at, rules_error=self.rules_error)

    def _publish_changes(self, now: float) -> None:
        self._audience.publish(self.picture.changes(now))
