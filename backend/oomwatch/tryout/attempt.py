"""Trying a rule file: how much of the time the budget allows, the engine over it, and what came of it."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from oomwatch import wire
from oomwatch.backtest.drive import drive
from oomwatch.backtest.score import subject_of
from oomwatch.core.rule import RuleSet
from oomwatch.store.store import Store
from oomwatch.trace import Line
from oomwatch.tryout.compare import compared, firings
from oomwatch.tryout.recording import WARM_SECONDS, Chosen, choose, first_told_at, lines_of
from oomwatch.tryout.result import Firing, Tried, Tryout
from oomwatch.tryout.together import alike, left_out, together

ALERTS_MAX = 200  # told one by one, of the new and of the gone
# The speed is measured on these pieces of the time, spread over it, before the whole is begun.
PROBES, PROBE_SECONDS = 4, 120.0
PROBE_SHARE = 0.25  # of the budget at most
MARGIN = 0.85  # of the budget, for what the pieces did not show

Progress = Callable[[float], None]  # is told which share is done, 0 to 1


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be tried. `end_at` is now, by the clock of the server that wrote the database."""

    end_at: float
    hours: float = 24.0
    node: str | None = None
    run: str | None = None
    budget_seconds: float = 60.0
    judge_all: bool = False  # what is the same in both files too


def attempt(
    store: Store,
    tried: RuleSet,
    in_force: RuleSet | None,
    wanted: Wanted,
    *,
    told: Progress = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Tryout:
    """What the tried rules would have said of the last hours, beside those in force.

    Where the budget does not suffice, of fewer hours: the latest. Raises NothingChosenError and StoreError.
    """
    begun = clock()
    chosen = choose(store, node=wanted.node, run=wanted.run)
    rules = together(tried, in_force, judge_all=wanted.judge_all)
    wanted_start = wanted.end_at - 3600 * wanted.hours
    start = _affordable(store, chosen, rules, wanted, clock)
    counted = Counted(lines_of(store, chosen, start, wanted.end_at), begun + wanted.budget_seconds, clock)
    seconds = max(1.0, wanted.end_at - start)
    driven = drive(iter(counted), rules, live=False, progress=lambda passed: told(min(1.0, passed / seconds)))
    end_at = counted.at if counted.has_stopped else wanted.end_at
    return _result(
        Tried(
            wanted_start_at=wanted_start,
            wanted_end_at=wanted.end_at,
            start_at=start,
            end_at=end_at,
            complete=start <= wanted_start and not counted.has_stopped,
            nodes=len(chosen.told_of),
            gpus=sum(len(one.hello.facts.gpus) for one in chosen.nodes if one.hello.node in chosen.told_of),
            readings=counted.readings,
            took_seconds=clock() - begun,
        ),
        driven.defects,
        tried,
        in_force,
        _only(chosen, driven.transitions),
        judged_all=wanted.judge_all,
    )


class Counted:
    """The lines, until a moment of our own clock. `at` is how far they went."""

    def __init__(self, lines: Iterator[Line], until: float, clock: Callable[[], float]) -> None:
        self._lines = lines
        self._until = until
        self._clock = clock
        self.has_stopped = False
        self.readings = 0
        self.at = 0.0

    def __iter__(self) -> Iterator[Line]:
        for line in self._lines:
            if self._clock() >= self._until:
                self.has_stopped = True
                return
            if line.now is not None and not line.recalled:
                self.at = line.now
            if isinstance(line.message, wire.Sample) and not line.recalled:
                self.readings += len(line.message.gpus) + (line.message.host is not None)
            yield line


def _affordable(store: Store, chosen: Chosen, rules: RuleSet, wanted: Wanted, clock: Callable[[], float]) -> float:
    """From when on everything can be judged within the budget, as pieces of the time tell.

    Hours before the first message cost nothing: pieces of them would tell of the rest what is not so.
    """
    start, end, begun = wanted.end_at - 3600 * wanted.hours, wanted.end_at, clock()
    first = first_told_at(store, chosen, start, end)
    if end - first <= 2 * PROBES * PROBE_SECONDS:
        return start
    until, judged_seconds = begun + PROBE_SHARE * wanted.budget_seconds, 0.0
    for place in range(PROBES):
        at = end - PROBE_SECONDS - place * (end - first - PROBE_SECONDS) / (PROBES - 1)
        lines = lines_of(store, chosen, at, at + PROBE_SECONDS, recalled=False)
        piece = Counted(lines, until, clock)
        drive(iter(piece), rules, live=False)
        judged_seconds += max(1.0, piece.at - at) if piece.has_stopped else PROBE_SECONDS
        if piece.has_stopped:
            break
    spent = max(clock() - begun, 1e-3)
    left = max(1.0, MARGIN * wanted.budget_seconds - spent)
    affordable = left * judged_seconds / spent - WARM_SECONDS  # what is recalled before costs hardly less
    from_when = end - max(PROBE_SECONDS, affordable)
    return start if from_when <= first else from_when


def _result(
    done: Tried,
    defects: Sequence[str],
    tried: RuleSet,
    in_force: RuleSet | None,
    said: Iterable[wire.Transition],
    *,
    judged_all: bool,
) -> Tryout:
    told = compared(firings(said), tried, in_force, done.end_at, judged_all=judged_all)
    before = [row.in_force.count for row in told.rules if row.in_force is not None]
    return Tryout(
        tried=done,
        rules=told.rules,
        same=tuple(sorted(alike(tried, in_force))) if in_force is not None else (),
        left_out=tuple(left_out(tried.rules)),
        new=_latest(told.new),
        gone=_latest(told.gone),
        defects=tuple(defects),
        count=sum(row.tried.count for row in told.rules),
        in_force_count=sum(before) if in_force is not None else None,
    )


def _only(chosen: Chosen, said: Iterable[wire.Transition]) -> Iterator[wire.Transition]:
    """What is said of the chosen nodes and runs."""
    for one in said:
        node, run = one.labels.get("node"), one.labels.get("run")
        if (node is None or node in chosen.told_of) and (run is None or chosen.runs is None or run in chosen.runs):
            yield one


def _latest(alerts: list[Firing]) -> tuple[Firing, ...]:
    return tuple(sorted(alerts, key=lambda one: (-one.fired_at, subject_of(one.labels)))[:ALERTS_MAX])
