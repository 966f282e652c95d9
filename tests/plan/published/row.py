"""A published measurement beside the workload that it was taken of, in the terms of the formulas."""

from typing import Literal

from msgspec import Struct

from oomwatch.plan.memory.estimate import PhaseEstimate
from oomwatch.plan.memory.interval import Reach, reach
from oomwatch.plan.memory.part import Holder, Part, held
from oomwatch.plan.memory.setup import Setup
from oomwatch.plan.memory.whole import estimate_of_setup

GIB = 2**30
# What a figure was a reading of, and which parts of an estimate that is.
Reading = Literal["allocated", "reserved", "device", "allocated with pool", "reserved with pool"]
_HOLDERS: dict[Reading, tuple[Holder, ...]] = {
    "allocated": ("allocated",),
    "reserved": ("allocated", "reserved"),
    "device": ("allocated", "reserved", "context", "engine"),
    "allocated with pool": ("allocated",),
    "reserved with pool": ("allocated", "reserved"),
}

# Of an engine within the trainer's process, torch counts weights and cache: the rest of its share is free again.
_POOL = ("rollout_weights", "kv_pool")


class Peak(Struct, frozen=True, kw_only=True):
    """A measured peak. `parts` where a single quantity was measured (a pool, one operation) and not a phase."""

    row: str  # of the table of published peaks, with a letter where it holds several figures
    source: str
    settings: str
    measured_gib: float
    reading: Reading = "allocated"
    setup: Setup | None = None
    phase: str = "update_actor"
    capacity_gib: float = 80.0
    parts: tuple[Part, ...] = ()

    @property
    def estimate(self) -> PhaseEstimate | None:
        if self.setup is None:
            return None
        return estimate_of_setup(self.setup, round(self.capacity_gib * GIB)).phase(self.phase)

    def counted(self) -> tuple[Part, ...]:
        """The parts that the reading counts."""
        if self.estimate is None:
            return self.parts
        pool = _POOL if self.reading.endswith("pool") else ()
        holders = _HOLDERS[self.reading]
        return tuple(part for part in self.estimate.parts if part.holder in holders or part.name in pool)

    @property
    def expected_gib(self) -> float:
        parts = self.counted()
        return held(parts, "allocated", "reserved", "context", "engine", "host") / GIB

    @property
    def error_ratio(self) -> float:
        """Of the estimate, signed: above 0 where it says too much."""
        return self.expected_gib / self.measured_gib - 1

    @property
    def reach(self) -> Reach:
        """Of the interval."""
        return reach(self.counted())

    @property
    def is_inside(self) -> bool:
        off = self.measured_gib / self.expected_gib - 1
        return -self.reach.below <= off <= self.reach.above


class Fit(Struct, frozen=True, kw_only=True):
    """Whether a run ran, or ran out of memory."""

    row: str
    source: str
    settings: str
    ran: bool
    setup: Setup
    capacity_gib: float

    @property
    def says_it_runs(self) -> bool:
        return estimate_of_setup(self.setup, round(self.capacity_gib * GIB)).verdict != "will_not_fit"

    @property
    def is_right(self) -> bool:
        return self.says_it_runs == self.ran
