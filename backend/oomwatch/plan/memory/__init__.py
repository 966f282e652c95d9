"""How much memory a run will need, phase by phase, from formulas that are named with their sources. Pure."""

from oomwatch.plan.memory.doctor import estimate_of
from oomwatch.plan.memory.estimate import Estimate, HostEstimate, PhaseEstimate, Verdict
from oomwatch.plan.memory.part import Part

__all__ = ["Estimate", "HostEstimate", "Part", "PhaseEstimate", "Verdict", "estimate_of"]
