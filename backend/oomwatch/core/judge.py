"""What the rules say of one subject, and what becomes of its alerts: condition -> verdict -> lifecycle -> causes.

A condition is asked when something arrives that it hears. Where an episode is open all of its rule's are, whatever
arrives, for anything may end it.
"""

from collections import deque
from collections.abc import Sequence
from itertools import compress, product
from typing import NamedTuple

from msgspec import structs

from oomwatch import wire
from oomwatch.core.asking import Question, any_of, ask, asking, stands
from oomwatch.core.diagnosis import Diagnose, is_clearer
from oomwatch.core.fleet import Fleet
from oomwatch.core.lifecycle import NO_LIVES, Episode, Key, Lifecycle
from oomwatch.core.rule import Rule, RuleSet
from oomwatch.core.spent import Spent
from oomwatch.core.subject import News, Scope, Subject
from oomwatch.core.verdict import UNKNOWN, Verdict

SCOPES: tuple[Scope, ...] = ("gpu", "node", "run")
MIXES_KEPT = 4096  # of rules that are open on the same subject; a fleet has dozens
LOOKS = 10  # steps after an alert has fired in which its causes may become clearer

# What a message brings, or the grid.
_BESIDE: tuple[News, ...] = ("torch", "engines", "status")
SAMPLES: dict[tuple[bool, ...], tuple[News, ...]] = {  # by whether it brings each of those
    brings: ("readings", *compress(_BESIDE, brings)) for brings in product((False, True), repeat=len(_BESIDE))
}
READINGS = SAMPLES[False, False, False]  # nearly all
BLOCKS: tuple[News, ...] = ("readings", *_BESIDE, "blocks")
EVENT: tuple[News, ...] = ("events",)
STEP: tuple[News, ...] = ("events", "steps")
TIME: tuple[News, ...] = ("time",)
ANYTHING: tuple[News, ...] = ("readings", "torch", "engines", "status", "blocks", "events", "steps", "time")
_ALL = (*SAMPLES.values(), BLOCKS, EVENT, STEP, TIME, ANYTHING)


class Defect(NamedTuple):
    """A defect that one rule has on one subject. It stays unjudged by this rule, and all else goes on."""

    rule: str  # Rule.key
    subject: Subject
    error: Exception


class _Asked(NamedTuple):
    """A rule, its key, and whether one of its conditions that hear some news is met."""

    rule: Rule
    key: str
    is_met: Question


def _asked_of(rule: Rule, scope: Scope, news: tuple[News, ...]) -> _Asked:
    return _Asked(rule, rule.key, any_of([asking(condition) for _, condition in rule.hearing(scope, news)]))


class Judge:
    """Judges subjects of a fleet by the rules in force."""

    def __init__(
        self,
        rules: RuleSet,
        fleet: Fleet,
        lifecycle: Lifecycle,
        diagnose: Diagnose,
        defects: deque[Defect],
        spent: Spent,
    ) -> None:
        self._rules = rules
        self._fleet = fleet
        self._lifecycle = lifecycle
        self._diagnose = diagnose
        self._defects = defects
        self._spent = spent
        self._judge_one = spent.around(self._judge_safely)
        self._by_scope = {scope: [rule for rule in rules.in_use() if scope in rule.scopes] for scope in SCOPES}
        self._hearing = {
            news: {
                scope: [rule for rule in self._by_scope[scope] if rules.hears(rule, scope, news)] for scope in SCOPES
            }
            for news in _ALL
        }
        self._asked = {
            news: {scope: [_asked_of(rule, scope, news) for rule in of_scope[scope]] for scope in SCOPES}
            for news, of_scope in self._hearing.items()
        }
        self._with_open: dict[tuple[Scope, tuple[News, ...], frozenset[str]], list[Rule]] = {}

    def scopes_hearing(self, news: tuple[News, ...]) -> list[Scope]:
        """The kinds of subject of which some rule can come true by such news."""
        return [scope for scope in SCOPES if self._hearing[news][scope]]

    def judge(self, subjects: Sequence[Subject], news: tuple[News, ...], now: float) -> list[wire.Transition]:
        """Judge by the rules that such news can make true, and by those with an open episode, which anything ends.

        Where nothing is open and no condition is met, nothing follows, which is how nearly every reading ends.
        """
        all_open = self._lifecycle.open
        quiet = [subject for subject in subjects if subject not in all_open] if all_open else subjects
        with self._fleet.keeping:
            todo = self._hearing_all(quiet, news) if self._rules.overrides else self._met(quiet, news, now)
            if not todo and quiet is subjects:
                return []
            return [
                one for subject in subjects for one in self._judge_subject(subject, todo.get(subject, ()), news, now)
            ]

    def _judge_subject(
        self, subject: Subject, met: Sequence[Rule], news: tuple[News, ...], now: float
    ) -> list[wire.Transition]:
        open_here = self._lifecycle.open.get(subject, {})
        rules = self._rules_for(subject.scope, news, frozenset(open_here)) if open_here else met
        judged = [self._judge_one(rule, subject, open_here.get(rule.key), news, now) for rule in rules]
        if "steps" in news:
            self._look_again(subject, now)
        return [transition for transition in judged if transition is not None]

    def _hearing_all(self, subjects: Sequence[Subject], news: tuple[News, ...]) -> dict[Subject, list[Rule]]:
        return {subject: self._hearing[news][subject.scope] for subject in subjects}

    def _met(self, subjects: Sequence[Subject], news: tuple[News, ...], now: float) -> dict[Subject, list[Rule]]:
        """Of the rules that hear the news those that are to be judged, by subject."""
        lap, fleet, met = self._spent.lap(), self._fleet, dict[Subject, list[Rule]]()
        for scope, asked in self._asked[news].items():
            of_scope = [subject for subject in subjects if subject.scope == scope] if asked else ()
            for rule, key, is_met in asked if of_scope else ():
                for subject in of_scope:
                    try:
                        if is_met(fleet, subject, now):
                            met.setdefault(subject, []).append(rule)
                    except Exception:  # noqa: PERF203 - a defect: the judgement says of what
                        met.setdefault(subject, []).append(rule)
                lap(key)
        return met

    def _rules_for(self, scope: Scope, news: tuple[News, ...], open_keys: frozenset[str]) -> list[Rule]:
        """Those that hear the news, and those with an open episode."""
        known = self._with_open.get((scope, news, open_keys))
        if known is None:
            keys = open_keys.union(rule.key for rule in self._hearing[news][scope])
            known = [rule for rule in self._by_scope[scope] if rule.key in keys]
            if len(self._with_open) >= MIXES_KEPT:
                self._with_open.clear()
            self._with_open[scope, news, open_keys] = known
        return known

    def _judge_safely(
        self, rule: Rule, subject: Subject, episode: Episode | None, news: tuple[News, ...], now: float
    ) -> wire.Transition | None:
        """A defect of one rule must not take along what the others found."""
        try:
            return self._judge_rule(rule, subject, episode, news, now)
        except Exception as error:
            self._defects.append(Defect(rule.key, subject, error))
            return None

    def _judge_rule(
        self, rule: Rule, subject: Subject, episode: Episode | None, news: tuple[News, ...], now: float
    ) -> wire.Transition | None:
        if self._rules.overrides:
            rule = self._rules.effective(rule, self._fleet.labels(subject))
        if not rule.enabled:
            return self._lifecycle.end(Key(rule.key, subject), now, "rule removed") if episode else None
        if news is TIME and episode is not None and self._stays(rule, episode, now):
            self._lifecycle.stay(episode, now)
            return None
        verdict, condition = self._verdict(rule, subject, episode, news, now)
        if verdict.state != "active" and episode is None:
            return None
        labels = episode.labels if episode else self._fleet.labels(subject)
        transition = self._lifecycle.step(
            rule,
            subject,
            labels,
            verdict,
            now,
            rhythm_seconds=self._fleet.rhythm_seconds(subject),
            lives=lives.now if (lives := self._fleet.lives(labels)) else NO_LIVES,
        )
        if verdict.state == "active":
            episode = self._lifecycle.open[subject][rule.key]
            episode.condition = condition
            if transition is not None and transition.lowered_from is None:
                return self._with_causes(transition, episode, verdict, now)
        return transition

    def _stays(self, rule: Rule, episode: Episode, now: float) -> bool:
        """Whether an open episode is as it was judged last: its one condition would say the same, and nothing follows.

        Of ten thousand alerts that are open nearly all are, at every second of the grid.
        """
        conditions = rule.conditions[episode.subject.scope]
        is_one = len(conditions) == 1 and rule is episode.rule
        return is_one and episode.would_stay(now) and stands(conditions[0][1], self._fleet, episode.subject, now)

    def _with_causes(
        self, transition: wire.Transition, episode: Episode, verdict: Verdict, now: float
    ) -> wire.Transition:
        """An alert that is raised says why. A defect in finding the causes must not lose the alert."""
        try:
            condition = episode.rule.when[episode.condition]
            episode.causes = self._diagnose(self._fleet, episode.subject, condition, verdict, now)
            episode.remedies = ()  # what was told before a restart was for other causes
        except Exception as error:
            self._defects.append(Defect(episode.rule.key, episode.subject, error))
        return structs.replace(transition, causes=episode.causes, remedies=episode.remedies)

    def _look_again(self, subject: Subject, now: float) -> None:
        """After a step more may be known of what fires: a cause that has become clearer takes the place of the first.

        What was told stays told; the board and what is told from now on have the new one. A failure is explained by
        what led to it: the steps after it are those of another start.
        """
        for episode in self._lifecycle.open.get(subject, {}).values():
            told = episode.fired_at is not None and episode.fired_at < now
            failed = "event" in episode.verdict.facts
            if failed or not told or episode.state_before != "active" or episode.looked_again >= LOOKS:
                continue
            episode.looked_again += 1
            try:
                condition = episode.rule.when[episode.condition]
                causes = self._diagnose(self._fleet, subject, condition, episode.verdict, now)
            except Exception as error:
                self._defects.append(Defect(episode.rule.key, subject, error))
                continue
            if is_clearer(causes, episode.causes):
                episode.causes, episode.remedies = causes, ()

    def _verdict(
        self, rule: Rule, subject: Subject, episode: Episode | None, news: tuple[News, ...], now: float
    ) -> tuple[Verdict, int]:
        """The first active verdict of the rule's conditions; else that of the condition which was active last."""
        last = episode.condition if episode is not None and episode.condition < len(rule.when) else 0
        verdict_of_last = UNKNOWN
        asked = rule.conditions[subject.scope] if episode else rule.hearing(subject.scope, news)
        for index, condition in asked:
            verdict = ask(condition, self._fleet, subject, now)
            if verdict.state == "active":
                return verdict, index
            if index == last:
                verdict_of_last = verdict
        return verdict_of_last, last
