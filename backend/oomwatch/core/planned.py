"""What a run's memory was expected to be, phase by phase, and what its steps have taught of that since.

The plan is worked out once for a configuration and a card (`plan.memory`, about a millisecond), not at every step. It
takes every sequence to be as long as is allowed, as the doctor does before a run. What is learned is compared at the
lengths that the steps had: else short responses would be taken for a model that needs less.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.microbatch import largest_ratio
from oomwatch.core.past import highest, levels_of
from oomwatch.core.peaks import GpuStep, usual_of
from oomwatch.core.runrecord import RunRecord
from oomwatch.plan.batches import Batches
from oomwatch.plan.memory import Correction, Estimate, corrected, correction_of, estimate_of
from oomwatch.plan.models import ModelShape, shape_named, shape_of_hf_config
from oomwatch.plan.settings import ROLLOUT, Config, count, flag

LEARNED_FROM_STEPS = 3
# verl wakes the engine's cache at the end of this phase or at the beginning of the rollout, release by release.
SWITCH = "update_weights"
# What an estimate leaves out comes on top of it: such a run cannot be held against its plan.
_LEAVES_OUT = ("no_reward_model", "no_images")

Why: TypeAlias = Literal["config", "model", "card", "apart", "left_out", "sizes"]


class NoPlan(NamedTuple):
    """There is none. `why`: the catalogue has it as run.no_plan.WHY."""

    why: Why


class Plan(NamedTuple):
    """`told` is by the configuration alone; `expected` by what an earlier start of the run taught, too."""

    told: Estimate
    expected: Estimate

    def high_bytes(self, phase: str) -> int | None:
        """Above it a phase has left the plan. Above both estimates: what was learned makes it no narrower."""
        named = (phase, "rollout") if phase == SWITCH else (phase,)
        known = [found for one in (self.told, self.expected) for name in named if (found := one.phase(name))]
        if self.told.phase(phase) is None or any(one.trouble for one in known):
            return None
        return max(one.high_bytes for one in known)


def plan_of(run: RunRecord, capacity_bytes: int) -> Plan | NoPlan:
    """Of a run on cards of which programs can use so much: kept until its configuration changes."""
    stamp = (run.config, run.model, run.critic_model, run.framework_version)
    return run.memo.once(("plan", capacity_bytes), stamp, lambda: _worked_out(run, capacity_bytes))


def learned(fleet: Fleet, run: RunRecord, capacity_bytes: int) -> Correction | None:
    """What the steps so far say of the plan's factors; worked out once a step."""
    last = run.steps.last()
    key = ("learned", capacity_bytes)
    if last is None:
        return None
    return run.memo.once(key, last.at, lambda: _learned(fleet, run, capacity_bytes) or _last(run, capacity_bytes))


def at_lengths(run: RunRecord, capacity_bytes: int, steps: Sequence[GpuStep]) -> Estimate | None:
    """The estimate for sequences as long as those of these steps; None where that cannot be told."""
    shapes, tokens = _shapes(run), mean_tokens(steps, run.config, run.batches)
    if shapes is None or tokens is None:
        return None
    return _estimated(run, shapes, capacity_bytes, tokens)


def mean_tokens(steps: Sequence[GpuStep], config: Config, batches: Batches) -> float | None:
    """The mean of prompt and response in a step's largest micro batch."""
    sequences = batches.sequences_per_step
    told = [
        (step.tokens_total / sequences, step.length_mean_tokens)
        for step in steps
        if sequences and step.tokens_total and step.length_mean_tokens
    ]
    if not told:
        return None
    prompt = max(0.0, median(whole - response for whole, response in told))
    response = median(response for _, response in told)
    return max(1.0, prompt + response * largest_ratio("update_actor", steps, config, batches))


def highest_peaks(of_gpus: Iterable[Sequence[GpuStep]]) -> Mapping[str, float]:
    """By phase, the highest over all GPUs and usual steps since the run's last start."""
    return highest(step for of_gpu in of_gpus for step in usual_of(of_gpu)).peaks


def gpus_on(fleet: Fleet, run: RunRecord, capacity_bytes: int) -> list[GpuRecord]:
    """The run's GPUs of which programs can use so much, and whose steps are its own."""
    return [gpu for gpu in fleet.gpus_of_run(run) if gpu.usable_bytes == capacity_bytes and gpu.steps_of == run.name]


# ---------------------------------------------------------------- how it is worked out


class _Shapes(NamedTuple):
    actor: ModelShape
    critic: ModelShape | None


def _worked_out(run: RunRecord, capacity_bytes: int) -> Plan | NoPlan:
    shapes = _shapes(run)
    if not run.config or shapes is None or capacity_bytes <= 0 or _are_apart(run.config):
        return NoPlan(_why_not(run, shapes, capacity_bytes))
    told = _estimated(run, shapes, capacity_bytes, None)
    if told is None:
        return NoPlan("sizes")
    if any(name in _LEAVES_OUT for name in told.assumed):
        return NoPlan("left_out")
    before = _last(run, capacity_bytes)
    return Plan(told, corrected(told, before) if before else told)


def _why_not(run: RunRecord, shapes: _Shapes | None, capacity_bytes: int) -> Why:
    if not run.config:
        return "config"
    if shapes is None:
        return "model"
    return "card" if capacity_bytes <= 0 else "apart"


def _are_apart(config: Config) -> bool:
    """Whether the engine has cards of its own: the plan is of cards that trainer and engine share."""
    return flag(config, "actor_rollout_ref.hybrid_engine") is False or (count(config, f"{ROLLOUT}.nnodes") or 0) > 0


def _estimated(run: RunRecord, shapes: _Shapes, capacity_bytes: int, tokens: float | None) -> Estimate | None:
    try:
        return estimate_of(
            run.config,
            shapes.actor,
            capacity_bytes,
            version=run.framework_version,
            critic_shape=shapes.critic,
            mean_length_tokens=tokens,
        )
    except ValueError:  # no phase of a known size
        return None


def _shapes(run: RunRecord) -> _Shapes | None:
    actor = shape_of(run.model)
    return _Shapes(actor, shape_of(run.critic_model)) if actor else None


def shape_of(told: Mapping[str, wire.ConfigValue]) -> ModelShape | None:
    """The shape that an agent told of: by its sizes, else by its name."""
    named = shape_named(str(told["name"])) if "name" in told else None
    try:
        read = shape_of_hf_config(told)
    except ValueError:
        return named
    # Sizes are of the text part: by its name more may be known of it.
    return named if named and (named.layers, named.hidden) == (read.layers, read.hidden) else read


def _learned(fleet: Fleet, run: RunRecord, capacity_bytes: int) -> Correction | None:
    gpus = gpus_on(fleet, run, capacity_bytes)
    of_gpus = [list(gpu.steps)[-2 * LEARNED_FROM_STEPS :] for gpu in gpus]
    levels = levels_of(of_gpus, run.config, steps=LEARNED_FROM_STEPS)
    if levels is None:
        return None
    steps = usual_of(of_gpus[0])
    estimate = at_lengths(run, capacity_bytes, steps)
    measured = {one.phase: one.peak_bytes for one in levels.phases if one.phase != SWITCH}
    return correction_of(estimate, measured) if estimate else None


def _last(run: RunRecord, capacity_bytes: int) -> Correction | None:
    before = run.memo.last(("learned", capacity_bytes))
    return before if isinstance(before, Correction) else None
