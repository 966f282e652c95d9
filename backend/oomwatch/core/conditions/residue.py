"""What stays in memory when the rollout engine has gone to sleep grows.

The best early sign in public reports: 4.1, then 11.6, then 25 GiB still in use after sleeping, within two steps, and
then out of memory.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import ClassVar, NamedTuple

from oomwatch import wire
from oomwatch.core.conditions.bounds import check_share
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.drift import drift
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.held import held_on, last_active
from oomwatch.core.lives import RunNews
from oomwatch.core.peaks import GpuStep
from oomwatch.core.shortseries import known
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.trend import scatter
from oomwatch.core.verdict import UNKNOWN, Verdict, inactive
from oomwatch.units import Quantity

GIB = 2**30
WARM_UP_STEPS = 3  # of a run: not usual, but the engine sleeps in them as ever
WINDOW_STEPS = 30
RECENT_STEPS = 8  # held against the steps before them
STEPS_MIN = 4  # fewer have no usual level, and show no more than a leap
GROWN_BYTES_MIN = GIB  # growth by less is no danger, however steady
ALIKE_TIMES = 2.0  # two rises of one cause: by chance lengths swing by less, or less evenly
ALLOWED_RATIO = 0.25  # of the rise that alarms: the CUSUM counts only what exceeds it
ALLOWED_SCATTER = 3.0
HORIZON_STEPS = 60  # a slow growth counts where the card will be full within so many
PEAK_STEPS = 10

# The phases in which a colocated engine sleeps and the trainer has not begun to update.
ASLEEP_PHASES = ("reward", "old_log_prob", "ref", "values", "adv")


class Growth(NamedTuple):
    usual_bytes: float
    last_bytes: float
    limit_bytes: float
    slope_bytes: float | None = None  # a step; None: it leapt


class Residue(Kind, frozen=True, kw_only=True, tag="residue", cache_hash=True):
    """{kind: residue, increase: 50%, by: 5GiB}

    Up by both at once, by either for two steps (one-sided CUSUM: several lesser steps count together), or growing
    steadily (Mann-Kendall) and the card full within sixty steps. Read from the engine's sleep lines, else from the
    lowest device memory of the phases in which it sleeps. What is up at once is told by the sleep line itself: the
    next wake-up may be the last. The first update of the actor makes the optimizer's states, so that only what is left
    after it can be compared.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu",)
    hears: ClassVar[tuple[News, ...]] = ("steps", "events")
    predicts: ClassVar[Channel | None] = "device"
    topic: ClassVar[Topic | None] = "device"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        "residue_bytes",
        "usual_bytes",
        "grown_bytes",
        "slope_bytes",
        "eta_steps",
        "step",
        "source",
        "usable_bytes",
    )

    increase: Quantity = Quantity(0.5)
    by: Quantity = Quantity(5 * GIB)

    def __post_init__(self) -> None:
        if self.increase <= 0:
            raise ValueError("increase must be more than 0; 50% means half as much again")
        check_share("increase", self.increase)
        if self.by < GROWN_BYTES_MIN:
            raise ValueError("by must be at least 1GiB")

    def holds_for(self, residues: Sequence[float], room_bytes: float) -> Growth | None:
        """How these residues, oldest first, have grown; `room_bytes` is free at the peaks. None: they have not."""
        return self._risen(residues[-WINDOW_STEPS:]) or self._trend(residues, room_bytes)

    def _risen(self, window: Sequence[float]) -> Growth | None:
        """Up at once, or in few steps."""
        beginning = len(window) < STEPS_MIN
        return self._leap(window) or (self._staircase(window) if beginning else self._shift(window))

    def _leap(self, window: Sequence[float]) -> Growth | None:
        """Up by both bounds at once."""
        if len(window) < 2:  # noqa: PLR2004 - one has nothing to be held against
            return None
        usual, last = median(window[:-1][-RECENT_STEPS:]), window[-1]
        limit = usual + max(self.by, self.increase * usual)
        return Growth(usual, last, limit) if last > limit else None

    def _staircase(self, window: Sequence[float]) -> Growth | None:
        """Up by the absolute bound twice in a row, and by about as much: where the first steps are all there is."""
        rises = [later - earlier for earlier, later in pairwise(window[-3:])]
        if len(rises) < 2 or min(rises) < self.by or max(rises) > ALIKE_TIMES * min(rises):  # noqa: PLR2004 - twice
            return None
        return Growth(window[-3], window[-1], window[-3] + self.by, min(rises))

    def _shift(self, window: Sequence[float]) -> Growth | None:
        """Up by either bound for two steps, or by half of it for longer."""
        recent_steps = min(RECENT_STEPS, len(window) // 2)
        earlier, recent = window[:-recent_steps], window[-recent_steps:]
        usual = median(earlier)
        alarming = max(GROWN_BYTES_MIN, min(self.by, self.increase * usual))
        limit = usual + max(GROWN_BYTES_MIN, alarming / 2)
        if min(recent[-2:]) < limit:
            return None
        allowed = max(ALLOWED_RATIO * alarming, ALLOWED_SCATTER * scatter(earlier))
        total = 0.0
        for value in recent:
            total = max(0.0, total + value - usual - allowed)
        return Growth(usual, recent[-1], limit) if total > alarming else None

    def goes_on(self, residues: Sequence[float], before: Growth) -> Growth | None:
        """What had grown has not come back, and still grows. What has become the usual level is let go."""
        window = residues[-WINDOW_STEPS:]
        third = max(1, len(window) // 3)
        if median(window[-third:]) - median(window[:third]) < GROWN_BYTES_MIN / 2 or window[-1] <= before.limit_bytes:
            return None
        return before._replace(last_bytes=window[-1])

    def _trend(self, residues: Sequence[float], room_bytes: float) -> Growth | None:
        slope = drift(residues, GROWN_BYTES_MIN)
        if slope is None or slope * HORIZON_STEPS < room_bytes:
            return None
        usual = median(residues[-WINDOW_STEPS:][: WINDOW_STEPS // 3])
        return Growth(usual, residues[-1], usual + GROWN_BYTES_MIN, slope)

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        gpu = fleet.gpu(subject)
        if gpu is None:
            return UNKNOWN
        run = fleet.run_record(subject)
        config = run.config if run else {}
        asleep = self._at_sleep(gpu, config)
        known = held_on(gpu, self, now, lambda: self._judged(gpu, config))
        return known if asleep is None or known.state == "active" else asleep

    def _at_sleep(self, gpu: GpuRecord, config: Mapping[str, wire.ConfigValue]) -> Verdict | None:
        """What the last line of a moment when the engine sleeps says, before that of its step comes. None: nothing."""
        now = (gpu.residue_now_bytes, gpu.asleep_now_bytes)
        if now == (None, None) or not gpu.steps:
            return None
        return gpu.memo.once((self, "asleep"), (gpu.steps[-1].at, now), lambda: self._of_sleep(gpu, config))

    def _of_sleep(self, gpu: GpuRecord, config: Mapping[str, wire.ConfigValue]) -> Verdict | None:
        told, source = _residues(_settled(gpu.steps, config), config)
        now_bytes = {"sleep": gpu.residue_now_bytes, "asleep": gpu.asleep_now_bytes}.get(source)
        growth = self._risen([*told, now_bytes][-WINDOW_STEPS:]) if now_bytes is not None else None
        return self._active(growth, gpu, gpu.steps[-1].step + 1, source) if growth else None

    def _judged(self, gpu: GpuRecord, config: Mapping[str, wire.ConfigValue]) -> Verdict:
        steps = _settled(gpu.steps, config)
        residues, source = _residues(steps, config)
        peaks = [step.peak_bytes for step in steps[-PEAK_STEPS:] if step.peak_bytes is not None]
        if not residues or not peaks:
            return UNKNOWN
        room = max(0.0, gpu.usable_bytes - max(peaks))
        growth = self.holds_for(residues, room)
        if (known := last_active(gpu.memo, self)) is not None and known.limit is not None:
            usual = known.facts["usual_bytes"]
            before = Growth(float(usual), residues[-1], known.limit, growth.slope_bytes if growth else None)
            growth = self.goes_on(residues, before) or growth
        if growth is None:
            return inactive(residues[-1], None, "bytes") if len(residues) >= STEPS_MIN else UNKNOWN
        return self._active(growth, gpu, steps[-1].step, source, room)

    @staticmethod
    def _active(growth: Growth, gpu: GpuRecord, step: int, source: str, room_bytes: float = 0.0) -> Verdict:
        facts: dict[str, wire.Fact] = {
            "residue_bytes": growth.last_bytes,
            "usual_bytes": growth.usual_bytes,
            "grown_bytes": growth.last_bytes - growth.usual_bytes,
            "step": step,
            "source": source,
            "usable_bytes": gpu.usable_bytes,
        }
        if growth.slope_bytes is not None:
            facts |= {"slope_bytes": growth.slope_bytes, "eta_steps": round(room_bytes / growth.slope_bytes)}
        return Verdict("active", growth.last_bytes, growth.limit_bytes, "bytes", facts)


def _settled(steps: Sequence[GpuStep], config: Mapping[str, wire.ConfigValue]) -> list[GpuStep]:
    """The steps since the last restart that come after the first update."""
    warmup = config.get("trainer.critic_warmup")  # the step in which the actor is first updated, as verl counts
    first = 1 + max(1, int(warmup) if isinstance(warmup, int | float) else 1)
    return [
        step
        for step in steps
        if step.segment == steps[-1].segment and step.step >= first and (step.usual or step.step <= WARM_UP_STEPS)
    ]


def _residues(steps: Sequence[GpuStep], config: Mapping[str, wire.ConfigValue]) -> tuple[list[float], str]:
    """The residue of each step that tells one, and where it is told: "sleep" lines, memory lines of moments when the
    engine is "asleep", or the "floor" of phases."""
    if not steps:
        return [], "floor"
    told = [step.residue_bytes for step in steps if step.residue_bytes is not None]
    if told and steps[-1].residue_bytes is not None:
        return told, "sleep"
    if config.get("actor_rollout_ref.rollout.free_cache_engine") is False:
        return [], "floor"  # it never sleeps
    asleep = [step.asleep_bytes for step in steps if step.asleep_bytes is not None]
    if asleep and steps[-1].asleep_bytes is not None:
        return asleep, "asleep"
    floors = [known(step.floor_of(phase) for phase in ASLEEP_PHASES) for step in steps]
    return [min(of_step) for of_step in floors if of_step], "floor"
