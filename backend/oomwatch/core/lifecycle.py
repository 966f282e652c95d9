"""From verdicts to pending, firing and resolved: one state machine for every rule.

It knows nothing of what a condition means. It thinks in episodes, because the memory of a training step is a sawtooth
that meets and leaves a condition twice a step:

- An episode begins when the condition is first met. It ends when the condition has not been met for the hold time.
- Within it, the time during which the condition holds is added up. When the sum reaches `for`, the alert fires.
- While nothing is known, both sums stand still: missing data neither fires an alert nor resolves one.

An alert that says of itself that it is steady is for information: from its beginning, or lowered to it. It is raised
again when it no longer is, and stays the same alert.

The hold time is the rule's `keep_firing_for`, or longer where a rhythm is known: one and a half of the run's steps, or
of the longest gap between two recent spells, or the rule's `keep_firing_steps`.
"""

from hashlib import blake2s
from math import isfinite
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.lives import Lives
from oomwatch.core.rule import Rule
from oomwatch.core.subject import Subject
from oomwatch.core.verdict import INACTIVE, Verdict

RHYTHM_MARGIN = 1.5
GAP_LEARNED_SECONDS_MAX = 900.0  # a longer pause is no rhythm, but two incidents
HOLD_SECONDS_MAX = 1800.0
QUIET_FORGOTTEN_SECONDS = 3600.0
NO_LIVES = Lives()


class Key(NamedTuple):
    """What an episode belongs to."""

    rule: str  # Rule.key
    subject: Subject


class Episode:
    """One episode of one rule on one subject, from the first time its condition was met."""

    def __init__(self, rule: Rule, subject: Subject, labels: dict[str, str], now: float) -> None:
        self.rule = rule
        self.subject = subject
        self.labels = labels
        self.started_at = now
        self.fired_at: float | None = None
        self.active_seconds = 0.0
        self.quiet_seconds = 0.0
        self.judged_at = now
        self.last_active_at = now
        self.verdict = Verdict("unknown")  # the latest that was active
        self.verdict_at = now  # since when it has said so
        self.state_before: str = "unknown"
        self.condition = 0  # index of the condition that was active last
        self.id = alert_id(rule.key, subject, now)
        self.causes: tuple[wire.Cause, ...] = ()  # as judged when it fired or was raised again, or a clearer one since
        self.remedies: tuple[wire.Remedy, ...] = ()  # as they were told before a restart
        self.looked_again = 0  # how often for a clearer cause
        self.lowered = False  # it says what is steady: for information, until there is a new peak
        self.quiet = False  # and has done so since it began
        self.begun = Lives()  # how often its run had started when it began

    def judge(self, verdict: Verdict, now: float) -> None:
        """Add the time since the last verdict to the sum that it belongs to, and take the new verdict in."""
        elapsed = max(0.0, now - self.judged_at)
        if self.state_before == "active":
            self.active_seconds += elapsed
        elif self.state_before == "inactive":
            self.quiet_seconds += elapsed
        self.judged_at, self.state_before = now, verdict.state
        if verdict.state == "active":
            self.verdict_at = now if verdict != self.verdict else self.verdict_at
            self.quiet_seconds, self.last_active_at, self.verdict = 0.0, now, verdict

    def would_stay(self, now: float) -> bool:
        """Whether nothing would follow from the last verdict, were it given again: it neither fires nor ends."""
        elapsed = max(0.0, now - self.judged_at)
        if self.state_before == "active":
            return self.fired_at is not None or self.active_seconds + elapsed < self.rule.for_seconds
        return self.state_before == "inactive" and self.quiet_seconds + elapsed < self.rule.keep_firing_for_seconds

    @property
    def is_stale(self) -> bool:
        return self.state_before == "unknown"

    def transition(
        self,
        state: wire.AlertState,
        now: float,
        reason: wire.TransitionReason | None = None,
        change: wire.TransitionChange = "state",
    ) -> wire.Transition:
        return wire.Transition(
            id=self.id,
            alert=self.rule.alert,
            severity="info" if self.lowered else self.rule.severity,
            lowered_from=self.rule.severity if self.lowered else None,
            change=change,
            quiet=self.quiet,
            state=state,
            at=now,
            started_at=self.started_at,
            labels=self.labels,
            value=self.verdict.value,
            limit=self.verdict.limit,
            unit=self.verdict.unit,
            facts=_finite(self.verdict.facts),
            reason=reason,
            causes=self.causes,
            remedies=self.remedies,
        )


def _finite(facts: dict[str, wire.Fact]) -> dict[str, wire.Fact]:
    """Without what no message can hold: a step of no time at all makes the next one infinitely longer."""
    return {name: fact for name, fact in facts.items() if not isinstance(fact, float) or isfinite(fact)}


def alert_id(rule_key: str, subject: Subject, started_at: float) -> str:
    """Sixteen hexadecimal digits, the same for the same alert on every replay."""
    text = "\n".join((rule_key, *subject, f"{started_at:.3f}"))
    return blake2s(text.encode(), digest_size=8).hexdigest()


class Lifecycle:
    """All episodes. `open` is what a person sees; what has ended leaves only its rhythm behind."""

    def __init__(self) -> None:
        self.open: dict[Subject, dict[str, Episode]] = {}  # by subject and Rule.key
        self._last_active: dict[Key, float] = {}
        self._gaps: dict[Key, float] = {}

    def step(
        self,
        rule: Rule,
        subject: Subject,
        labels: dict[str, str],
        verdict: Verdict,
        now: float,
        *,
        rhythm_seconds: float,
        lives: Lives = NO_LIVES,
    ) -> wire.Transition | None:
        """Take one verdict in; returns the change of state that follows from it, if any."""
        key = Key(rule.key, subject)
        episode = self.find(key)
        if verdict.state == "active":
            self._learn_gap(key, now)
        if episode is None:
            if verdict.state != "active":
                return None
            episode = self._open(key, Episode(rule, subject, labels, now))
            episode.begun = lives
        episode.rule = rule
        episode.judge(verdict, now)
        if episode.fired_at is None and verdict.state == "active" and episode.active_seconds >= rule.for_seconds:
            episode.fired_at = now
            episode.lowered = episode.quiet = verdict.steady is True
            return episode.transition("firing", now)
        if episode.fired_at is not None and verdict.state == "active" and verdict.steady is (not episode.lowered):
            episode.lowered, episode.quiet = not episode.lowered, False
            return episode.transition("firing", now, change="severity")
        if verdict.state == "inactive" and episode.quiet_seconds >= self._hold_seconds(key, rule, rhythm_seconds):
            return self.end(key, now, "recovered")
        return None

    def stay(self, episode: Episode, now: float) -> None:
        """Take the last verdict in again: time has passed and nothing else. Only where the episode `would_stay`."""
        is_active = episode.state_before == "active"
        if is_active:
            self._learn_gap(Key(episode.rule.key, episode.subject), now)
        episode.judge(episode.verdict if is_active else INACTIVE, now)

    def clock_jumped(self, seconds: float) -> None:
        """Move the times that the next judgement is measured from; those that people were told stay."""
        for episodes in self.open.values():
            for episode in episodes.values():
                episode.judged_at += seconds
                episode.verdict_at += seconds
        for key in self._last_active:
            self._last_active[key] += seconds

    def forget(self, before: float) -> None:
        """Drop the rhythms of what has long been quiet."""
        for key in [key for key, at in self._last_active.items() if at < before and self.find(key) is None]:
            del self._last_active[key]
            self._gaps.pop(key, None)

    def episodes(self) -> list[Episode]:
        """Every open one, those of one subject together."""
        return [episode for of_subject in self.open.values() for episode in of_subject.values()]

    def find(self, key: Key) -> Episode | None:
        return self.open.get(key.subject, {}).get(key.rule)

    def open_keys(self) -> list[Key]:
        """Every open episode's, those of one subject together."""
        return [Key(rule, subject) for subject, of_subject in self.open.items() for rule in of_subject]

    def _open(self, key: Key, episode: Episode) -> Episode:
        self.open.setdefault(key.subject, {})[key.rule] = episode
        return episode

    def end(self, key: Key, now: float, reason: wire.TransitionReason) -> wire.Transition | None:
        """Close an episode; a transition only where people had been told of it."""
        of_subject = self.open[key.subject]
        episode = of_subject.pop(key.rule)
        if not of_subject:
            del self.open[key.subject]
        return episode.transition("resolved", now, reason) if episode.fired_at is not None else None

    def restore(
        self,
        rule: Rule,
        subject: Subject,
        firing: wire.Transition,
        fired_at: float,
        now: float,
        lives: Lives = NO_LIVES,
    ) -> None:
        """Continue an alert that was open before a restart, under its id and as it was last told of."""
        episode = Episode(rule, subject, firing.labels, firing.started_at)
        episode.id = firing.id
        episode.fired_at, episode.begun = fired_at, lives
        episode.judged_at = now
        episode.lowered, episode.quiet = firing.lowered_from is not None, firing.quiet
        episode.causes, episode.remedies = firing.causes, firing.remedies
        episode.verdict_at = firing.at
        episode.verdict = Verdict("active", firing.value, firing.limit, firing.unit, firing.facts)
        self._open(Key(rule.key, subject), episode)

    def _hold_seconds(self, key: Key, rule: Rule, rhythm_seconds: float) -> float:
        rhythm = RHYTHM_MARGIN * max(rhythm_seconds, self._gaps.get(key, 0.0))
        of_steps = rule.keep_firing_steps * rhythm_seconds
        return max(rule.keep_firing_for_seconds, of_steps, min(rhythm, HOLD_SECONDS_MAX))

    def _learn_gap(self, key: Key, now: float) -> None:
        last = self._last_active.get(key)
        if last is not None:
            gap = now - last
            if gap > QUIET_FORGOTTEN_SECONDS:
                self._gaps.pop(key, None)
            elif gap <= GAP_LEARNED_SECONDS_MAX:
                self._gaps[key] = max(gap, self._gaps.get(key, 0.0))
        self._last_active[key] = now
