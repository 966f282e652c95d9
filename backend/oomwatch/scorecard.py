"""PURE: how good the warnings of each rule were: which failures they told in time, and how often for nothing."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from statistics import median

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.rule import RuleSet, severity_of
from oomwatch.core.subject import Channel

IN_TIME_SECONDS = 60.0  # a lead of so much, or of one step, leaves something to be done
SAME_FAILURE_SECONDS = 120.0  # the ranks of a run die one after the other
CLOCK_SECONDS = 1.0

RuleKey = tuple[str, wire.Severity]  # alert and severity


class Failure(Struct, frozen=True, kw_only=True):
    """Something ran full, once, however many ranks said so: from the first message to the last."""

    channel: Channel
    at: float
    end_at: float
    node: str
    run: str | None = None


class RuleScore(Struct, frozen=True, kw_only=True):
    """One rule. A figure that nothing is known of is None. Leads are those of the failures that it warned of."""

    alert: str
    severity: wire.Severity
    predicts: Channel | None
    happened: int
    avoided: int
    false: int
    open: int  # warnings without a verdict: not yet, or none to give, as of a rule that tells a level
    failures: int  # of what it predicts, whether it warned of them or not
    in_time: int  # of those it warned a minute or a step ahead
    recall: float | None
    lead_seconds_median: float | None
    lead_seconds_p10: float | None
    lead_steps_median: float | None
    lead_steps_p10: float | None
    false_per_gpu_day: float | None


class Scorecard(Struct, frozen=True, kw_only=True):
    """All rules that predict something, by name. Times are Unix seconds."""

    start_at: float
    end_at: float
    run: str | None
    gpu_days: float
    failures: dict[str, int]  # by what ran full
    rules: tuple[RuleScore, ...]


def foretold(rules: RuleSet) -> dict[RuleKey, Channel | None]:
    """What each rule in use foretells. A warning for information is none."""
    return {(rule.alert, rule.severity): rule.predicts for rule in rules.in_use() if rule.severity != "info"}


def failures_of(told: Iterable[Failure]) -> list[Failure]:
    """Failures out of single messages, which come in the order of time."""
    found: dict[tuple[str, str], Failure] = {}
    whole: list[Failure] = []
    for one in told:
        key = (one.channel, one.run if one.run is not None and one.channel == "device" else one.node)
        last = found.get(key)
        if last is not None and one.at - last.end_at <= SAME_FAILURE_SECONDS:
            whole.remove(last)
            one = Failure(channel=one.channel, at=last.at, end_at=one.end_at, node=last.node, run=last.run or one.run)  # noqa: PLW2901
        found[key] = one
        whole.append(one)
    return sorted(whole, key=lambda failure: failure.at)


def scores(
    alerts: Iterable[wire.Alert],
    failures: Sequence[Failure],
    predicts: Mapping[RuleKey, Channel | None],
    gpu_days: float,
) -> tuple[RuleScore, ...]:
    """`alerts` are those that fired in the time; `predicts` says what the rules in force foretell."""
    by_rule: dict[RuleKey, list[wire.Alert]] = {key: [] for key, channel in predicts.items() if channel is not None}
    for alert in alerts:
        key = (alert.alert, severity_of(alert))
        if alert.outcome is not None or key in by_rule:
            by_rule.setdefault(key, []).append(alert)
    return tuple(
        _score(key, of_rule, failures, predicts.get(key), gpu_days) for key, of_rule in sorted(by_rule.items())
    )


def _score(
    key: RuleKey, alerts: Sequence[wire.Alert], failures: Sequence[Failure], channel: Channel | None, gpu_days: float
) -> RuleScore:
    verdicts = [alert.outcome.verdict if alert.outcome else None for alert in alerts]
    seen = [one for one in failures if channel in (None, one.channel)]
    told = [best for one in seen if (best := _best_lead(one, alerts)) is not None]
    in_time = sum(_is_in_time(outcome) for outcome in told)
    seconds = [outcome.lead_seconds for outcome in told if outcome.lead_seconds is not None]
    steps = [outcome.lead_steps for outcome in told if outcome.lead_steps is not None]
    false = verdicts.count("false")
    return RuleScore(
        alert=key[0],
        severity=key[1],
        predicts=channel,
        happened=verdicts.count("happened"),
        avoided=verdicts.count("avoided"),
        false=false,
        open=verdicts.count(None),
        failures=len(seen),
        in_time=in_time,
        recall=in_time / len(seen) if seen else None,
        lead_seconds_median=median(seconds) if seconds else None,
        lead_seconds_p10=_p10(seconds),
        lead_steps_median=median(steps) if steps else None,
        lead_steps_p10=_p10(steps),
        false_per_gpu_day=false / gpu_days if gpu_days > 0 else None,
    )


def _best_lead(failure: Failure, alerts: Iterable[wire.Alert]) -> wire.Outcome | None:
    """The outcome of the warning that told a failure first."""
    told = [alert.outcome for alert in alerts if alert.outcome is not None and _is_of(alert, alert.outcome, failure)]
    return max(told, key=lambda outcome: outcome.lead_seconds or 0.0, default=None)


def _is_of(alert: wire.Alert, outcome: wire.Outcome, failure: Failure) -> bool:
    here = alert.labels.get("node") == failure.node or (
        failure.run is not None and alert.labels.get("run") == failure.run
    )
    then = failure.at - CLOCK_SECONDS <= outcome.at <= failure.end_at + CLOCK_SECONDS
    return outcome.verdict == "happened" and here and then


def _is_in_time(outcome: wire.Outcome) -> bool:
    return (outcome.lead_seconds or 0.0) >= IN_TIME_SECONDS or (outcome.lead_steps or 0) >= 1


def _p10(values: Sequence[float]) -> float | None:
    """The value that nine in ten reach."""
    return sorted(values)[max(0, ceil(len(values) / 10) - 1)] if values else None
