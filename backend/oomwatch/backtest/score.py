"""From what was said to how good it was. Pure.

Definitions
    warning      an alert that is a warning or critical when last heard of, of a rule that predicts that a memory will
                 run full (Rule.predicts): that it has happened, that a rollout is slow, or how full a card is
                 (Rule.level), is none
    stays up     open when the memory that it is about ran out; or it ended and the same rule fired again on the same
                 subject within AGAIN_STEPS steps (AGAIN_SECONDS where no step is known), until then
    lead         from when the first warning that stays up fired until the memory ran out
    warned       a lead of at least one step; of LEAD_SECONDS_MIN where no step is known
    false alarm  a warning in an input that never ran out of memory
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median, quantiles
from typing import NamedTuple

import msgspec

from oomwatch import wire
from oomwatch.backtest.drive import Driven, Watched
from oomwatch.backtest.result import AlertResult, InputResult, RuleScore, Spread, Summary
from oomwatch.core.rule import RuleSet
from oomwatch.core.subject import Channel
from oomwatch.wording import put_into_words

LEAD_SECONDS_MIN = 60.0
AGAIN_STEPS = 10  # an alert clears after so many quiet steps at the latest
AGAIN_SECONDS = 600.0
DAY_SECONDS = 86400.0
_WARNING: tuple[wire.Severity, ...] = ("warning", "critical")


class _Alert(NamedTuple):
    """An alert's whole story, and how it counts."""

    fired: wire.Transition
    last: wire.Transition
    ended_at: float | None
    warns_of: Channel | None  # which memory it is about; None: it is no warning

    @property
    def warns(self) -> bool:
        return self.warns_of is not None


def judged(name: str, driven: Driven, rules: RuleSet, notes: Sequence[str] = ()) -> InputResult:
    """What became of one input."""
    watched = driven.watched
    start = watched.began_at or 0.0
    alerts = _alerts(driven.transitions, rules)
    oom_at = watched.oom_at
    leading = _leading(alerts, watched)
    first = min((one.fired.at for one in leading), default=None)
    lead_s = None if first is None or oom_at is None else oom_at - first
    lead_steps = _steps_between(watched, first)
    return InputResult(
        name=name,
        duration_s=max(0.0, watched.ended_at - start),
        steps=len(watched.step_times),
        oom_at_s=None if oom_at is None else oom_at - start,
        alerts=tuple(_result(one, watched, rules, stays_up=one in leading) for one in alerts),
        gpus=len(watched.gpus),
        warned=None if oom_at is None else is_in_time(lead_s, lead_steps),
        lead_s=lead_s,
        lead_steps=lead_steps,
        false_alarms=sum(one.warns for one in alerts) if oom_at is None else 0,
        notes=(*notes, *driven.defects),
    )


def is_in_time(lead_s: float | None, lead_steps: int | None) -> bool:
    """Whether a warning came early enough to do anything about it."""
    if lead_s is None:
        return False
    return lead_s >= LEAD_SECONDS_MIN if lead_steps is None else lead_steps >= 1


# ---------------------------------------------------------------- alerts


def _alerts(transitions: Iterable[wire.Transition], rules: RuleSet) -> list[_Alert]:
    """Every alert that fired, in the order of firing."""
    stories: dict[str, list[wire.Transition]] = {}
    for transition in transitions:
        stories.setdefault(transition.id, []).append(transition)
    predicts = {(rule.alert, rule.severity): None if rule.level else rule.predicts for rule in rules.rules}
    alerts = []
    for story in stories.values():
        fired = next((one for one in story if one.state == "firing" and one.change == "state"), None)
        if fired is not None:
            ended = next((one for one in story if one.state == "resolved" and one.change == "state"), None)
            last = _last(story)
            channel = predicts.get((fired.alert, fired.severity)) if last.severity in _WARNING else None
            alerts.append(_Alert(fired, last, ended.at if ended else None, channel))
    return sorted(alerts, key=lambda one: one.fired.at)


def _last(story: Sequence[wire.Transition]) -> wire.Transition:
    """The story as it stands at the end: causes and outcome are not repeated by every transition."""
    last = story[-1]
    causes = next((one.causes for one in reversed(story) if one.causes), ())
    outcome = next((one.outcome for one in reversed(story) if one.outcome), None)
    return msgspec.structs.replace(last, causes=causes, outcome=outcome)


def _leading(alerts: Sequence[_Alert], watched: Watched) -> list[_Alert]:
    """The warnings that stayed up until the memory ran out."""
    if watched.oom_at is None:
        return []
    again_seconds = AGAIN_STEPS * _step_seconds(watched) or AGAIN_SECONDS
    leading: list[_Alert] = []
    for one in sorted(alerts, key=lambda alert: alert.fired.at, reverse=True):
        if one.warns_of != watched.oom_of or one.fired.at >= watched.oom_at:
            continue
        is_open = one.ended_at is None or one.ended_at >= watched.oom_at
        if is_open or _fired_again(one, leading, again_seconds):
            leading.append(one)
    return leading


def _fired_again(one: _Alert, later: Sequence[_Alert], within_seconds: float) -> bool:
    ended_at = one.ended_at or one.fired.at
    return any(
        other.fired.alert == one.fired.alert
        and subject_of(other.fired.labels) == subject_of(one.fired.labels)
        and 0 <= other.fired.at - ended_at <= within_seconds
        for other in later
    )


def _step_seconds(watched: Watched) -> float:
    times = watched.step_times
    return median(later - before for before, later in pairwise(times)) if len(times) > 1 else 0.0


def _steps_between(watched: Watched, at: float | None) -> int | None:
    """Steps from an alert to the failure: that of the step in which it failed, minus that at whose end it fired."""
    if at is None or watched.oom_at is None or not watched.step_times:
        return None
    return bisect_left(watched.step_times, watched.oom_at) - bisect_left(watched.step_times, at)


def _result(one: _Alert, watched: Watched, rules: RuleSet, *, stays_up: bool) -> AlertResult:
    start = watched.began_at or 0.0
    worded = put_into_words(one.fired, rules, simulated=False)
    lead_s = watched.oom_at - one.fired.at if stays_up and watched.oom_at is not None else None
    return AlertResult(
        alert=one.fired.alert,
        severity=one.last.severity,
        subject=subject_of(one.fired.labels),
        started_at_s=one.fired.at - start,
        ended_at_s=None if one.ended_at is None else one.ended_at - start,
        cause=one.last.causes[0].cause if one.last.causes else None,
        eta_s=_eta(one.fired),
        id=one.fired.id,
        fired_severity=one.fired.severity,
        scope="gpu" if "gpu" in one.fired.labels else "node" if "node" in one.fired.labels else "run",
        warns=one.warns,
        lead_s=lead_s,
        lead_steps=_steps_between(watched, one.fired.at) if stays_up else None,
        causes=tuple(cause.cause for cause in one.last.causes),
        outcome=one.last.outcome.verdict if one.last.outcome else None,
        summary=worded.texts["en"].summary,
        overrides=tuple(remedy.override for remedy in one.last.remedies if remedy.override),
    )


def subject_of(labels: dict[str, str]) -> str:
    """ "node/gpu", "node", or the run where that is all there is."""
    if "gpu" in labels:
        return f"{labels['node']}/{labels['gpu']}"
    return labels.get("node") or labels.get("run", "")


def _eta(fired: wire.Transition) -> float | None:
    eta = fired.facts.get("eta_seconds")
    return float(eta) if isinstance(eta, int | float) else None


# ---------------------------------------------------------------- over all inputs


def summed_up(inputs: Sequence[InputResult]) -> Summary:
    """The figures of warnings.md: recall, lead, false alarms."""
    failed = [one for one in inputs if one.oom_at_s is not None]
    healthy = [one for one in inputs if one.oom_at_s is None]
    warned = [one for one in failed if one.warned]
    days = sum(one.duration_s for one in healthy) / DAY_SECONDS
    gpu_days = sum(one.duration_s * one.gpus for one in healthy) / DAY_SECONDS
    false_alarms = sum(one.false_alarms for one in healthy)
    return Summary(
        false_alarms_per_day=_ratio(false_alarms, days),
        recall=_ratio(len(warned), len(failed)),
        lead_s=spread([one.lead_s for one in warned if one.lead_s is not None]),
        lead_steps=spread([one.lead_steps for one in warned if one.lead_steps is not None]),
        inputs=len(inputs),
        ooms=len(failed),
        warned=len(warned),
        false_alarms=false_alarms,
        days=days,
        gpu_days=gpu_days,
        false_alarms_per_gpu_day=_ratio(false_alarms, gpu_days),
        false_alarms_per_1000_steps=_ratio(1000 * false_alarms, sum(one.steps for one in healthy)),
        by_rule=_by_rule(inputs),
    )


def _by_rule(inputs: Sequence[InputResult]) -> dict[str, RuleScore]:
    names = dict.fromkeys(f"{alert.alert}/{alert.fired_severity}" for one in inputs for alert in one.alerts)
    return {name: _rule_score(name, inputs) for name in sorted(names)}


def _rule_score(name: str, inputs: Sequence[InputResult]) -> RuleScore:
    own = [(one, [alert for alert in one.alerts if f"{alert.alert}/{alert.fired_severity}" == name]) for one in inputs]
    return RuleScore(
        alerts=sum(len(alerts) for _, alerts in own),
        false_alarms=sum(alert.warns for one, alerts in own if one.oom_at_s is None for alert in alerts),
        warned=sum(any(is_in_time(alert.lead_s, alert.lead_steps) for alert in alerts) for _, alerts in own),
    )


def _ratio(count: float, of: float) -> float | None:
    return count / of if of else None


def spread(values: Sequence[float]) -> Spread:
    """The median, and the value that nine of ten exceed."""
    if not values:
        return Spread()
    if len(values) == 1:
        return Spread(median=values[0], p10=values[0])
    return Spread(median=median(values), p10=quantiles(values, n=10, method="inclusive")[0])
