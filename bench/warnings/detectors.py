"""Who warns: our rules through the engine, and the simple detectors that they have to beat, on the same lines.

A detector is given a whole trace and says when it warned of what. Only the engine sees more than device memory.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple, TypeAlias

from oomwatch import wire
from oomwatch.advice import advise
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import read_rules
from oomwatch.trace import Line, give

SHIPPED = Path(__file__).resolve().parents[2] / "alerts.yaml"
FOUR = 4  # rules that are asked for first of all
QUIET_SECONDS = 600.0  # a level that was not seen for so long is an episode's end: shorter is a trough of a step
SCRAPE_SECONDS = 15.0  # Prometheus' own default is a minute, and 15 s what most people set
EVALUATION_SECONDS = 60.0
LOOK_BACK_SECONDS = LOOK_AHEAD_SECONDS = 1800.0
FOR_SECONDS = 300.0
WARNING: tuple[wire.Severity, ...] = ("warning", "critical")


class Episode(NamedTuple):
    """A time during which a detector warned of one subject."""

    alert: str
    start: float
    end: float | None  # None: it still did at the end of the trace
    gpu: str | None  # None: of the host or the run
    steady: bool = False  # it was lowered to information and never raised again
    causes: tuple[wire.Cause, ...] = ()
    remedies: tuple[wire.Remedy, ...] = ()

    def is_open_at(self, at: float) -> bool:
        return self.start <= at and (self.end is None or self.end > at)


class Seen(NamedTuple):
    episodes: list[Episode]
    defects: int = 0  # judgements that failed


Detector: TypeAlias = Callable[[Sequence[Line]], Seen]


def detectors(rules: RuleSet | None = None) -> dict[str, Detector]:
    """All of them by name. `rules` are the shipped ones unless given."""
    ours = rules or read_rules(SHIPPED).rules
    four = RuleSet(rules=ours.rules[:FOUR])
    return {
        "ours": lambda lines: by_rules(lines, ours),
        "four thresholds": lambda lines: by_rules(lines, four, with_levels=True),
        "static 90 %": lambda lines: by_level(lines, 0.90),
        "static 95 %": lambda lines: by_level(lines, 0.95),
        "predict_linear": by_predict_linear,
    }


# ---------------------------------------------------------------- ours


def by_rules(lines: Sequence[Line], rules: RuleSet, *, with_levels: bool = False) -> Seen:
    """A rule that tells a level foretells nothing, and counts only where it stands for a detector of its own."""
    engine = Engine(rules)
    levels = () if with_levels else tuple(rule.alert for rule in rules.rules if rule.level)
    told: list[wire.Transition] = []
    for line in lines:
        told += [advise(one, engine.fleet) for one in give(engine, line)]
    return Seen(_episodes(one for one in told if one.alert not in levels), len(engine.defects))


def _episodes(told: Iterable[wire.Transition]) -> list[Episode]:
    """Spells of each alert at severity warning or above."""
    found: list[Episode] = []
    open_spells: dict[str, Episode] = {}
    for one in told:
        spell = open_spells.get(one.id)
        warns = one.state == "firing" and one.severity in WARNING
        if one.change in ("outcome", "acts") or one.state == "pending":
            continue
        if spell is None and warns:
            gpu = one.labels.get("gpu")
            open_spells[one.id] = Episode(one.alert, one.at, None, gpu, causes=one.causes, remedies=one.remedies)
        elif spell is not None and not warns:
            lowered = one.state == "firing"
            found.append(spell._replace(end=one.at, steady=lowered))
            del open_spells[one.id]
    return sorted([*found, *open_spells.values()], key=lambda episode: episode.start)


# ---------------------------------------------------------------- simple ones, on device memory


class Reading(NamedTuple):
    at: float
    gpu: str
    used: float
    usable: float


def readings(lines: Iterable[Line]) -> Iterable[Reading]:
    usable: dict[str, float] = {}
    for line in lines:
        message = line.message
        if isinstance(message, wire.Hello):
            usable = {gpu.gpu: gpu.total_bytes - gpu.reserved_bytes for gpu in message.facts.gpus}
        elif isinstance(message, wire.Sample):
            for gpu in message.gpus:
                if gpu.used_bytes is not None:
                    yield Reading(message.at, gpu.gpu, gpu.used_bytes, usable[gpu.gpu])


def by_level(lines: Sequence[Line], share: float) -> Seen:
    """Any sample above a share of the card."""
    alert = f"static {share:.0%}"
    found: list[Episode] = []
    last: dict[str, Episode] = {}
    for one in readings(lines):
        if one.used < share * one.usable:
            continue
        spell = last.get(one.gpu)
        if spell is not None and one.at - (spell.end or 0.0) > QUIET_SECONDS:
            found.append(spell)
            spell = None
        last[one.gpu] = Episode(alert, spell.start if spell else one.at, one.at, one.gpu)
    return Seen(_lasting([*found, *last.values()]))


def _lasting(episodes: Iterable[Episode]) -> list[Episode]:
    """An episode goes on until it has been quiet for a while."""
    return [episode._replace(end=(episode.end or 0.0) + QUIET_SECONDS) for episode in episodes]


class Regression(NamedTuple):
    """Sums of a regression, so that each point costs the same."""

    points: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def plus(self, x: float, y: float, sign: int = 1) -> "Regression":
        return Regression(
            self.points + sign, self.x + sign * x, self.y + sign * y, self.xx + sign * x * x, self.xy + sign * x * y
        )

    def at(self, x: float) -> float | None:
        """The value there, by least squares; None of fewer than two points."""
        covariance = self.points * self.xy - self.x * self.y
        variance = self.points * self.xx - self.x * self.x
        if self.points < 2 or variance <= 0:
            return None
        slope = covariance / variance
        return (self.y - slope * self.x) / self.points + slope * x


class PredictLinear:
    """Prometheus' predict_linear over one series: an alert that holds for five minutes fires."""

    def __init__(self, capacity: float) -> None:
        self._capacity = capacity
        self._points: deque[tuple[float, float]] = deque()
        self._sums = Regression()
        self._scraped = self._evaluated = -inf
        self._held_since: float | None = None
        self.spells: list[tuple[float, float | None]] = []

    def observe(self, at: float, used: float) -> None:
        if at - self._scraped >= SCRAPE_SECONDS:
            self._scraped = at
            self._points.append((at, used))
            self._sums = self._sums.plus(at, used)
        while self._points and self._points[0][0] < at - LOOK_BACK_SECONDS:
            self._sums = self._sums.plus(*self._points.popleft(), sign=-1)
        if at - self._evaluated >= EVALUATION_SECONDS:
            self._evaluated = at
            self._evaluate(at)

    def _evaluate(self, at: float) -> None:
        predicted = self._sums.at(at + LOOK_AHEAD_SECONDS)
        if predicted is None or predicted <= self._capacity:
            self._held_since = None
            if self.spells and self.spells[-1][1] is None:
                self.spells[-1] = (self.spells[-1][0], at)
            return
        self._held_since = at if self._held_since is None else self._held_since
        is_open = bool(self.spells) and self.spells[-1][1] is None
        if at - self._held_since >= FOR_SECONDS and not is_open:
            self.spells.append((at, None))


def by_predict_linear(lines: Sequence[Line]) -> Seen:
    series: dict[str, PredictLinear] = {}
    for one in readings(lines):
        if one.gpu not in series:
            series[one.gpu] = PredictLinear(one.usable)
        series[one.gpu].observe(one.at, one.used)
    found = [
        Episode("predict_linear", start, end, gpu)
        for gpu, predictor in series.items()
        for start, end in predictor.spells
    ]
    return Seen(sorted(found, key=lambda episode: episode.start))


def select(named: Mapping[str, Detector], wanted: Sequence[str]) -> dict[str, Detector]:
    """Those whose name begins as wanted; all where nothing is. Raises ValueError for a name that is none."""
    chosen = {name: one for name, one in named.items() if not wanted or any(name.startswith(word) for word in wanted)}
    missing = [word for word in wanted if not any(name.startswith(word) for name in named)]
    if missing:
        raise ValueError(f"no detector is called {', '.join(missing)}: there are {', '.join(named)}")
    return chosen
