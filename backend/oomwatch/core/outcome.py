"""What became of a warning: it happened, it was avoided, or it was false.

A warning says that a memory will run full, and time tells. It happened where that memory ran full while the alert was
open, or soon after it had calmed down. It was avoided where somebody changed something and the run then went on. It was
false where nobody changed anything and nothing came.

A rule that tells a level foretells nothing: where nothing comes, its warning was not false, and gets no verdict.

A warning is calm once its alert is resolved, or lowered because what it says is steady. One that is raised again is a
new warning.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

import msgspec

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.rule import Rule
from oomwatch.core.runchanges import RunChanges
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Subject
from oomwatch.core.warned import FAILURES, Failure, Warned

# A failure so soon after a warning has calmed down is still the one that was warned of.
AFTER_SECONDS = 1800.0
AFTER_STEPS = 10
CALM_STEPS = 20  # so many more where nothing was changed: then it was false. AFTER_SECONDS at least
ECHO_SECONDS = 60.0  # a warning so soon after a failure is its echo, and foretells nothing
JUDGED_EVERY_SECONDS = 10
UNSEEN_SECONDS = 60.0
# Alerts that ended for these reasons were not seen to the end: nobody knows.
UNKNOWABLE = ("rule removed", "node removed", "no longer listed", "no longer watched")

Judgement: TypeAlias = wire.AlertVerdict | Literal["unknown"]


class Outcomes:
    """Told of the engine's transitions, of events and of the time; gives transitions that add an outcome."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._open: dict[str, Warned] = {}  # by alert id
        self._failures: list[Failure] = []  # of the last minute
        self._changes = RunChanges()

    # ------------------------------------------------------------ what is told

    def note(self, transition: wire.Transition, rule: Rule | None, subject: Subject) -> None:
        """The engine has said this, by this rule."""
        if transition.change == "outcome":
            self._open.pop(transition.id, None)
        if transition.change not in ("state", "severity"):
            return
        warning = self._open.get(transition.id)
        if transition.state == "resolved" or transition.lowered_from is not None:
            self._calm(warning, transition)
        elif transition.state == "firing" and transition.severity != "info" and rule is not None:
            self._warn(warning, transition, rule, subject)

    def _warn(self, warning: Warned | None, transition: wire.Transition, rule: Rule, subject: Subject) -> None:
        if warning is not None:
            warning.told, warning.calm_at = transition, None
            warning.warned_at, warning.facts = transition.at, transition.facts
            return
        if rule.predicts is None:
            return
        run = transition.labels.get("run")
        warning = Warned(transition, rule.predicts, subject, run, transition.at, transition.facts, level=rule.level)
        if not any(one.concerns(warning) and abs(transition.at - one.at) <= ECHO_SECONDS for one in self._failures):
            self._open[transition.id] = warning

    def _calm(self, warning: Warned | None, transition: wire.Transition) -> None:
        if warning is None:
            return
        warning.told = transition
        warning.calm_at = transition.at if warning.calm_at is None else warning.calm_at
        if transition.reason in UNKNOWABLE:
            del self._open[transition.id]

    def observe(self, event: wire.Event, subjects: Sequence[Subject], now: float) -> list[wire.Transition]:
        """The fleet has taken an event in, which concerns these subjects, its place first."""
        self.remember(event, subjects)
        channel = FAILURES.get(type(event.body))
        if channel is None or event.backlog or not subjects:
            return []
        run = next((one.name for one in subjects if one.scope == "run"), None)
        failure = Failure(event.at, channel, subjects[0], run)
        self._failures = [one for one in self._failures if event.at - one.at <= ECHO_SECONDS] + [failure]
        return list(self._happened(failure, now))

    def remember(self, event: wire.Event, subjects: Sequence[Subject]) -> None:
        """The same of an event that was judged before: only what it changes of its run counts."""
        for run in [self._fleet.runs.get(one.name) for one in subjects if one.scope == "run"]:
            if run is not None:
                self._changes.observe(event, run)

    def _happened(self, failure: Failure, now: float) -> Iterator[wire.Transition]:
        for warning in [one for one in self._open.values() if failure.concerns(self._by_its_name(one))]:
            if warning.calm_at is not None and failure.at > warning.calm_at + self._after_seconds(warning, AFTER_STEPS):
                continue  # long after: another story
            del self._open[warning.told.id]
            if failure.at >= warning.warned_at:
                lead = failure.at - warning.warned_at
                outcome = wire.Outcome(
                    verdict="happened", at=failure.at, lead_seconds=lead, lead_steps=self._steps(warning, failure.at)
                )
                yield _with(warning.told, outcome, now)

    def _by_its_name(self, warning: Warned) -> Warned:
        """A run may have got its name after the warning."""
        if warning.run is not None:
            warning.run = self._fleet.names.of(warning.run)
        return warning

    # ------------------------------------------------------------ what time tells

    @property
    def waiting(self) -> bool:
        """Whether there is a warning that time has not yet told of."""
        return bool(self._open)

    def advance(self, now: float) -> list[wire.Transition]:
        """Every ten seconds: which warnings time has told of."""
        if not self._open or now % JUDGED_EVERY_SECONDS >= 1:
            return []
        judged = [(warning, self._judge(self._by_its_name(warning), now)) for warning in self._open.values()]
        for warning, verdict in judged:
            if verdict is not None:
                del self._open[warning.told.id]
        return [
            _with(warning.told, wire.Outcome(verdict=verdict, at=now), now)
            for warning, verdict in judged
            if verdict is not None and verdict != "unknown" and not (warning.level and verdict == "false")
        ]

    def _judge(self, warning: Warned, now: float) -> Judgement | None:
        """The verdict; "unknown" where there will never be one, and None as long as there is none."""
        seen = self._sight(warning, now)
        if seen is not True:
            return seen
        self._look_for_tenants(warning)
        changed = self._has_changed(warning)
        run = self._run(warning)
        if warning.calm_at is None:
            is_over = warning.false_at is not None and now > warning.false_at
            return "false" if is_over and not changed else None
        if now < warning.calm_at + self._after_seconds(warning, AFTER_STEPS if changed else CALM_STEPS):
            return None if not self._has_ended(run, now) else _at_the_end(changed, warning.due_at, warning.calm_at)
        if run is not None and run.last_seen_at <= warning.calm_at + ECHO_SECONDS:
            return _at_the_end(changed, warning.due_at, warning.calm_at)  # it ended about when the alert did
        return "avoided" if changed else "false"

    def _sight(self, warning: Warned, now: float) -> Literal[True, "unknown"] | None:
        """True while the subject is being seen; None while it is not, and "unknown" once it is forgotten."""
        if warning.subject.scope == "run":
            return True
        node = self._fleet.nodes.get(warning.subject.name)
        if node is None:
            return "unknown"
        return True if not node.stopped and now - node.heard_at <= UNSEEN_SECONDS else None

    def _has_ended(self, run: RunRecord | None, now: float) -> bool:
        return run is not None and self._fleet.run_is_over(run.name, now)

    def _run(self, warning: Warned) -> RunRecord | None:
        return self._fleet.runs.get(warning.run or "")

    def _after_seconds(self, warning: Warned, steps: int) -> float:
        run = self._run(warning)
        rhythm = run.steps.rhythm_seconds() if run else None
        return max(AFTER_SECONDS, steps * (rhythm or 0.0))

    def _steps(self, warning: Warned, until: float) -> int | None:
        """Steps that ended between the warning and `until`; None where the run tells of none."""
        run = self._run(warning)
        if run is None or not run.steps:
            return None
        return sum(warning.warned_at < one.at <= until and not one.backlog for one in run.steps)

    # ------------------------------------------------------------ whether something was changed

    def _has_changed(self, warning: Warned) -> bool:
        """The run was restarted or configured anew, goes by another name, or another tenant of the GPU has left."""
        if warning.tenant_left or self._changes.last_at(warning.run) > warning.warned_at:
            return True
        gpu = self._fleet.gpu(warning.subject) if warning.subject.scope == "gpu" else None
        successor = self._fleet.runs.get(gpu.run or "") if gpu is not None else None
        if successor is None or warning.run is None or successor.name == warning.run:
            return False
        return successor.first_seen_at > warning.warned_at

    def _look_for_tenants(self, warning: Warned) -> None:
        gpu = self._fleet.gpu(warning.subject) if warning.subject.scope == "gpu" else None
        processes = gpu.processes if gpu is not None else None
        if processes is None or warning.run is None:
            return
        if warning.tenants is None:
            # Where no process is known to be the run's, the others may be its own.
            is_known = any(one.run == warning.run for one in processes)
            warning.tenants = frozenset(one.pid for one in processes if is_known and one.run != warning.run)
        warning.tenant_left |= bool(warning.tenants - {one.pid for one in processes})

    # ------------------------------------------------------------ clocks and forgetting

    def clock_jumped(self, seconds: float) -> None:
        """The server's clock was set by so much."""
        for warning in self._open.values():
            warning.warned_at += seconds
            warning.calm_at = None if warning.calm_at is None else warning.calm_at + seconds
        self._changes.shift(seconds)
        self._failures = [msgspec.structs.replace(one, at=one.at + seconds) for one in self._failures]

    def forget(self) -> None:
        """Drop what is kept of runs that the fleet has forgotten."""
        self._changes.keep_only(self._fleet.runs)


def _with(told: wire.Transition, outcome: wire.Outcome, now: float) -> wire.Transition:
    """The alert as it was last told of, with its outcome."""
    return msgspec.structs.replace(told, change="outcome", at=now, outcome=outcome)


def _at_the_end(changed: bool, due_at: float | None, ended_at: float) -> Judgement:
    """The run has ended without a failure. Before its time had come, a forecast cannot be called false."""
    if changed:
        return "avoided"
    return "unknown" if due_at is not None and ended_at < due_at else "false"
