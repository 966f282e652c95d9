"""What a backtest says, as --json writes it: times are seconds from the input's start."""

from msgspec import Struct

from oomwatch import wire


class AlertResult(Struct, frozen=True, kw_only=True):
    """One alert. `started_at_s` is when it fired, `severity` the last one that it had."""

    alert: str
    severity: wire.Severity
    subject: str
    started_at_s: float
    ended_at_s: float | None
    cause: str | None
    eta_s: float | None
    id: str
    fired_severity: wire.Severity  # when it fired
    scope: str
    warns: bool  # whether it counts as a warning, and where nothing happened as a false alarm
    lead_s: float | None  # until the input ran out of memory, of an alert that stayed up until then
    lead_steps: int | None
    causes: tuple[str, ...] = ()
    outcome: wire.AlertVerdict | None = None  # as oomwatch itself judged it afterwards
    summary: str = ""
    overrides: tuple[str, ...] = ()  # what was advised to change, as lines for the trainer's command


class InputResult(Struct, frozen=True, kw_only=True):
    """One input. `warned`: None where it did not run out of memory."""

    name: str
    duration_s: float
    steps: int
    oom_at_s: float | None
    alerts: tuple[AlertResult, ...]
    gpus: int
    warned: bool | None
    lead_s: float | None
    lead_steps: int | None
    false_alarms: int
    notes: tuple[str, ...] = ()


class Spread(Struct, frozen=True, kw_only=True):
    """None where there is nothing to take it of."""

    median: float | None = None
    p10: float | None = None


class RuleScore(Struct, frozen=True, kw_only=True):
    """One rule's part. `warned`: inputs that ran out of memory and that it alone would have warned of in time."""

    alerts: int
    false_alarms: int
    warned: int


class Summary(Struct, frozen=True, kw_only=True):
    """Over all inputs. Rates are over those that did not run out of memory, recall over those that did."""

    false_alarms_per_day: float | None
    recall: float | None
    lead_s: Spread
    lead_steps: Spread
    inputs: int
    ooms: int
    warned: int
    false_alarms: int
    days: float
    gpu_days: float
    false_alarms_per_gpu_day: float | None
    false_alarms_per_1000_steps: float | None
    by_rule: dict[str, RuleScore]


class Result(Struct, frozen=True, kw_only=True):
    inputs: tuple[InputResult, ...]
    summary: Summary


class RulesResult(Struct, frozen=True, kw_only=True):
    """The result of one of several rule files."""

    file: str
    inputs: tuple[InputResult, ...]
    summary: Summary


class Comparison(Struct, frozen=True, kw_only=True):
    rules: tuple[RulesResult, ...]
