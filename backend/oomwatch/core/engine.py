"""The engine: takes messages and the time in, and says what follows.

    observe(message, now)   a message arrived: take it in, and judge the subjects that it concerns
    advance(now)            time has passed: judge, on a one-second grid, what time alone can change

Both return the transitions that follow, in order. The result depends only on the sequence of calls: the live server,
replay and the tests all come through here.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from oomwatch import wire
from oomwatch.core.diagnosis import Diagnose, diagnose
from oomwatch.core.ending import endings, overtaken
from oomwatch.core.fleet import Fleet
from oomwatch.core.grid import Grid
from oomwatch.core.intake import Intake
from oomwatch.core.judge import (
    ANYTHING,
    BLOCKS,
    EVENT,
    SAMPLES,
    STEP,
    TIME,
    Defect,
    Judge,
)
from oomwatch.core.lifecycle import NO_LIVES, Episode, Key, Lifecycle
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.outcome import Outcomes
from oomwatch.core.past import Past
from oomwatch.core.rule import Rule, RuleSet, key_of, severity_of
from oomwatch.core.spent import Spent
from oomwatch.core.subject import News, Subject, subject_of

DEFECTS_KEPT = 1000  # for a caller that never asks for them


class Engine:
    """Owns the fleet and the episodes. Nothing else changes either."""

    def __init__(
        self, rules: RuleSet, *, diagnose: Diagnose = diagnose, stopwatch: Callable[[], float] | None = None
    ) -> None:
        self.fleet = Fleet()
        self._intake = Intake(self.fleet)
        self._diagnose = diagnose
        self.spent = Spent(stopwatch)
        self.defects: deque[Defect] = deque(maxlen=DEFECTS_KEPT)  # whoever has seen to them clears them
        self._lifecycle = Lifecycle()
        self._outcomes = Outcomes(self.fleet)
        self._grid = Grid()
        self._take_rules(rules)

    def _take_rules(self, rules: RuleSet) -> None:
        self.rules = rules
        self._rule_of = {rule.key: rule for rule in rules.rules}
        self._judge = Judge(rules, self.fleet, self._lifecycle, self._diagnose, self.defects, self.spent)
        self._unseen = set(self.fleet.nodes)  # by these rules: they are yet to judge any reading of them

    # ------------------------------------------------------------ input

    def observe(self, message: wire.AgentMessage, node: str, now: float) -> list[wire.Transition]:
        """Take a message of `node` in. Before its first hello a node is unknown, and what it says is dropped."""
        transitions: list[wire.Transition] = []
        subjects, news = self._take_in(message, node, now)
        if isinstance(message, wire.Event):
            transitions += self._became(self._outcomes.observe, message, subjects, now)
        if isinstance(message, wire.Event) and isinstance(message.body, wire.Config | wire.Step):
            transitions += self._end_overtaken(now)  # first: what comes now is of another start, and another alert
        transitions += self._judge.judge(subjects, news, now)
        return self._noted(transitions)

    def _noted(self, transitions: list[wire.Transition]) -> list[wire.Transition]:
        """Have what becomes of these watched."""
        for one in transitions:
            self._outcomes.note(one, self._rule_of.get(key_of(one)), subject_of(one.labels))
        return transitions

    def _became(self, tell: Callable[..., list[wire.Transition]], *told: object) -> list[wire.Transition]:
        """What became of earlier warnings. A defect in that must not take along what the rules found."""
        try:
            return tell(*told)
        except Exception as error:
            self.defects.append(Defect("the outcome of warnings", Subject("run", ""), error))
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
            answered = record.all_answer
            closed = self._intake.observe_sample(message, record)
            as_ever = answered and record.all_answer
            return record.subjects, self._news_of(message, record, closed=closed, as_ever=as_ever)
        if isinstance(message, wire.Event):
            return self._intake.observe(message, record), STEP if isinstance(message.body, wire.Step) else EVENT
        record.stopped = True
        return [record.subject], ANYTHING

    def _news_of(self, sample: wire.Sample, node: NodeRecord, *, closed: bool, as_ever: bool) -> tuple[News, ...]:
        if node.name in self._unseen:
            self._unseen.remove(node.name)
            return ANYTHING
        if closed:
            return BLOCKS
        return SAMPLES[bool(sample.torch), bool(sample.engines), not as_ever]

    def advance(self, now: float) -> list[wire.Transition]:
        """Judge at every grid second since the last call, up to `now`."""
        transitions: list[wire.Transition] = []
        for at in self._grid.until(now):
            if self._is_idle():
                self._grid.pass_until(now)
                break
            transitions += self._noted(self._judge.judge(self._subjects_on_grid(), TIME, at))
            transitions += self._noted(self._end_overtaken(at) + self._end_unseen(at))
            transitions += self._became(self._outcomes.advance, at)
        return transitions

    def _is_idle(self) -> bool:
        """Whether the grid has nothing to judge: nothing is open, and no rule can come true by time alone."""
        return not (self._lifecycle.open or self._outcomes.waiting or self._judge.scopes_hearing(TIME))

    def _subjects_on_grid(self) -> list[Subject]:
        """Subjects with an episode, and those that rules watch which need no data to come true."""
        subjects = dict.fromkeys(self._lifecycle.open)
        for scope in self._judge.scopes_hearing(TIME):
            subjects |= dict.fromkeys(self.fleet.subjects(scope))
        return list(subjects)

    def _end_unseen(self, now: float) -> list[wire.Transition]:
        over = endings(self.fleet, self._lifecycle.open_keys(), now)
        return [ended for key, why in over if (ended := self._lifecycle.end(key, now, why))]

    def _end_overtaken(self, now: float) -> list[wire.Transition]:
        over = overtaken(self.fleet, self._lifecycle.episodes())
        return [ended for key, why in over if (ended := self._lifecycle.end(key, now, why))]

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
        return self._noted([*(one for one in resolved if one is not None), *self._end_overtaken(now)])

    def _continue(self, story: Sequence[wire.Transition], now: float) -> wire.Transition | None:
        """Open an alert as it was last told of; the transition that ends it where its rule is gone."""
        last = story[-1]
        fired_at = next(one.at for one in story if one.state == "firing")
        subject = subject_of(last.labels)
        rule = next((one for one in self.rules.in_use() if one.key == key_of(last)), None)
        orphan = Rule(alert=last.alert, severity=severity_of(last), when=())
        lives = self.fleet.lives(last.labels)
        begun = lives.before(last.started_at) if lives else NO_LIVES
        self._lifecycle.restore(rule or orphan, subject, last, fired_at, now, begun)
        return None if rule else self._lifecycle.end(Key(orphan.key, subject), now, "rule removed")

    def follow(self, word: wire.Transition, now: float) -> None:
        """Another server, which judges the same, speaks for this subject: its alerts go on here as it says."""
        if word.change not in ("state", "severity"):
            return
        key = Key(key_of(word), subject_of(word.labels))
        episode = self._lifecycle.find(key)
        if word.state == "resolved":
            self._noted([word])
            if episode is not None and (episode.id == word.id or episode.started_at <= word.at):
                self._lifecycle.end(key, now, "recovered")
            return
        is_same = episode is not None and episode.id == word.id and episode.fired_at is not None
        if episode is not None and is_same and episode.lowered == (word.lowered_from is not None):
            return
        if any(rule.key == key.rule for rule in self.rules.in_use()):
            self._noted([word])
            self._continue([word], now)

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

    def excuse_silence(self, seconds: float, nodes: Iterable[str] | None = None) -> None:
        """The server stood still for so long, or was cut off from these nodes: their silence is not their own."""
        self.fleet.excuse_silence(seconds, nodes)

    def clock_jumped(self, seconds: float) -> None:
        """The server's clock was set by so much (negative: back). What was measured by it moves along."""
        self.fleet.shift(seconds)
        self._lifecycle.clock_jumped(seconds)
        self._outcomes.clock_jumped(seconds)
        self._grid.shift(seconds)

    def forget(self, before: float) -> tuple[list[str], list[str]]:
        """Drop what was last heard before a time and has nothing open; the names of the nodes and of the runs."""
        self._lifecycle.forget(before)
        forgotten = self.fleet.forget(before, self._lifecycle.open)
        self._outcomes.forget()
        return forgotten

    # ------------------------------------------------------------ views

    def episodes(self) -> list[Episode]:
        """What is pending or firing, oldest first."""
        return sorted(self._lifecycle.episodes(), key=lambda episode: (episode.started_at, episode.id))
