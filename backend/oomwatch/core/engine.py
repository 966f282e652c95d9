"""The engine: which rules concern which subjects, when they are judged, and what came of it.

    observe(message, now)   a message arrived: take it in, and judge the subjects that it concerns
    advance(now)            time has passed: judge, on a one-second grid, what time alone can change

Both return the transitions that follow, in order. The result depends only on the sequence of calls: the live server,
replay and the tests all come through here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import floor
from typing import NamedTuple

from msgspec import structs

from oomwatch import wire
from oomwatch.core.diagnosis import Diagnose, diagnose
from oomwatch.core.fleet import Fleet
from oomwatch.core.intake import Intake
from oomwatch.core.lifecycle import Episode, Key, Lifecycle
from oomwatch.core.outcome import Outcomes
from oomwatch.core.past import Past
from oomwatch.core.rule import Rule, RuleSet
from oomwatch.core.subject import News, Scope, Subject, subject_of
from oomwatch.core.verdict import UNKNOWN, Verdict

GRID_SECONDS = 1.0
UNWATCHED_SECONDS = 3600.0  # after an agent's goodbye its alerts stay to be seen for so long
GRID_POINTS_MAX = 600  # after a longer standstill the grid is taken up again ten minutes back
FAILURES_KEPT = 1000  # for a caller that never asks for them
SCOPES: tuple[Scope, ...] = ("gpu", "node", "run")

# What a message brings, or the grid.
READINGS: tuple[News, ...] = ("readings",)
READINGS_AND_TORCH: tuple[News, ...] = ("readings", "torch")
BLOCKS: tuple[News, ...] = ("readings", "torch", "blocks")
EVENT: tuple[News, ...] = ("events",)
STEP: tuple[News, ...] = ("events", "steps")
TIME: tuple[News, ...] = ("time",)
ANYTHING: tuple[News, ...] = ("readings", "torch", "blocks", "events", "steps", "time")


class Failure(NamedTuple):
    """A defect that one rule has on one subject. It stays unjudged by this rule, and all else goes on."""

    rule: str  # Rule.key
    subject: Subject
    error: Exception


class Engine:
    """Owns the fleet and the episodes. Nothing else changes either."""

    def __init__(self, rules: RuleSet, *, diagnose: Diagnose = diagnose) -> None:
        self.fleet = Fleet()
        self._intake = Intake(self.fleet)
        self._diagnose = diagnose
        self.failures: deque[Failure] = deque(maxlen=FAILURES_KEPT)  # whoever has seen to them clears them
        self._lifecycle = Lifecycle()
        self._outcomes = Outcomes(self.fleet)
        self._grid_at: float | None = None
        self._take_rules(rules)

    def _take_rules(self, rules: RuleSet) -> None:
        self.rules = rules
        self._rule_of = {rule.key: rule for rule in rules.rules}
        self._by_scope = {scope: [rule for rule in rules.in_use() if scope in rule.scopes] for scope in SCOPES}
        self._hearing = {
            news: {scope: [rule for rule in self._by_scope[scope] if rules.hears(rule, news)] for scope in SCOPES}
            for news in (READINGS, READINGS_AND_TORCH, BLOCKS, EVENT, STEP, TIME, ANYTHING)
        }
        self._unseen = set(self.fleet.nodes)  # by these rules: they are yet to judge any reading of them

    # ------------------------------------------------------------ input

    def observe(self, message: wire.AgentMessage, node: str, now: float) -> list[wire.Transition]:
        """Take a message of `node` in. Before its first hello a node is unknown, and what it says is dropped."""
        transitions: list[wire.Transition] = []
        subjects, news = self._take_in(message, node, now)
        if isinstance(message, wire.Event):
            transitions += self._became(self._outcomes.observe, message, subjects, now)
        for subject in subjects:
            transitions += self._judge(subject, news, now)
        return self._noted(transitions)

    def _noted(self, transitions: list[wire.Transition]) -> list[wire.Transition]:
        """Have what becomes of these watched."""
        for one in transitions:
            rule = self._rule_of.get(f"{one.alert}/{one.lowered_from or one.severity}")
            self._outcomes.note(one, rule, subject_of(one.labels))
        return transitions

    def _became(self, tell: Callable[..., list[wire.Transition]], *told: object) -> list[wire.Transition]:
        """What became of earlier warnings. A defect in that must not take along what the rules found."""
        try:
            return tell(*told)
        except Exception as error:
            self.failures.append(Failure("the outcome of warnings", Subject("run", ""), error))
            return []

    def _take_in(self, message: wire.AgentMessage, node: str, now: float) -> tuple[Sequence[Subject], tuple[News, ...]]:
        """The subjects that a message concerns, and what it brings."""
        if isinstance(message, wire.Hello):
            return self._intake.greet(message, now).subjects, ANYTHING
        record = self.fleet.nodes.get(node)
        if record is None:
            return (), ANYTHING
        record.heard_at = now
        if isinstance(message, wire.Sample):
            closed = self._intake.observe_sample(message, record)
            return record.subjects, self._news_of(message, node, closed)
        if isinstance(message, wire.Event):
            return self._intake.observe(message, record), STEP if isinstance(message.body, wire.Step) else EVENT
        record.stopped = True
        return [record.subject], ANYTHING

    def _news_of(self, sample: wire.Sample, node: str, closed: bool) -> tuple[News, ...]:
        if node in self._unseen:
            self._unseen.remove(node)
            return ANYTHING
        if closed:
            return BLOCKS
        return READINGS_AND_TORCH if sample.torch else READINGS

    def advance(self, now: float) -> list[wire.Transition]:
        """Judge at every grid second since the last call, up to `now`."""
        transitions: list[wire.Transition] = []
        for at in self._grid_until(now):
            if self._is_idle():
                self._pass_until(now)
                break
            for subject in self._subjects_on_grid():
                transitions += self._noted(self._judge(subject, TIME, at))
            transitions += self._noted(self._end_runs(at) + self._end_unwatched(at))
            transitions += self._became(self._outcomes.advance, at)
        return transitions

    def _grid_until(self, now: float) -> Iterator[float]:
        last = floor(now / GRID_SECONDS) * GRID_SECONDS
        if self._grid_at is None:
            self._grid_at = last
        self._grid_at = max(self._grid_at, last - GRID_POINTS_MAX * GRID_SECONDS)
        while self._grid_at < last:
            self._grid_at += GRID_SECONDS
            yield self._grid_at

    def _is_idle(self) -> bool:
        """Whether the grid has nothing to judge: nothing is open, and no rule can come true by time alone."""
        return not (self._lifecycle.open or self._outcomes.waiting or any(self._hearing[TIME].values()))

    def _pass_until(self, now: float) -> None:
        self._grid_at = floor(now / GRID_SECONDS) * GRID_SECONDS

    def _subjects_on_grid(self) -> list[Subject]:
        """Subjects with an episode, and those that rules watch which need no data to come true."""
        subjects = dict.fromkeys(self._lifecycle.open)
        for scope in SCOPES:
            if self._hearing[TIME][scope]:
                subjects |= dict.fromkeys(self.fleet.subjects(scope))
        return list(subjects)

    def _end_runs(self, now: float) -> list[wire.Transition]:
        """Alerts of a run end with it."""
        over = [
            key
            for key in self._lifecycle.open_keys()
            if key.subject.scope == "run" and self.fleet.run_is_over(key.subject.name, now)
        ]
        return [ended for key in over if (ended := self._lifecycle.end(key, now, "run ended"))]

    def _end_unwatched(self, now: float) -> list[wire.Transition]:
        """What an agent watched that stopped on purpose, or that it lists no more, nobody will ever see recover."""
        over = [(key, why) for key in self._lifecycle.open_keys() if (why := self._why_unwatched(key.subject, now))]
        return [ended for key, why in over if (ended := self._lifecycle.end(key, now, why))]

    def _why_unwatched(self, subject: Subject, now: float) -> wire.TransitionReason | None:
        node = self.fleet.nodes.get(subject.name) if subject.scope != "run" else None
        if node is None:
            return None
        if node.stopped and now - node.heard_at > UNWATCHED_SECONDS:
            return "no longer watched"
        # A lost GPU vanishes from the list too: that is no end of it.
        listed = subject.scope == "node" or subject.gpu in node.gpus or subject.gpu in node.lost
        return None if listed else "no longer listed"

    # ------------------------------------------------------------ judging

    def _judge(self, subject: Subject, news: tuple[News, ...], now: float) -> list[wire.Transition]:
        """Judge by the rules that such news can make true, and by those with an open episode, which anything ends."""
        rules = self._hearing[news][subject.scope]
        open_here = self._lifecycle.open.get(subject, {})
        if open_here:
            heard = {rule.key for rule in rules}
            rules = [rule for rule in self._by_scope[subject.scope] if rule.key in heard or rule.key in open_here]
        judged = [self._judge_safely(rule, subject, open_here.get(rule.key), now) for rule in rules]
        return [transition for transition in judged if transition is not None]

    def _judge_safely(
        self, rule: Rule, subject: Subject, episode: Episode | None, now: float
    ) -> wire.Transition | None:
        """A defect of one rule must not take along what the others found."""
        try:
            return self._judge_rule(rule, subject, episode, now)
        except Exception as error:
            self.failures.append(Failure(rule.key, subject, error))
            return None

    def _judge_rule(self, rule: Rule, subject: Subject, episode: Episode | None, now: float) -> wire.Transition | None:
        if self.rules.overrides:
            rule = self.rules.effective(rule, self.fleet.labels(subject))
        if not rule.enabled:
            return self._lifecycle.end(Key(rule.key, subject), now, "rule removed") if episode else None
        verdict, condition = self._verdict(rule, subject, now, episode)
        if verdict.state != "active" and episode is None:
            return None
        labels = episode.labels if episode else self.fleet.labels(subject)
        transition = self._lifecycle.step(
            rule, subject, labels, verdict, now, rhythm_seconds=self.fleet.rhythm_seconds(subject)
        )
        if verdict.state == "active":
            episode = self._lifecycle.open[subject][rule.key]
            episode.condition = condition
            if transition is not None and transition.lowered_from is None:
                return self._with_causes(transition, episode, verdict, now)
        return transition

    def _with_causes(
        self, transition: wire.Transition, episode: Episode, verdict: Verdict, now: float
    ) -> wire.Transition:
        """An alert that is raised says why. A defect in finding the causes must not lose the alert."""
        try:
            condition = episode.rule.when[episode.condition]
            episode.causes = self._diagnose(self.fleet, episode.subject, condition, verdict, now)
            episode.remedies = ()  # what was told before a restart was for other causes
        except Exception as error:
            self.failures.append(Failure(episode.rule.key, episode.subject, error))
        return structs.replace(transition, causes=episode.causes, remedies=episode.remedies)

    def _verdict(self, rule: Rule, subject: Subject, now: float, episode: Episode | None) -> tuple[Verdict, int]:
        """The first active verdict of the rule's conditions; else that of the condition which was active last."""
        last = episode.condition if episode is not None and episode.condition < len(rule.when) else 0
        verdict_of_last = UNKNOWN
        for index, condition in rule.conditions[subject.scope]:
            verdict = condition.judge(self.fleet, subject, now)
            if verdict.state == "active":
                return verdict, index
            if index == last:
                verdict_of_last = verdict
        return verdict_of_last, last

    # ------------------------------------------------------------ rules and restarts

    def replace_rules(self, rules: RuleSet, now: float) -> list[wire.Transition]:
        """Put other rules in force. Alerts of rules that are gone are resolved; all others go on."""
        self._take_rules(rules)
        scopes = {rule.key: rule.scopes for rule in rules.in_use()}
        gone = [key for key in self._lifecycle.open_keys() if key.subject.scope not in scopes.get(key.rule, ())]
        return self._noted([ended for key in gone if (ended := self._lifecycle.end(key, now, "rule removed"))])

    def restore(self, told: Iterable[wire.Transition], now: float) -> list[wire.Transition]:
        """Continue the alerts that were open before a restart; those whose rule is gone are resolved.

        `told`: every transition of the alerts that are open, or whose outcome is not known yet, in their order. Call it
        after the stored messages have been taken in with `recall`, so that subjects are known.
        """
        stories: dict[str, list[wire.Transition]] = {}
        for transition in self._noted(list(told)):
            if transition.change in ("state", "severity"):
                stories.setdefault(transition.id, []).append(transition)
        resolved = [self._continue(story, now) for story in stories.values() if story[-1].state == "firing"]
        return self._noted([one for one in resolved if one is not None])

    def _continue(self, story: Sequence[wire.Transition], now: float) -> wire.Transition | None:
        """Open an alert as it was last told of; the transition that ends it where its rule is gone."""
        last = story[-1]
        fired_at = next(one.at for one in story if one.state == "firing")
        subject, severity = subject_of(last.labels), last.lowered_from or last.severity
        key = f"{last.alert}/{severity}"
        rule = next((one for one in self.rules.in_use() if one.key == key), None)
        orphan = Rule(alert=last.alert, severity=severity, when=())
        self._lifecycle.restore(rule or orphan, subject, last, fired_at, now)
        return None if rule else self._lifecycle.end(Key(orphan.key, subject), now, "rule removed")

    def remember(self, pasts: Iterable[Past]) -> None:
        """What is stored of the runs that were. Call it after `recall`, which tells which of them are going on."""
        for past in pasts:
            self.fleet.pasts.remember(past)

    def recall(self, message: wire.AgentMessage, node: str, now: float) -> None:
        """Take a stored message in without judging: what it says was judged when it was new."""
        subjects, _ = self._take_in(message, node, now)
        if isinstance(message, wire.Event):
            self._outcomes.remember(message, subjects)

    def retire(self, node: str, now: float) -> list[wire.Transition]:
        """A person says that a node is gone for good: end its alerts and forget it."""
        keys = [key for key in self._lifecycle.open_keys() if key.subject.scope != "run" and key.subject.name == node]
        ended = self._noted([ended for key in keys if (ended := self._lifecycle.end(key, now, "node removed"))])
        self.fleet.nodes.pop(node, None)
        return ended

    def excuse_silence(self, seconds: float) -> None:
        """The server stood still for so long: the nodes' silence in that time is not theirs."""
        self.fleet.excuse_silence(seconds)

    def clock_jumped(self, seconds: float) -> None:
        """The server's clock was set by so much (negative: back). What was measured by it moves along."""
        self.fleet.shift(seconds)
        self._lifecycle.clock_jumped(seconds)
        self._outcomes.clock_jumped(seconds)
        if self._grid_at is not None:
            self._grid_at += floor(seconds / GRID_SECONDS) * GRID_SECONDS

    def forget(self, before: float) -> tuple[list[str], list[str]]:
        """Drop what was last heard before a time and has nothing open; the names of the nodes and of the runs."""
        self._lifecycle.forget(before)
        forgotten = self.fleet.forget(before, self._lifecycle.open)
        self._outcomes.forget()
        return forgotten

    # ------------------------------------------------------------ views

    def episodes(self) -> list[Episode]:
        """What is pending or firing, oldest first."""
        episodes = [episode for of_subject in self._lifecycle.open.values() for episode in of_subject.values()]
        return sorted(episodes, key=lambda episode: (episode.started_at, episode.id))
