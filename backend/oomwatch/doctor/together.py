"""Which changes to make together: what verl would stop with first, then the cheapest that makes everything fit."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from oomwatch import wire
from oomwatch.advice.catalogue import Entry
from oomwatch.doctor.case import Case, Look
from oomwatch.doctor.changed import Changes
from oomwatch.doctor.read.grammar import NoOverrideError, parse_value
from oomwatch.doctor.trials import Trial, trials
from oomwatch.plan.problem import Problem

FIXES_MAX, STEPS_MAX = 12, 8
DEAR = 0.2  # a remedy of the next price level has to free so much more
CHANGES_LEARNING = 4  # the price of what changes what is learned: only where nothing else is left


def fixes(case: Case) -> Changes:
    """Changes with which verl would start, as far as problems suggest any: each is tried, and none makes new ones."""
    changes: dict[str, wire.ConfigValue] = {}
    for _ in range(FIXES_MAX):
        look = case.look(changes)
        better = (
            {**changes, key: value}
            for problem in look.problems
            if problem.severity == "error"
            for key, value in _suggested(problem)
            if len(case.look({**changes, key: value}).errors) < len(look.errors)
        )
        found = next(better, None)
        if found is None:
            break
        changes = found
    return changes


def _suggested(problem: Problem) -> Iterator[tuple[str, wire.ConfigValue]]:
    line = problem.suggestion
    if line is not None and not line.startswith("~"):
        key, _, text = line.lstrip("+").partition("=")
        try:
            value = parse_value(text)
        except NoOverrideError:
            return
        if isinstance(value, bool | int | float | str):
            yield key, value
    yield from ((problem.key, value) for value in problem.valid)


class Together(NamedTuple):
    """Changes, with the remedy that each is of; those of `fixes` are of none."""

    changes: Changes
    remedies: Mapping[str, Entry]


def enough_together(case: Case, base: Changes) -> Together:
    """The changes beyond `base` with which all fits, or as much as can be had; cheap ones before dear ones.

    What changes what is learned comes in only where a phase would not fit at all without it.
    """
    changes, remedies = dict(base), dict[str, Entry]()
    for _ in range(STEPS_MAX):
        look = case.look(changes)
        step = None if look.fits else _next_step(look, trials(case, changes))
        if step is None:
            break
        changes[step.proposal.key] = step.proposal.value
        remedies[step.proposal.key] = step.proposal.entry
    return Together(_without_idle(case, changes), remedies)


def in_order_of_use(found: Sequence[Trial]) -> list[Trial]:
    """What is enough by itself first, the cheapest of it first; then what frees most for its price."""
    return sorted(found, key=_use)


def _use(trial: Trial) -> tuple[bool, float, float]:
    level = trial.proposal.entry.price.level
    if trial.enough:
        return False, level, -trial.proposal.worth
    return True, float(level == CHANGES_LEARNING), -trial.gain_bytes / (1 + DEAR * (level - 1))


def _next_step(look: Look, found: Sequence[Trial]) -> Trial | None:
    """The best to add; what changes what is learned only where nothing else is left and it does not fit."""
    best = in_order_of_use(found)
    harmless = [one for one in best if one.proposal.entry.price.level < CHANGES_LEARNING]
    fits_badly = any(one.verdict == "will_not_fit" for one in look.phases)
    return next(iter(harmless or (best if fits_badly else [])), None)


def _without_idle(case: Case, changes: Changes) -> Changes:
    """The changes without those that later ones made needless."""
    needed = dict(changes)
    for key in changes:
        rest = {one: value for one, value in needed.items() if one != key}
        if _as_good(case.look(rest), case.look(needed)):
            needed = rest
    return needed


def _as_good(one: Look, other: Look) -> bool:
    return one.errors <= other.errors and one.excess_bytes <= other.excess_bytes
