"""How much memory a run will need, phase by phase, from formulas that are named with their sources. Pure."""

from oomwatch.plan.memory.correction import Correction, corrected, correction_of
from oomwatch.plan.memory.estimate import Estimate, HostEstimate, PhaseEstimate, Verdict
from oomwatch.plan.memory.largest import Largest, largest_that_fits
from oomwatch.plan.memory.part import Part
from oomwatch.plan.memory.whole import estimate_of

__all__ = [
    "Correction",
    "Estimate",
    "HostEstimate",
    "Largest",
    "Part",
    "PhaseEstimate",
    "Verdict",
    "corrected",
    "correction_of",
    "estimate_of",
    "largest_that_fits",
]
