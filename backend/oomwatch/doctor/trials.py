"""Remedies tried on the estimate: what each frees, whether it is enough, and whether verl would still start.

The remedies, their prices and their values are those of `advice`; here the estimate says what comes of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

from oomwatch import wire
from oomwatch.advice.catalogue import Entry
from oomwatch.advice.choose import options_for
from oomwatch.doctor.case import Case, Look, excess_of
from oomwatch.doctor.changed import Changes
from oomwatch.doctor.situation import causes_of, facts_of
from oomwatch.plan.memory import PhaseEstimate

TIMES_MAX = 6  # a remedy is taken so often before it counts as not enough
HELPS_RATIO = 0.05  # of what has to be freed in a phase: less is no remedy for it
HELPS_BYTES = 2**28
_RANK = {"fits": 0, "tight": 1, "will_not_fit": 2}


class Proposal(NamedTuple):
    """A remedy with the value that `advice` would set."""

    entry: Entry
    key: str
    value: wire.ConfigValue
    worth: float  # as `advice` judges it

    def is_of(self, other: "Proposal") -> bool:
        """Whether it is the same remedy of the same setting."""
        return self.entry is other.entry and self.key == other.key


class Trial(NamedTuple):
    """One setting changed, as far as it takes for one phase to fit, or as far as it can be."""

    proposal: Proposal
    phase: str
    before: Look
    after: Look

    @property
    def gain_bytes(self) -> float:
        """Of what has to be freed in all phases together."""
        return self.before.excess_bytes - self.after.excess_bytes

    @property
    def frees_bytes(self) -> int | None:
        """What the phase takes less at its peak; None where it could not even run before."""
        before, after = self.before.phase(self.phase), self.after.phase(self.phase)
        if before is None or after is None or before.trouble is not None:
            return None
        return before.expected_bytes - after.expected_bytes

    @property
    def enough(self) -> bool:
        return self.after.fits


def trials(case: Case, base: Changes) -> list[Trial]:
    """All remedies that help a configuration with the changes `base`, each tried by itself; in no order of use."""
    before = case.look(base)
    best: dict[tuple[str, str], Trial] = {}
    for phase in troubled(before):
        for proposal in _proposals(case, before, phase):
            trial = _tried(case, base, phase, proposal)
            if trial is None or not _helps(trial, phase):
                continue
            name = (proposal.entry.remedy, proposal.key)
            if name not in best or trial.gain_bytes > best[name].gain_bytes:
                best[name] = trial
    return list(best.values())


def troubled(look: Look) -> list[PhaseEstimate]:
    """The phases that do not surely fit, the worst first."""
    return sorted((one for one in look.phases if one.verdict != "fits"), key=lambda one: -excess_of(one))


def _proposals(case: Case, look: Look, phase: PhaseEstimate) -> Iterator[Proposal]:
    """Of each remedy for a phase, the one that is worth most; only those that a setting is changed by."""
    facts = facts_of(look, phase)
    found: dict[str, Proposal] = {}
    for cause in causes_of(phase):
        for option in options_for(cause, look.config, facts, case.reading.version):
            known = found.get(option.entry.remedy)
            if option.key and option.change and (known is None or option.worth > known.worth):
                found[option.entry.remedy] = Proposal(option.entry, option.key, option.change.to, option.worth)
    yield from found.values()


def _tried(case: Case, base: Changes, phase: PhaseEstimate, proposal: Proposal) -> Trial | None:
    """A remedy, taken again while it does not suffice; None where verl would refuse it, or it does not help."""
    before, found, last = case.look(base), None, phase
    again: Proposal | None = proposal
    for _ in range(TIMES_MAX):
        if again is None or (found is not None and again.value == found.proposal.value):
            break
        again = _admitted(case, base, again)
        after = case.look({**base, again.key: again.value})
        now = after.phase(phase.phase)
        if now is None or not _still_starts(before, after) or excess_of(now) >= excess_of(last):
            break
        found = Trial(again, phase.phase, before, after)
        if now.verdict == "fits":
            break
        last = now
        again = next((one for one in _proposals(case, after, now) if one.is_of(proposal)), None)
    return found


def _admitted(case: Case, base: Changes, proposal: Proposal) -> Proposal:
    """With the nearest lower value that verl would start with, where it would not with this one."""
    known, after = case.look(base).errors, case.look({**base, proposal.key: proposal.value})
    new = (one for one in after.problems if one.severity == "error" and (one.check, one.key) not in known)
    number = proposal.value if isinstance(proposal.value, int | float) else 0
    lower = [value for problem in new if problem.key == proposal.key for value in problem.valid if value < number]
    return proposal._replace(value=max(lower)) if lower else proposal


def _still_starts(before: Look, after: Look) -> bool:
    """Whether nothing is refused that was not before, and no phase fits worse."""
    if after.estimate is None or not after.errors <= before.errors:
        return False
    was = {phase.phase: _RANK[phase.verdict] for phase in before.phases}
    return all(_RANK[phase.verdict] <= was.get(phase.phase, 0) for phase in after.phases)


def _helps(trial: Trial, phase: PhaseEstimate) -> bool:
    """Whether it frees more than a trifle of what the phase has too much."""
    after = trial.after.phase(phase.phase)
    excess = excess_of(phase)
    least = min(max(HELPS_BYTES, HELPS_RATIO * excess), excess)
    return after is not None and (trial.enough or excess - excess_of(after) >= least)
