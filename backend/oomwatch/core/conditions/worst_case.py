"""The longest batch that the configuration allows would not fit, though none has been that long yet."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.held import held_on, last_active
from oomwatch.core.peaks import GpuStep, usual_of
from oomwatch.core.relation import Line, line_through
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.settings import response_cap_of
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict

Point = tuple[float, float]  # length in tokens, peak in bytes

WINDOW_STEPS = 40
SPAN_RATIO = 0.25  # of their mean: lengths that differ by less say nothing of longer ones
SHOWN_RATIO = 0.98  # of the cap: what was that long has shown the worst case
SIGNIFICANT_P = 0.01
FURTHEST = 2.0  # times the longest mean so far: no mean of a batch is foretold beyond
STEEPEST = 2.0  # the first look doubts the slope by so much, which is enough for nearly every step

ACTOR, ROLLOUT, REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
# The phases whose memory follows the length of the responses; what bounds the tokens of their micro batches where those
# are made up by tokens (verl 0.5 to 0.9). The rollout's memory is the engine's share, whatever the length.
BOUNDS: dict[str, tuple[str, str]] = {
    "old_log_prob": (f"{ROLLOUT}.log_prob_use_dynamic_bsz", f"{ROLLOUT}.log_prob_max_token_len_per_gpu"),
    "ref": (f"{REF}.log_prob_use_dynamic_bsz", f"{REF}.log_prob_max_token_len_per_gpu"),
    "values": ("critic.use_dynamic_bsz", "critic.forward_max_token_len_per_gpu"),
    "update_critic": ("critic.use_dynamic_bsz", "critic.ppo_max_token_len_per_gpu"),
    "update_actor": (f"{ACTOR}.use_dynamic_bsz", f"{ACTOR}.ppo_max_token_len_per_gpu"),
}
WHOLE_STEP = ""  # stands for the phase where none is known


class Overflow(NamedTuple):
    phase: str
    line: Line
    cap_tokens: float


class WorstCase(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="worst_case", forbid_unknown_fields=True, cache_hash=True
):
    """{kind: worst_case, steps: 8}

    In each phase the peak is held against the length of the responses (Theil-Sen). It holds when even the flattest line
    that the data allow is above the card at data.max_response_length. Silent where a response as long has been seen,
    and where a batch is bounded by its tokens (ppo_max_token_len_per_gpu) and has reached that bound.
    """

    steps: int = 8

    def __post_init__(self) -> None:
        if not 8 <= self.steps <= WINDOW_STEPS:  # noqa: PLR2004 - fewer can hardly be significant
            raise ValueError(f"steps must be from 8 to {WINDOW_STEPS}")

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return ("gpu",)

    @property
    def fact_names(self) -> tuple[str, ...]:
        return (
            "predicted_bytes", "capacity_bytes", "short_bytes", "cap_tokens", "length_max_tokens", "length_tokens",
            "thousand_tokens_bytes", "spread_bytes", "phase", "step",
        )  # fmt: skip

    @property
    def predicts(self) -> Channel | None:
        return "device"

    @property
    def topic(self) -> Topic | None:
        return "device"

    @property
    def hears(self) -> tuple[News, ...]:
        return ("steps",)

    def holds_for(
        self, points: Sequence[Point], cap_tokens: float, capacity_bytes: float, *, is_held: bool = False
    ) -> Line | None:
        """The line through the points, oldest first, if even the flattest one that they allow does not fit at the cap.

        Where it did not at the step before (`is_held`), the likeliest line decides.
        """
        window = points[-WINDOW_STEPS:]
        if len(window) < self.steps or not _may_be_over(window, cap_tokens, capacity_bytes):
            return None
        line = line_through(window)
        if line is None or line.p >= SIGNIFICANT_P:
            return None
        foretold = line.at(cap_tokens) if is_held else line.at_least(cap_tokens)
        return line if foretold > capacity_bytes else None

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        gpu = fleet.gpu(subject)
        run = fleet.runs.get(fleet.run_of(subject) or "")
        if gpu is None or run is None:
            return UNKNOWN
        return held_on(gpu, self, now, lambda: self._judged(gpu, run))

    def _judged(self, gpu: GpuRecord, run: RunRecord) -> Verdict:
        steps = usual_of(gpu.steps)[-WINDOW_STEPS:]
        if len(steps) < self.steps:
            return UNKNOWN
        found = self._overflows(steps, run.config, gpu)
        if not found:
            return INACTIVE
        worst = max(found, key=lambda one: one.line.at(one.cap_tokens))
        predicted = worst.line.at(worst.cap_tokens) + worst.line.spread
        facts: dict[str, wire.Fact] = {
            "predicted_bytes": predicted,
            "capacity_bytes": gpu.usable_bytes,
            "short_bytes": predicted - gpu.usable_bytes,
            "cap_tokens": round(worst.cap_tokens),
            "length_tokens": worst.line.middle_x,
            "thousand_tokens_bytes": 1000 * worst.line.slope,
            "spread_bytes": worst.line.spread,
            "step": steps[-1].step,
        }
        longest = max((step.length_max_tokens for step in steps if step.length_max_tokens is not None), default=None)
        if longest is not None:
            facts["length_max_tokens"] = longest
        if worst.phase != WHOLE_STEP:
            facts["phase"] = worst.phase
        return Verdict("active", predicted, float(gpu.usable_bytes), "bytes", facts)

    def _overflows(
        self, steps: Sequence[GpuStep], config: Mapping[str, wire.ConfigValue], gpu: GpuRecord
    ) -> list[Overflow]:
        """In which phases it would not fit."""
        response_cap = _response_cap(steps, config)
        measured = _lengths(steps, response_cap) if response_cap else None
        if response_cap is None or measured is None:
            return []
        known, lengths, cap = measured
        found: list[Overflow] = []
        for phase, points in _points(known, lengths).items():
            cap_tokens = min(cap, _bound(phase, known, lengths, config))
            line = self.holds_for(points, cap_tokens, gpu.usable_bytes, is_held=last_active(gpu.memo, self) is not None)
            if line is not None:
                found.append(Overflow(phase, line, cap_tokens))
        return found


def _may_be_over(window: Sequence[Point], cap_tokens: float, capacity_bytes: float) -> bool:
    """A first look, that costs little: the longer half of the steps against the shorter half."""
    ordered = sorted(window)
    half = len(ordered) // 2
    lengths, peaks = [length for length, _ in ordered], [peak for _, peak in ordered]
    mean, span = sum(lengths) / len(lengths), lengths[-1] - lengths[0]
    if span < SPAN_RATIO * mean or lengths[-1] >= SHOWN_RATIO * cap_tokens:
        return False
    rise = (sum(peaks[-half:]) - sum(peaks[:half])) / (sum(lengths[-half:]) - sum(lengths[:half]))
    return sum(peaks) / len(peaks) + STEEPEST * rise * (cap_tokens - mean) > capacity_bytes


def _response_cap(steps: Sequence[GpuStep], config: Mapping[str, wire.ConfigValue]) -> float | None:
    """How long a response may get: as configured, else as long as those that were clipped."""
    configured = response_cap_of(config)
    if configured is not None:
        return float(configured)
    return max((step.length_max_tokens for step in steps if step.clip_ratio and step.length_max_tokens), default=None)


def _lengths(steps: Sequence[GpuStep], response_cap: float) -> tuple[list[GpuStep], list[float], float] | None:
    """The steps to compare, the length of each, and the longest one to foretell.

    The longest response of each step counts, as long as none has reached the cap: from then on the worst case has been
    shown. Where only means are told they count, and no mean is foretold that is far beyond.
    """
    told = [step for step in steps if step.length_max_tokens is not None]
    longest = [step.length_max_tokens or 0.0 for step in told]
    if told:
        return (told, longest, response_cap) if max(longest) < SHOWN_RATIO * response_cap else None
    known = [step for step in steps if step.length_mean_tokens is not None]
    means = [step.length_mean_tokens or 0.0 for step in known]
    return (known, means, min(response_cap, FURTHEST * max(means))) if known else None


def _points(steps: Sequence[GpuStep], lengths: Sequence[float]) -> dict[str, list[Point]]:
    """Length and peak of each step, by phase; over the whole step where no phase of these is known."""
    found: dict[str, list[Point]] = {}
    for step, length in zip(steps, lengths, strict=True):
        for one in step.phases:
            if one.phase in BOUNDS:
                found.setdefault(one.phase, []).append((length, one.peak_bytes))
    if found:
        return found
    whole = [
        (length, step.peak_bytes) for step, length in zip(steps, lengths, strict=True) if step.peak_bytes is not None
    ]
    return {WHOLE_STEP: whole}


def _bound(
    phase: str, steps: Sequence[GpuStep], lengths: Sequence[float], config: Mapping[str, wire.ConfigValue]
) -> float:
    """The length beyond which a batch that is bounded by its tokens grows no more; 0 where it may have got there.

    A card's share of the step's tokens is cut into micro batches of so many tokens. While the share is less, the batch
    grows with it.
    """
    dynamic_key, tokens_key = BOUNDS.get(phase, BOUNDS["update_actor"])
    if not config.get(dynamic_key, config.get(BOUNDS["update_actor"][0], False)):
        return float("inf")
    bound = _number(config.get(tokens_key, config.get(BOUNDS["update_actor"][1])))
    cards = _number(config.get("trainer.nnodes")) * _number(config.get("trainer.n_gpus_per_node"))
    share = (steps[-1].tokens_total or 0.0) / cards if cards else 0.0
    return lengths[-1] * bound / share if 0 < share < bound else 0.0


def _number(value: wire.ConfigValue | None) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
