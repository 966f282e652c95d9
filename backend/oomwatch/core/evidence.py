"""What is known of a subject at the moment it is judged, as plain numbers: what the causes are told apart by.

`gather` walks the fleet once, when an alert fires; everything after it (core/cause/, advice/) is arithmetic on `Facts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from statistics import median, median_low
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from oomwatch import wire
from oomwatch.core import trend
from oomwatch.core.blocks import FIVE_SECONDS
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.hostmemory import tightest
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.parts import Part
from oomwatch.core.peaks import Block, GpuStep, usual_of
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.settings import Settings, settings_of
from oomwatch.core.subject import Subject, Topic
from oomwatch.core.verdict import Verdict

STEPS = 30  # the window of warnings.md's method
TREND_MIN = 5  # values; fewer can only rise all the way
TREND_P = 0.02  # the alert has been raised on stricter grounds: this only says which part of the memory it was
FULL_RATIO = 0.95  # of the card: above it a longer batch or a fragment is enough
ALIKE_RATIO = 0.5
LOADING_BLOCKS = 2
WORK_SHARE = 0.6
STEPS_TOLD_MIN = 3
SETTLED_STEP = 3  # the first update makes the optimizer's states: what was left before it is no measure
RECENT = 8  # what began lately is no trend of the whole window
JUMP_RANGES = 3.0  # times the range of all values before
# Phases whose memory is that of the sequences in one micro batch. The rollout's is a pool of constant size.
LENGTH_DRIVEN = ("reward", "old_log_prob", "ref", "values", "update_critic", "update_actor")
HORIZON_STEPS = 50  # what is asked of a change: to hold for so many steps more, and twice as long as without it
ENGINES_FRESH_SECONDS = 60.0


class PhaseFacts(NamedTuple):
    """Device memory in one phase, over the last steps. A rise that is not significant is 0."""

    phase: str
    peak_bytes: float  # of the last steps, the highest
    floor_bytes: float  # of the last step
    peak_rise_bytes: float = 0.0
    floor_rise_bytes: float = 0.0


class OomFacts(NamedTuple):
    """A failure that was reported, as far as its message told."""

    on: Literal["device", "host"]
    phase: str | None = None
    tried_bytes: float | None = None
    free_bytes: float | None = None
    slack_bytes: float | None = None  # reserved but unallocated
    error: str = ""
    process: str = ""

    @property
    def is_wake_up(self) -> bool:
        """vLLM's own allocator failed, which is asked for memory when the engine wakes up and at no other time."""
        return "cumem" in self.error.lower()


class Facts(Struct, frozen=True, kw_only=True):
    """None: not known. Rises are over the last STEPS steps, and 0 where there is no significant one."""

    topic: Topic
    watched: str = ""  # what the rule watches: its metric, the event, or its kind
    phase: str | None = None  # the one that the rule names
    verdict: Mapping[str, wire.Fact] = {}  # the numbers of the judgement
    oom: OomFacts | None = None
    settings: Settings = Settings()

    # device memory
    capacity_bytes: float | None = None
    peak_bytes: float | None = None
    phases: tuple[PhaseFacts, ...] = ()
    peak_rise_bytes: float = 0.0
    floor_rise_bytes: float = 0.0  # what all phases have more at their lowest
    active_rise_bytes: float = 0.0  # peak minus floor: what a phase allocates for its own work
    active_bytes: float | None = None  # what the phase that matters will allocate for its own work
    needed_bytes: float | None = None  # what has to be freed to be safe
    pace_bytes: float = 0.0  # by how much memory rises a step now
    steps_left: float | None = None  # until it is full, where memory rises
    step_seconds: float | None = None
    steps: int = 0

    # torch and the engine
    allocated_rise_bytes: float | None = None
    allocated_noise_bytes: float = 0.0  # how far the work of single steps moves that peak
    reserved_peak_bytes: float | None = None
    slack_bytes: float | None = None
    slack_rise_bytes: float = 0.0
    retry_steps: int = 0  # of the last steps, those in which the allocator had to flush
    residue_bytes: float | None = None
    residue_before_bytes: float | None = None
    residue_rise_bytes: float = 0.0
    residue_pace_bytes: float = 0.0  # a step
    parts: tuple[Part, ...] = ()  # processes on the card

    # what drives it
    length_tokens: float | None = None  # longest response of the last steps
    length_mean_tokens: float | None = None  # of the last step
    length_rise_tokens: float = 0.0
    length_before_tokens: float | None = None
    length_fit: float = 0.0  # correlation of the active memory with the length, 0 to 1
    clip_ratio: float | None = None
    peers_peak_bytes: float | None = None  # median of the run's other GPUs in the same step

    # host
    host_used_bytes: float | None = None
    host_limit_bytes: float | None = None
    limited_by: str = "machine"
    host_parts: tuple[Part, ...] = ()
    shm_used_bytes: float | None = None
    shm_total_bytes: float | None = None
    disk_used_bytes: float | None = None
    disk_total_bytes: float | None = None

    # speed
    kv_used_ratio: float | None = None
    requests_waiting: int | None = None
    reward_seconds: float | None = None
    reward_before_seconds: float | None = None

    @property
    def told_phase(self) -> str | None:
        """The phase that the failure or the rule names."""
        if self.oom is not None and (self.oom.phase or self.oom.is_wake_up):
            return self.oom.phase or "update_weights"
        return self.phase

    @property
    def top_phase(self) -> PhaseFacts | None:
        """The phase that matters: the one that is named, else the one with the highest peak."""
        known = next((one for one in self.phases if one.phase == self.told_phase), None)
        return known or max(self.phases, key=lambda one: one.peak_bytes, default=None)

    @property
    def named_phase(self) -> str | None:
        """The phase that matters by its name alone, also where no reading of it is known."""
        return self.told_phase or (self.top_phase.phase if self.top_phase else None)


def gather(fleet: Fleet, subject: Subject, topic: Topic, watched: str, verdict: Verdict, now: float) -> Facts:
    """Everything that is known of what a rule has just judged `active`."""
    run = fleet.runs.get(fleet.run_of(subject) or "")
    node = fleet.nodes.get(subject.name) if subject.scope != "run" else None
    gpu = _gpu_of(fleet, subject, run, node)
    node = node or (fleet.nodes.get(gpu.subject.name) if gpu else None)
    oom = _oom(verdict, run)
    phase = verdict.facts.get("phase")
    known: dict[str, object] = {"phase": str(phase)} if phase else {}
    if gpu is not None:
        known |= _device(fleet, gpu, run, verdict) | {"peers_peak_bytes": _peers(fleet, gpu, run)}
    if node is not None:
        known |= _host(node) | _engines(node, now)
    if run is not None:
        known |= _rhythm(run)
    settings = settings_of(run.config if run else {})
    facts = Facts(topic=topic, watched=watched, verdict=verdict.facts, oom=oom, settings=settings, **known)  # type: ignore[arg-type]
    return with_needs(facts, verdict)


def _gpu_of(fleet: Fleet, subject: Subject, run: RunRecord | None, node: NodeRecord | None) -> GpuRecord | None:
    """The GPU that is judged; of a node or a run, the fullest, which stands for all."""
    if subject.scope == "gpu":
        return fleet.gpu(subject)
    gpus: Iterable[GpuRecord] = node.gpus.values() if node else fleet.gpus_of_run(run) if run else ()
    return max(gpus, key=lambda gpu: _highest(gpu) / gpu.usable_bytes if gpu.usable_bytes else 0.0, default=None)


def _highest(gpu: GpuRecord) -> float:
    last = gpu.steps[-1].peak_bytes if gpu.steps else None
    return last if last is not None else float(gpu.used_bytes or 0)


def _oom(verdict: Verdict, run: RunRecord | None) -> OomFacts | None:
    facts = verdict.facts
    event = facts.get("event")
    if event not in ("device_oom", "host_oom"):
        return None
    phase = facts.get("phase") or (run.timeline.current() if run else None)
    return OomFacts(
        on="device" if event == "device_oom" else "host",
        phase=str(phase) if phase else None,
        tried_bytes=_number(facts.get("tried_bytes")),
        free_bytes=_number(facts.get("free_bytes")),
        slack_bytes=_number(facts.get("reserved_unallocated_bytes")),
        error=str(facts.get("error", "")),
        process=str(facts.get("process", "")),
    )


def _number(fact: wire.Fact | None) -> float | None:
    return float(fact) if isinstance(fact, int | float) else None


# ---------------------------------------------------------------- device


def _device(fleet: Fleet, gpu: GpuRecord, run: RunRecord | None, verdict: Verdict) -> dict[str, object]:
    segment = [one for one in gpu.steps if one.segment == gpu.steps[-1].segment] if gpu.steps else []
    steps = usual_of(gpu.steps)[-STEPS:]
    known = _levels(gpu, steps or segment[-1:]) | _residue(segment, verdict) | _lengths(steps)
    rank_0 = _rank_0_like(fleet, gpu, run) if run else None
    known |= _torch(steps, usual_of(rank_0.steps)[-STEPS:] if rank_0 else (), run if rank_0 else None)
    return known | {
        "parts": _parts(gpu, steps),
        "steps": len(steps),
        "capacity_bytes": float(gpu.usable_bytes),
    }


def _parts(gpu: GpuRecord, steps: Sequence[GpuStep]) -> tuple[Part, ...]:
    """Who holds the card now, and by how much each gained from step to step, or in time where no steps are known."""
    told = [one for one in steps if one.held is not None]
    if len(told) < STEPS_TOLD_MIN:
        return tuple(gpu.parts)
    return tuple(
        part._replace(
            rise_bytes=rise(_known(one.held_by(part.kind) for one in told)), rise_seconds=told[-1].at - told[0].at
        )
        for part in gpu.parts
    )


def _levels(gpu: GpuRecord, steps: Sequence[GpuStep]) -> dict[str, object]:
    """Peaks and floors: of the steps' phases, of whole steps, or of blocks of time where no step is known."""
    peaks, floors = _known(one.peak_bytes for one in steps), _known(one.floor_bytes for one in steps)
    if not peaks:
        blocks = _after_loading(gpu.blocks.closed(FIVE_SECONDS))
        peaks, floors = [one.peak_bytes for one in blocks], [one.floor_bytes for one in blocks]
    if not peaks:
        peaks = floors = _known([gpu.used_bytes])
    names = dict.fromkeys(phase.phase for one in steps for phase in one.phases)
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
    longer = rise(_known(one.length_mean_tokens for one in steps)) > 0
    usual = [one.phase for one in phases if 2 * sum(step.peak_of(one.phase) is not None for step in steps) > len(steps)]
    told = [name for name in usual if not (longer and name in LENGTH_DRIVEN)]
    return [series for name in told if (series := _known(step.floor_of(name) for step in steps))]


def _phase(name: str, steps: Sequence[GpuStep]) -> PhaseFacts:
    peaks, floors = _known(one.peak_of(name) for one in steps), _known(one.floor_of(name) for one in steps)
    return PhaseFacts(name, max(peaks[-3:]), floors[-1], rise(peaks), rise(floors))


def _torch(steps: Sequence[GpuStep], of_rank_0: Sequence[GpuStep], run: RunRecord | None) -> dict[str, object]:
    """torch's figures: of a probe or of memory lines, this GPU's or rank 0's, which holds the same.

    Else of the run's step lines, whose maxima can only rise. What is allocated is compared at its least, where the work
    of single steps is not in it.
    """
    own = [one for one in steps if one.allocated_peak_bytes is not None]
    told = own or [one for one in of_rank_0 if one.allocated_peak_bytes is not None]
    found = _of_readings(told) or _of_step_lines(steps, run)
    slack = _known(one.slack_bytes for one in told)
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
    floors = _known(one.allocated_floor_bytes for one in steps)
    return _Torch(rise(floors), 0.0, steps[-1].reserved_peak_bytes)


def _of_step_lines(steps: Sequence[GpuStep], run: RunRecord | None) -> _Torch:
    records = [record.step for record in run.steps.segment() if record.usual][-STEPS:] if run else []
    allocated = _known(step.torch_allocated_peak_bytes for step in records)
    reserved = _known(step.torch_reserved_peak_bytes for step in records)
    if len(allocated) < TREND_MIN:
        return _Torch()
    noise = _range([active for one in steps if (active := _active(one)) is not None])
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
    ours = (part.rise_bytes for part in _parts(gpu, steps) if part.kind in ("trainer", "engine"))
    return max([rise(_known(one.residue_bytes for one in steps)), *ours])


def _is_rank_0(gpu: GpuRecord, run: RunRecord) -> bool:
    if gpu.subject == run.torch_subject or (gpu.steps and gpu.steps[-1].lifetime_peak_bytes is not None):
        return True
    return any(process.rank == 0 and process.run == run.name for process in gpu.processes or ())


def _residue(steps: Sequence[GpuStep], verdict: Verdict) -> dict[str, object]:
    """Of all steps since the first update: what a sleeping engine keeps can kill within the first ones.

    Where a rule has just measured its growth, it is believed.
    """
    settled = [one for one in steps if one.step >= SETTLED_STEP] or steps
    residues = _known(one.residue_bytes for one in settled)[-STEPS:]
    if not residues:
        return {}
    grown, usual = (_number(verdict.facts.get(name)) for name in ("grown_bytes", "usual_bytes"))
    return {
        "residue_bytes": residues[-1],
        "residue_before_bytes": residues[0] if usual is None else usual,
        "residue_rise_bytes": max(rise(residues), grown or 0.0),
        "residue_pace_bytes": pace(residues) or (grown or 0.0) / RECENT,
    }


def _lengths(steps: Sequence[GpuStep]) -> dict[str, object]:
    longest = _known(one.length_max_tokens for one in steps) or _known(one.length_mean_tokens for one in steps)
    means = _known(one.length_mean_tokens for one in steps) or longest
    if not longest:
        return {}
    pairs = [(one.length_mean_tokens or one.length_max_tokens, active) for one in steps if (active := _active(one))]
    known = [(length, active) for length, active in pairs if length is not None]
    clips = _known(one.clip_ratio for one in steps)
    return {
        "length_tokens": max(longest[-3:]),
        "length_before_tokens": median(means[:3]),
        "length_mean_tokens": means[-1],
        "length_rise_tokens": rise(means),
        "length_fit": correlation(known),
        "clip_ratio": clips[-1] if clips else None,
    }


def _active(step: GpuStep) -> float | None:
    """What the phase that allocates most takes for its work, above the least of the step."""
    if step.floor_bytes is None:
        return None
    peaks = [one.peak_bytes - step.floor_bytes for one in step.phases if one.phase in LENGTH_DRIVEN]
    return max(peaks, default=None)


def _peers(fleet: Fleet, gpu: GpuRecord, run: RunRecord | None) -> float | None:
    """The usual peak of the run's other GPUs in the last step."""
    if run is None or not gpu.steps:
        return None
    last = gpu.steps[-1]
    others = (one.steps[-1] for one in fleet.gpus_of_run(run) if one is not gpu and one.steps)
    peaks = _known(step.peak_bytes for step in others if step.step == last.step)
    return median(peaks) if peaks else None


# ---------------------------------------------------------------- host, engines, pace


def _host(node: NodeRecord) -> dict[str, object]:
    facts, host = node.hello.facts.host, node.host
    if facts is None or host is None:
        return {}
    use = tightest(host, facts)
    return {
        "host_used_bytes": use.used_bytes if use else None,
        "host_limit_bytes": use.limit_bytes if use else None,
        "limited_by": use.limited_by if use else "machine",
        "host_parts": tuple(node.parts),
        "shm_used_bytes": host.shm_used_bytes,
        "shm_total_bytes": facts.shm_total_bytes,
        "disk_used_bytes": host.disk_used_bytes,
        "disk_total_bytes": facts.disk_total_bytes,
    }


def _engines(node: NodeRecord, now: float) -> dict[str, object]:
    if now - node.engines_at > ENGINES_FRESH_SECONDS:
        return {}
    used = _known(one.kv_used_ratio for one in node.engines)
    waiting = [one.requests_waiting for one in node.engines if one.requests_waiting is not None]
    return {"kv_used_ratio": max(used, default=None), "requests_waiting": sum(waiting) if waiting else None}


def _rhythm(run: RunRecord) -> dict[str, object]:
    seconds: dict[str, object] = {"step_seconds": run.steps.rhythm_seconds()}
    took = [
        record.step.phase_seconds["reward"] for record in run.steps.segment() if "reward" in record.step.phase_seconds
    ]
    if len(took) < TREND_MIN:
        return seconds
    return seconds | {"reward_seconds": took[-1], "reward_before_seconds": median(took[:-1])}


# ---------------------------------------------------------------- what it takes


def with_needs(facts: Facts, verdict: Verdict) -> Facts:
    """The same facts with what has to be freed: to fit what failed, what is coming, or below the rule's limit."""
    capacity, oom = facts.capacity_bytes, facts.oom
    if capacity is None or facts.peak_bytes is None:
        return facts
    top = facts.top_phase
    active = work_of(top, facts.phases) if top else None
    if oom is not None and oom.tried_bytes is not None:
        short = max(0.0, oom.tried_bytes - (oom.free_bytes or 0.0)) + (1 - FULL_RATIO) * capacity
        return structs.replace(facts, active_bytes=max(active or 0.0, oom.tried_bytes), needed_bytes=short)
    own = facts.peak_rise_bytes / max(1, facts.steps - 1) if facts.length_rise_tokens == 0 else 0.0  # of one phase
    each = max(facts.pace_bytes, facts.residue_pace_bytes) or own
    limit = verdict.limit if verdict.unit == "ratio" and verdict.limit and verdict.limit <= 1 else None
    safe = capacity * (limit if limit is not None and each == 0 else FULL_RATIO)
    longest = _at_longest(facts)
    told = max(_number(verdict.facts.get(name)) or 0.0 for name in ("level_bytes", "worst_bytes"))
    left = max(0.0, capacity - facts.peak_bytes) / each if each > 0 else None
    ahead = max(HORIZON_STEPS, 2 * left) if left is not None else 0.0
    expected = max(facts.peak_bytes + each * ahead, longest.peak_bytes if longest else 0.0, told)
    return structs.replace(
        facts,
        active_bytes=work_of(longest, facts.phases) if longest else active,
        needed_bytes=max(0.0, expected - safe),
        steps_left=left,
    )


def work_of(phase: PhaseFacts, phases: Sequence[PhaseFacts]) -> float:
    """What a phase allocates for its own work, in proportion to what a pass holds.

    At least what its peak is above its floor. But the allocator keeps what the first pass took, so that the floor may
    hold most of it already: then a share of what it is above the lowest phase, the rest of which are loaded states.
    """
    lowest = min((one.floor_bytes for one in phases), default=phase.floor_bytes)
    return max(phase.peak_bytes - phase.floor_bytes, WORK_SHARE * (phase.peak_bytes - lowest))


def _at_longest(facts: Facts) -> PhaseFacts | None:
    """The phase that would be the highest if responses were as long as they may be, where lengths drive it."""
    cap, usual = facts.settings.response_cap_tokens, facts.length_mean_tokens
    driven = facts.length_rise_tokens > 0 or facts.watched in ("worst_case", "lengths")
    if not cap or not usual or not driven:
        return None
    prompt = 0.5 * (facts.settings.prompt_cap_tokens or 0)
    longer = max(1.0, (cap + prompt) / (usual + prompt))
    if facts.settings.dynamic_batches:
        longer = 1.0  # a dynamic batch holds as many tokens as before, of fewer sequences
    grown = [
        one._replace(peak_bytes=one.peak_bytes + (longer - 1) * work_of(one, facts.phases))
        for one in facts.phases
        if one.phase in LENGTH_DRIVEN
    ]
    return max(grown, key=lambda one: one.peak_bytes, default=None)


# ---------------------------------------------------------------- short series


def _known(values: Iterable[float | None]) -> list[float]:
    return [float(value) for value in values if value is not None]


def rise(values: Sequence[float]) -> float:
    """By how much a series rose; 0 where that could be chance.

    Of three or four values only a rise all the way counts: what kills within the first steps shows no trend.
    """
    if len(values) < 3:  # noqa: PLR2004
        return 0.0
    if len(values) < TREND_MIN:
        return values[-1] - values[0] if all(later > before for before, later in pairwise(values)) else 0.0
    return max(_trend(values), _trend(values[-RECENT:]), _jump(values), _shift(values))


def pace(values: Sequence[float]) -> float:
    """By how much a series rises from one value to the next, lately if that is more; 0 where it does not rise."""
    if rise(values) == 0:
        return 0.0
    recent = values[-RECENT:]
    return max(_trend(values) / (len(values) - 1), _trend(recent) / (len(recent) - 1), _climb(values))


def _climb(values: Sequence[float]) -> float:
    """Rise from one value to the next, of the last ones as long as each is above the one before. Two are none."""
    begun = next((place for place in range(len(values) - 1, 0, -1) if values[place] <= values[place - 1]), 0)
    steps = len(values) - 1 - begun
    return (values[-1] - values[begun]) / steps if steps > 1 else 0.0


def _trend(values: Sequence[float]) -> float:
    if trend.rising_p(values) >= TREND_P:
        return 0.0
    return max(0.0, trend.slope(values) * (len(values) - 1))


def _jump(values: Sequence[float]) -> float:
    """The last values may leave all before them behind: what gains ten percent a step is over before it is a trend."""
    *before, last = values
    low, high = min(before), max(before)
    if last - high > JUMP_RANGES * (high - low):
        return last - high
    *before, second = before
    low, high = min(before), max(before)
    return last - high if min(last, second) - high > (high - low) else 0.0


def _shift(values: Sequence[float]) -> float:
    """The last few values, a step up or the beginning of a slope, may be further above all before than those range."""
    for last in range(RECENT, 2, -1):
        before, after = values[:-last], values[-last:]
        if len(before) > last and min(after) - max(before) > max(before) - min(before):
            return values[-1] - max(before)
    return 0.0


def correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Kendall's rank correlation of pairs, 0 where negative or where there are too few."""
    if len(pairs) < TREND_MIN:
        return 0.0
    signs = [_sign(b[0] - a[0]) * _sign(b[1] - a[1]) for a, b in combinations(pairs, 2)]
    ties = sum(1 for a, b in combinations(pairs, 2) if a[0] == b[0] or a[1] == b[1])
    untied = len(signs) - ties
    return max(0.0, sum(signs) / untied) if untied else 0.0


def _range(values: Sequence[float]) -> float:
    """From the lowest to the highest, but for the last few, which may be what has begun to rise."""
    usual = values[:-RECENT] if len(values) > 2 * RECENT else values
    return max(usual) - min(usual) if usual else 0.0


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
