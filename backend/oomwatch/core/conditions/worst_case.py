"""The longest batch that the configuration allows would not fit, though none has been that long yet."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from oomwatch import wire
from oomwatch.core import microbatch
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.held import held_in_run, last_active
from oomwatch.core.lives import RunNews
from oomwatch.core.peaks import GpuStep, usual_of
from oomwatch.core.peers import peers_of, role_of
from oomwatch.core.relation import Line, Point, Slope, line_with, slope_through, together
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.plan.phasekeys import PHASES
from oomwatch.plan.settings import Config

WINDOW_STEPS = 40
SIGNIFICANT_P = 0.01
MARGIN_RATIO = 1.03  # of the card: it is asked anew at every step, and packed cards come close
NEAR_RATIO = 0.9  # of the cap: where a response has been that long, batches of the longest will come
# Times the longest mean so far: no mean of a micro batch is foretold beyond, and of less where only means are told.
FURTHEST, FURTHEST_OF_MEANS = 3.0, 2.0
KNOWN_RATIO = 0.9  # of the steps: a phase that is long enough to be read in long steps alone shows too steep a slope
WHOLE_STEP = ""  # stands for the phase where none is known


class Worst(NamedTuple):
    """Of a phase: how its peak follows the step's mean response, and the mean at which its longest batch would come."""

    phase: str
    line: Line
    mean_tokens: float
    longest_tokens: float  # of the responses in that batch


class WorstCase(Kind, frozen=True, kw_only=True, tag="worst_case", cache_hash=True):
    """{kind: worst_case, steps: 8}

    In each phase the peak follows the tokens of the largest micro batch. How much so is told by the mean response of
    each step (Theil-Sen, over all GPUs that do the same), and how much more the largest batch holds than a usual one by
    the micro batch's size and the spread of lengths. It holds when even the flattest line that the data allow is above
    the card at a micro batch whose responses are all as long as data.max_response_length (of three times the longest
    mean so far, if that is less). Silent where no response has come near that length, and where a batch is bounded by
    its tokens (ppo_max_token_len_per_gpu) and has reached that bound.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu",)
    hears: ClassVar[tuple[News, ...]] = ("steps",)
    predicts: ClassVar[Channel | None] = "device"
    topic: ClassVar[Topic | None] = "device"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        "predicted_bytes",
        "usable_bytes",
        "short_bytes",
        "cap_tokens",
        "length_max_tokens",
        "length_tokens",
        "thousand_tokens_bytes",
        "spread_bytes",
        "phase",
        "step",
    )

    steps: int = 8

    def __post_init__(self) -> None:
        if not 8 <= self.steps <= WINDOW_STEPS:  # noqa: PLR2004 - fewer can hardly be significant
            raise ValueError(f"steps must be from 8 to {WINDOW_STEPS}")

    def holds_for(
        self, points: Sequence[Point], slope: Slope, mean_tokens: float, capacity_bytes: float, *, is_held: bool = False
    ) -> Line | None:
        """The line through a GPU's points (mean response, peak) if even the flattest does not fit at such a mean.

        Where it did not at the step before (`is_held`), the likeliest line decides.
        """
        if len(points) < self.steps or slope.p >= SIGNIFICANT_P:
            return None
        line = line_with(slope, points)
        if is_held:
            return line if line.at(mean_tokens) > capacity_bytes else None
        return line if line.at_least(mean_tokens) > MARGIN_RATIO * capacity_bytes else None

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        return held_in_run(fleet, subject, self, now, self._judged)

    def _judged(self, fleet: Fleet, gpu: GpuRecord, run: RunRecord) -> Verdict:
        steps = _of_known_length(usual_of(gpu.steps))[-WINDOW_STEPS:]
        if len(steps) < self.steps:
            return UNKNOWN
        longest_tokens = _longest_to_come(steps, run.config)
        if longest_tokens is None:
            return INACTIVE
        found = list(self._worst(fleet, gpu, run, steps, longest_tokens))
        if not found:
            return INACTIVE
        return _told(max(found, key=lambda one: one.line.at(one.mean_tokens)), steps, gpu)

    def _worst(
        self, fleet: Fleet, gpu: GpuRecord, run: RunRecord, steps: Sequence[GpuStep], longest_tokens: float
    ) -> Iterator[Worst]:
        """The phases in which it would not fit."""
        is_held = last_active(gpu.memo, self) is not None
        means = {step.at: step.length_mean_tokens or 0.0 for step in steps}
        prompt_tokens = microbatch.longer_prompts(steps, run.config, run.batches)
        furthest = (FURTHEST if _tells_longest(steps) else FURTHEST_OF_MEANS) * max(means.values())
        for phase in _phases(steps):
            ratio = microbatch.largest_ratio(phase, steps, run.config, run.batches)
            full = means[steps[-1].at] * microbatch.full_ratio(phase, steps[-1], run.batches)
            mean_tokens = min((longest_tokens + prompt_tokens) / ratio, furthest, full)
            points = [(means[at], peak) for at, peak in _peaks(steps, phase).items()]
            if len(points) < KNOWN_RATIO * len(steps) or not _may_be_over(points, steps, mean_tokens, gpu.usable_bytes):
                continue
            slope = _slope(fleet, gpu, run, phase, means)
            line = slope and self.holds_for(points, slope, mean_tokens, gpu.usable_bytes, is_held=is_held)
            if line:
                yield Worst(phase, line, mean_tokens, min(longest_tokens, mean_tokens * ratio))


def _told(worst: Worst, steps: Sequence[GpuStep], gpu: GpuRecord) -> Verdict:
    predicted = worst.line.at(worst.mean_tokens) + worst.line.spread
    facts: dict[str, wire.Fact] = {
        "predicted_bytes": predicted,
        "usable_bytes": gpu.usable_bytes,
        "short_bytes": predicted - gpu.usable_bytes,
        "cap_tokens": round(worst.longest_tokens),
        "length_tokens": worst.line.middle_x,
        "thousand_tokens_bytes": 1000 * worst.line.slope.likeliest,
        "spread_bytes": worst.line.spread,
        "step": steps[-1].step,
    }
    if _tells_longest(steps):
        facts["length_max_tokens"] = max(step.length_max_tokens or 0.0 for step in steps)
    if worst.phase != WHOLE_STEP:
        facts["phase"] = worst.phase
    return Verdict("active", predicted, float(gpu.usable_bytes), "bytes", facts)


def _of_known_length(steps: Sequence[GpuStep]) -> list[GpuStep]:
    return [step for step in steps if step.length_mean_tokens]


def _tells_longest(steps: Sequence[GpuStep]) -> bool:
    return any(step.length_max_tokens for step in steps)


def _longest_to_come(steps: Sequence[GpuStep], config: Config) -> float | None:
    """The longest response that is allowed, where it will come: some were clipped, or nearly. None: it is far off."""
    cap = microbatch.response_cap(steps, config)
    if cap is None or not _tells_longest(steps):
        return cap
    longest = max(step.length_max_tokens or 0.0 for step in steps)
    return cap if longest >= NEAR_RATIO * cap or any(step.clip_ratio for step in steps) else None


def _phases(steps: Sequence[GpuStep]) -> list[str]:
    """Those whose memory follows the responses; the whole step where no phase of these is known."""
    told = {name for step in steps for name in step.phases.names}
    return [phase for phase in PHASES if phase in told] or [WHOLE_STEP]


def _peaks(steps: Sequence[GpuStep], phase: str) -> dict[float, float]:
    """By the times of the steps that tell it."""
    told = ((step.at, step.peak_bytes if phase == WHOLE_STEP else step.peak_of(phase)) for step in steps)
    return {at: peak for at, peak in told if peak is not None}


def _slope(fleet: Fleet, gpu: GpuRecord, run: RunRecord, phase: str, means: Mapping[float, float]) -> Slope | None:
    """How the peak of a phase follows the step's mean response, on all GPUs that do the same: worked out for one."""

    def work_out() -> Slope | None:
        series = (_peaks([step for step in one.steps if step.at in means], phase) for one in peers_of(gpu, run, fleet))
        return slope_through([(means[at], off) for at, off in together(series).items()])

    return run.memo.once(("peak by length", phase, role_of(gpu)), gpu.steps[-1].at, work_out)


def _may_be_over(points: Sequence[Point], steps: Sequence[GpuStep], mean_tokens: float, capacity_bytes: float) -> bool:
    """A bound that costs little: a phase cannot hold less without any batch than the least of the step."""
    if not points:
        return False
    lowest = min((step.floor_bytes for step in steps if step.floor_bytes is not None), default=0.0)
    mean = sum(tokens for tokens, _ in points) / len(points)
    peak = sum(peak for _, peak in points) / len(points)
    return lowest + (peak - lowest) * mean_tokens / mean > capacity_bytes
