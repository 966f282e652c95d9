"""What is known of a GPU and of those beside it: its phases, what rose, torch's figures, the residue, the lengths."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median, median_low
from typing import NamedTuple

from oomwatch.core.facts import LENGTH_DRIVEN, PhaseFacts, number
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.parts import OURS, Part
from oomwatch.core.peaks import Block, GpuStep, usual_of
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.shortseries import TREND_MIN, correlation, known, pace, parted, rise, usual_range
from oomwatch.core.verdict import Verdict

STEPS = 30  # the window of warnings.md's method
STEPS_TOLD_MIN = 3
SETTLED_STEP = 3  # the first update makes the optimizer's states: what was left before it is no measure
ALIKE_RATIO = 0.5
SAVES_MAX = 0.4  # of the steps
NOTABLE_SHARE = 0.1  # of a rise: where it began
LOADING_BLOCKS = 2
IDLE_RATIO = 0.05  # of the card: what a context alone takes is less


def device_facts(fleet: Fleet, gpu: GpuRecord, run: RunRecord | None, verdict: Verdict) -> dict[str, object]:
    """What is known at this moment. What the steps tell is worked out once a step, however many alerts ask for it."""
    if gpu.steps:
        told = gpu.memo.once(device_facts, gpu.steps[-1].at, lambda: _of_steps(fleet, gpu, run))
    else:
        told = _of_steps(fleet, gpu, run)
    residues = _residues(_segment(gpu), verdict)
    above = _above(residues, verdict)
    parts = _parts(gpu, usual_of(gpu.steps)[-STEPS:], above.steps if above else 0)
    return told | _residue(residues, above) | {"parts": parts, "capacity_bytes": float(gpu.usable_bytes)}


def _of_steps(fleet: Fleet, gpu: GpuRecord, run: RunRecord | None) -> dict[str, object]:
    steps = usual_of(gpu.steps)[-STEPS:]
    rank_0 = _rank_0_like(fleet, gpu, run) if run else None
    torch = _torch(steps, usual_of(rank_0.steps)[-STEPS:] if rank_0 else (), run if rank_0 else None)
    more = {"steps": len(steps), "saved_share": _saved_share(steps)}
    return _levels(gpu, steps or _segment(gpu)[-1:]) | _lengths(steps) | torch | more


def _saved_share(steps: Sequence[GpuStep]) -> float:
    """How much of what the trainer's process, or else the residue, gained came from a step that saved to the next.

    Where most steps save, that says nothing.
    """
    by_process = sum(one.held_by("trainer") is not None for one in steps) >= STEPS_TOLD_MIN
    held = [(one, one.held_by("trainer") if by_process else one.residue_bytes) for one in steps]
    gains = [
        (before.peak_of("save_checkpoint") is not None, max(0.0, most - least))
        for (before, least), (_, most) in pairwise(held)
        if least is not None and most is not None
    ]
    total, saving = sum(gain for _, gain in gains), [gain for saved, gain in gains if saved]
    return sum(saving) / total if total > 0 and len(saving) < SAVES_MAX * len(gains) else 0.0


def _segment(gpu: GpuRecord) -> list[GpuStep]:
    """All steps since the last restart."""
    return [one for one in gpu.steps if one.segment == gpu.steps[-1].segment] if gpu.steps else []


def _parts(gpu: GpuRecord, steps: Sequence[GpuStep], since: int = 0) -> tuple[Part, ...]:
    """Who holds the card now, and by how much each gained from step to step, or in time where no steps are known.

    `since`: in so many of the last steps a rule has seen the residue above what it was.
    """
    return tuple(_gaining(part, steps, since, tells_steps=bool(gpu.steps)) for part in gpu.parts)


def _gaining(part: Part, steps: Sequence[GpuStep], since: int, *, tells_steps: bool) -> Part:
    """A run's processes are measured by its steps alone: what they gained before there were enough, they loaded."""
    told = [(one.at, size) for one in steps if (size := one.held_by(part.kind)) is not None]
    if len(told) >= STEPS_TOLD_MIN:
        held = [size for _, size in told]
        return part._replace(rise_bytes=max(rise(held), parted(held, since)), rise_seconds=told[-1][0] - told[0][0])
    return part._replace(rise_bytes=0.0, rise_seconds=0.0) if tells_steps and part.kind in OURS else part


def _levels(gpu: GpuRecord, steps: Sequence[GpuStep]) -> dict[str, object]:
    """Peaks and floors: of the steps' phases, of whole steps, or of blocks of time where no step is known."""
    peaks, floors = known(one.peak_bytes for one in steps), known(one.floor_bytes for one in steps)
    if not peaks:
        blocks = _after_loading(gpu.blocks.closed())
        peaks, floors = [one.peak_bytes for one in blocks], [one.floor_bytes for one in blocks]
    if not peaks:
        peaks = floors = known([gpu.used_bytes])
    names = dict.fromkeys(name for one in steps for name in one.phases.names)
    phases = tuple(_phase(name, steps) for name in names)
    common = _common(steps, phases) or [floors]
    floor_rise = median_low([rise(series) for series in common])
    driven = (one.peak_rise_bytes - floor_rise for one in phases if one.phase in LENGTH_DRIVEN)
    return {
        "phases": phases,
        "peak_bytes": max(peaks[-3:], default=None),
        "peak_rise_bytes": max([rise(peaks), *(one.peak_rise_bytes for one in phases)]),
        "floor_rise_bytes": floor_rise,
        "pace_bytes": median_low([pace(series) for series in common]),
        "active_rise_bytes": max([0.0, *driven]),
    }


def _after_loading(blocks: list[Block]) -> list[Block]:
    return blocks[LOADING_BLOCKS:] if len(blocks) > 2 * LOADING_BLOCKS else blocks


def _common(steps: Sequence[GpuStep], phases: Sequence[PhaseFacts]) -> list[list[float]]:
    """The floors of what comes with every step. A leak is in all of them: half of them have gained so much.

    Where responses get longer, those of the phases that they drive tell nothing: the allocator keeps what the first
    pass of a phase took, so that such a phase's floor rises with its peak.
    """
    longer = rise(known(one.length_mean_tokens for one in steps)) > 0
    usual = [one.phase for one in phases if 2 * sum(step.peak_of(one.phase) is not None for step in steps) > len(steps)]
    told = [name for name in usual if not (longer and name in LENGTH_DRIVEN)]
    return [series for name in told if (series := known(step.floor_of(name) for step in steps))]


def _phase(name: str, steps: Sequence[GpuStep]) -> PhaseFacts:
    peaks, floors = known(one.peak_of(name) for one in steps), known(one.floor_of(name) for one in steps)
    return PhaseFacts(name, max(peaks[-3:]), floors[-1], rise(peaks), rise(floors))


def _torch(steps: Sequence[GpuStep], of_rank_0: Sequence[GpuStep], run: RunRecord | None) -> dict[str, object]:
    """torch's figures: of a probe or of memory lines, this GPU's or rank 0's, which holds the same.

    Else of the run's step lines, whose maxima can only rise. What is allocated is compared at its least, where the work
    of single steps is not in it.
    """
    own = [one for one in steps if one.allocated_peak_bytes is not None]
    told = own or [one for one in of_rank_0 if one.allocated_peak_bytes is not None]
    found = _of_readings(told) or _of_step_lines(steps, run)
    slack = known(one.slack_bytes for one in told)
    return {
        "allocated_rise_bytes": found.allocated_rise_bytes,
        "allocated_noise_bytes": found.noise_bytes,
        "reserved_peak_bytes": found.reserved_peak_bytes,
        "slack_bytes": slack[-1] if slack else None,
        "slack_rise_bytes": max(rise(slack), found.apart_bytes, 0.0),
        "retry_steps": sum(1 for one in steps[-3:] if one.retries),
    }


class _Torch(NamedTuple):
    allocated_rise_bytes: float | None = None
    noise_bytes: float = 0.0
    reserved_peak_bytes: float | None = None
    apart_bytes: float = 0.0  # by how much reserved rose more than allocated


def _of_readings(steps: Sequence[GpuStep]) -> _Torch | None:
    if len(steps) < TREND_MIN:
        return None
    floors = known(one.allocated_floor_bytes for one in steps)
    return _Torch(rise(floors), 0.0, steps[-1].reserved_peak_bytes)


def _of_step_lines(steps: Sequence[GpuStep], run: RunRecord | None) -> _Torch:
    records = [record.step for record in run.steps.segment() if record.usual][-STEPS:] if run else []
    allocated = known(step.torch_allocated_peak_bytes for step in records)
    reserved = known(step.torch_reserved_peak_bytes for step in records)
    if len(allocated) < TREND_MIN:
        return _Torch()
    noise = usual_range([active for one in steps if (active := _active(one)) is not None])
    apart = rise(reserved) - rise(allocated) if len(reserved) == len(allocated) else 0.0
    return _Torch(rise(allocated), noise, reserved[-1] if reserved else None, apart)


def _rank_0_like(fleet: Fleet, gpu: GpuRecord, run: RunRecord) -> GpuRecord | None:
    """Rank 0's GPU, of which alone lines tell, where what they tell is true of this one: it gains as much."""
    rank_0 = next((one for one in fleet.gpus_of_run(run) if _is_rank_0(one, run)), None)
    if rank_0 is None or rank_0 is gpu:
        return rank_0
    return rank_0 if _gained(rank_0) >= ALIKE_RATIO * _gained(gpu) else None


def _gained(gpu: GpuRecord) -> float:
    """What the run holds more on a GPU, whatever the phase."""
    steps = usual_of(gpu.steps)[-STEPS:]
    ours = (part.rise_bytes for part in _parts(gpu, steps) if part.kind in OURS)
    return max([rise(known(one.residue_bytes for one in steps)), *ours])


def _is_rank_0(gpu: GpuRecord, run: RunRecord) -> bool:
    if gpu.subject == run.torch_subject or (gpu.steps and gpu.steps[-1].lifetime_peak_bytes is not None):
        return True
    return any(process.rank == 0 and process.run == run.name for process in gpu.processes or ())


def _residues(steps: Sequence[GpuStep], verdict: Verdict) -> list[float]:
    """Of all steps since the first update: what a sleeping engine keeps can kill within the first ones.

    The trainer's memory lines tell of it too, but a leak would raise them no less: they count where a rule did so.
    """
    settled = [one for one in steps if one.step >= SETTLED_STEP] or steps
    if verdict.facts.get("source") == "asleep":
        return known(one.asleep_bytes for one in settled)[-STEPS:]
    return known(one.residue_bytes for one in settled)[-STEPS:]


def _residue(residues: Sequence[float], above: "_Above | None") -> dict[str, object]:
    if not residues:
        return {}
    grown = above.grown_bytes if above else 0.0
    return {
        "residue_bytes": residues[-1],
        "residue_before_bytes": above.usual_bytes if above else residues[0],
        "residue_rise_bytes": max(rise(residues), grown),
        "residue_pace_bytes": max(pace(residues), grown / above.steps if above else 0.0),
    }


class _Above(NamedTuple):
    """What a rule has measured of the residue: it is believed, and believed to go on as fast as it came."""

    usual_bytes: float
    grown_bytes: float
    steps: int  # since it left the usual level


def _above(residues: Sequence[float], verdict: Verdict) -> _Above | None:
    grown, usual = (number(verdict.facts.get(name)) for name in ("grown_bytes", "usual_bytes"))
    if usual is None or not grown:
        return None
    above = [value > usual + NOTABLE_SHARE * grown for value in reversed(residues)]
    return _Above(usual, grown, (above.index(False) if False in above else len(above)) or 1)


def _lengths(steps: Sequence[GpuStep]) -> dict[str, object]:
    longest = known(one.length_max_tokens for one in steps) or known(one.length_mean_tokens for one in steps)
    means = known(one.length_mean_tokens for one in steps) or longest
    if not longest:
        return {}
    pairs = [(one.length_mean_tokens or one.length_max_tokens, active) for one in steps if (active := _active(one))]
    found = [(length, active) for length, active in pairs if length is not None]
    clips = known(one.clip_ratio for one in steps)
    return {
        "length_tokens": max(longest[-3:]),
        "length_before_tokens": median(means[:3]),
        "length_mean_tokens": means[-1],
        "length_rise_tokens": rise(means),
        "length_fit": correlation(found),
        "clip_ratio": clips[-1] if clips else None,
    }


def _active(step: GpuStep) -> float | None:
    """What the phase that allocates most takes for its work, above the least of the step."""
    if step.floor_bytes is None:
        return None
    peaks = known(step.peak_of(name) for name in LENGTH_DRIVEN)
    return max(peaks) - step.floor_bytes if peaks else None


def peers_peak(fleet: Fleet, gpu: GpuRecord, run: RunRecord | None) -> float | None:
    """The usual peak of the run's other GPUs in the last step. A card that lies idle beside them is none of them."""
    if run is None or not gpu.steps:
        return None
    last = gpu.steps[-1]
    others = (one.steps[-1] for one in fleet.gpus_of_run(run) if one is not gpu and one.steps)
    peaks = known(step.peak_bytes for step in others if step.step == last.step)
    busy = [peak for peak in peaks if peak > IDLE_RATIO * gpu.usable_bytes]
    return median(busy) if busy else None
