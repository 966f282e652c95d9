"""Device memory will be full soon: in so many steps of the run or, where no steps are told, in so many minutes."""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple, TypeAlias

from oomwatch import wire
from oomwatch.core.blockforecast import BlockForecast
from oomwatch.core.blockforecast import forecast as forecast_blocks
from oomwatch.core.blocks import FIVE_SECONDS, MINUTE_SECONDS
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.forecast import Forecast, forecast
from oomwatch.core.foretold import Foretold
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.lives import RunNews
from oomwatch.core.peaks import usual_of
from oomwatch.core.settings import response_cap_of
from oomwatch.core.stepseries import first_full
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict, inactive
from oomwatch.units import Duration

STEPS_MAX, SECONDS_MAX = 200, 6 * 3600
QUIET_STEPS, QUIET_SECONDS = 5, 600.0  # a run that tells of no step for so long is judged by the blocks of its GPUs
PEAKS_AHEAD_SECONDS = 3600.0  # peaks on floors that do not rise are believed no further
BLOCKS_SECONDS = 600.0  # without a reading for so long, blocks say nothing of now
AT_ONCE_STEPS = 8.0  # so near to the end nobody waits for a second opinion
FACTS = (
    "phase",
    "because",
    "eta_steps",
    "eta_seconds",
    "eta_low_seconds",
    "eta_high_seconds",
    "slope_bytes",
    "growth_bytes_per_hour",
    "level_bytes",
    "usable_bytes",
    "known_steps",
)

Found: TypeAlias = tuple[str, Forecast]  # the phase that is full first


class ForecastOf(Kind, frozen=True, kw_only=True, tag="forecast"):
    """{kind: forecast, within_steps: 40, within: 30m, blocks_within: 2h}

    The peaks of each phase are followed from step to step (core/forecast.py). It comes true when those of one lead to
    the card's end within the steps or within the time, whichever is longer, and did so a step ago too. Where no steps
    are told, blocks of five minutes are followed instead (core/blockforecast.py), and the time is `blocks_within`.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu",)
    hears: ClassVar[tuple[News, ...]] = ("steps", "blocks")
    predicts: ClassVar[Channel | None] = "device"
    topic: ClassVar[Topic | None] = "device"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = FACTS

    within_steps: int = 40
    within: Duration = Duration(1800)
    blocks_within: Duration = Duration(7200)  # what is further off is not believed of blocks anyway

    def __post_init__(self) -> None:
        if not 0 < self.within_steps <= STEPS_MAX:
            raise ValueError(f"within_steps must be from 1 to {STEPS_MAX}")
        for name, seconds in (("within", self.within), ("blocks_within", self.blocks_within)):
            if not 0 < seconds <= SECONDS_MAX:
                raise ValueError(f"{name} must be more than 0s and at most 6h")

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        gpu = fleet.gpu(subject)
        if gpu is None or (gpu.blocks.open is None and not gpu.steps):
            return UNKNOWN
        if _tells_of_steps(gpu, fleet.rhythm_seconds(subject), now):
            return gpu.memo.once(self, gpu.steps[-1].at, lambda: self._of_steps(fleet, gpu))
        if gpu.blocks.open is None or now - gpu.at > BLOCKS_SECONDS:
            return UNKNOWN
        return self._of_blocks(gpu)

    def foretold(self, fleet: Fleet, subject: Subject, now: float) -> Iterator[Foretold]:
        """What the last judgement of any rule of this kind believed, however far off."""
        gpu = fleet.gpu(subject)
        if gpu is None or fleet.is_between_starts(subject):
            return
        rhythm_seconds = fleet.rhythm_seconds(subject)
        if _tells_of_steps(gpu, rhythm_seconds, now):
            yield from _foretold_by_steps(gpu, rhythm_seconds)
        elif gpu.blocks.open is not None and now - gpu.at <= BLOCKS_SECONDS:
            yield from _foretold_by_blocks(gpu)

    def _of_steps(self, fleet: Fleet, gpu: GpuRecord) -> Verdict:
        told = _told_at_steps(fleet, gpu)
        rhythm_seconds = fleet.rhythm_seconds(gpu.subject)
        found = told.now
        if found is None:
            return INACTIVE
        phase, one = found
        if not self._is_soon(found, rhythm_seconds):
            far = inactive(one.eta_steps * rhythm_seconds, float(self.within), "seconds")
            return far if rhythm_seconds else INACTIVE
        if one.eta_steps > AT_ONCE_STEPS and not self._is_soon(told.before, rhythm_seconds):
            return INACTIVE
        facts = _eta(one.eta_steps, one.eta_low_steps, one.eta_high_steps, rhythm_seconds)
        facts |= {"phase": phase, "because": one.reason, "known_steps": one.steps}
        facts |= {"slope_bytes": round(one.slope_bytes)} | _level(one.level_bytes, gpu)
        return Verdict("active", one.eta_steps * rhythm_seconds, float(self.within), "seconds", facts)

    def _is_soon(self, found: Found | None, rhythm_seconds: float) -> bool:
        """Whether a forecast is of a time near enough, and not beyond twice the window that it rests on."""
        soon_steps = max(self.within_steps, self.within / rhythm_seconds if rhythm_seconds else 0.0)
        return found is not None and found[1].eta_steps <= min(soon_steps, 2 * found[1].steps)

    def _of_blocks(self, gpu: GpuRecord) -> Verdict:
        found = _told_by_blocks(gpu)
        if found is None or found.eta_seconds > self.blocks_within:
            return self._of_block_peaks(gpu)
        facts = _facts_of_blocks(found) | _level(found.level_bytes, gpu)
        return Verdict("active", found.eta_seconds, float(self.blocks_within), "seconds", facts)

    def _of_block_peaks(self, gpu: GpuRecord) -> Verdict:
        """Peaks that climb on floors that do not: lengths that grow, in a run that tells of no steps."""
        one = _told_by_block_peaks(gpu)
        if one is None or one.eta_steps * FIVE_SECONDS > min(self.blocks_within, PEAKS_AHEAD_SECONDS):
            return INACTIVE
        eta_seconds = one.eta_steps * FIVE_SECONDS
        facts = _level(one.level_bytes, gpu) | {
            "eta_seconds": eta_seconds,
            "eta_low_seconds": one.eta_low_steps * FIVE_SECONDS,
            "growth_bytes_per_hour": round(one.slope_bytes * 3600 / FIVE_SECONDS),
        }
        return Verdict("active", eta_seconds, float(self.blocks_within), "seconds", facts)


def _tells_of_steps(gpu: GpuRecord, rhythm_seconds: float, now: float) -> bool:
    return bool(gpu.steps) and now - gpu.steps[-1].at <= max(QUIET_SECONDS, QUIET_STEPS * rhythm_seconds)


def _foretold_by_steps(gpu: GpuRecord, rhythm_seconds: float) -> Iterator[Foretold]:
    """The later of what the last step said and the one before, or the last one's where the end is near."""
    told = gpu.memo.last(_told_at_steps)
    found = (told.now, told.before) if isinstance(told, _Told) else (None, None)
    believed = [one.eta_steps for _, one in filter(None, found) if one.eta_steps <= 2 * one.steps]
    if found[0] is None or not believed:
        return
    steps = found[0][1].eta_steps if found[0][1].eta_steps <= AT_ONCE_STEPS else max(believed)
    if len(believed) == len(found) or steps <= AT_ONCE_STEPS:
        yield Foretold("device", steps * rhythm_seconds if rhythm_seconds else None, steps)


def _foretold_by_blocks(gpu: GpuRecord) -> Iterator[Foretold]:
    found, peaks = gpu.memo.last(_told_by_blocks), gpu.memo.last(_told_by_block_peaks)
    if isinstance(found, BlockForecast):
        yield Foretold("device", found.eta_seconds, None)
    elif isinstance(peaks, Forecast) and peaks.eta_steps * FIVE_SECONDS <= PEAKS_AHEAD_SECONDS:
        yield Foretold("device", peaks.eta_steps * FIVE_SECONDS, None)


class _Told(NamedTuple):
    """What the last step foretold, and what the one before it did."""

    now: Found | None
    before: Found | None


def _told_at_steps(fleet: Fleet, gpu: GpuRecord) -> _Told:
    """Worked out once a step, for all rules of this kind."""
    run = fleet.run_record(gpu.subject)
    cap_tokens = response_cap_of(run.config) if run else None

    def work_out() -> _Told:
        steps, known = usual_of(gpu.steps), gpu.memo.last(_told_at_steps)
        before = known.now if isinstance(known, _Told) else first_full(steps[:-1], gpu.usable_bytes, cap_tokens)
        return _Told(first_full(steps, gpu.usable_bytes, cap_tokens), before)

    return gpu.memo.once(_told_at_steps, gpu.steps[-1].at, work_out)


def _told_by_blocks(gpu: GpuRecord) -> BlockForecast | None:
    """Worked out once a minute, for all rules of this kind: the block that runs counts too."""
    return gpu.memo.once(
        _told_by_blocks,
        gpu.at // MINUTE_SECONDS,
        lambda: forecast_blocks(gpu.blocks.closed(), gpu.usable_bytes, gpu.blocks.open),
    )


def _told_by_block_peaks(gpu: GpuRecord) -> Forecast | None:
    """Worked out once a block. It has to be told twice in a row."""

    def work_out() -> Forecast | None:
        peaks = [block.peak_bytes for block in gpu.blocks.closed()]
        found = forecast(peaks, gpu.usable_bytes, steep=False)
        return found if found and forecast(peaks[:-1], gpu.usable_bytes, steep=False) else None

    return gpu.memo.once(_told_by_block_peaks, gpu.blocks.open and gpu.blocks.open.at, work_out)


def _level(level_bytes: float, gpu: GpuRecord) -> dict[str, wire.Fact]:
    return {"level_bytes": round(level_bytes), "usable_bytes": gpu.usable_bytes}


def _eta(eta_steps: float, low_steps: float, high_steps: float, rhythm_seconds: float) -> dict[str, wire.Fact]:
    """In steps, and in time where a step's is known. No upper end is told where there is none."""
    facts: dict[str, wire.Fact] = {"eta_steps": round(eta_steps)}
    if rhythm_seconds:
        facts |= {"eta_seconds": eta_steps * rhythm_seconds, "eta_low_seconds": low_steps * rhythm_seconds}
        if high_steps < STEPS_MAX:
            facts["eta_high_seconds"] = high_steps * rhythm_seconds
    return facts


def _facts_of_blocks(found: BlockForecast) -> dict[str, wire.Fact]:
    facts: dict[str, wire.Fact] = {
        "eta_seconds": found.eta_seconds,
        "eta_low_seconds": found.eta_low_seconds,
        "growth_bytes_per_hour": round(found.slope_bytes_per_second * 3600),
    }
    if found.eta_high_seconds is not None and found.eta_high_seconds < SECONDS_MAX:
        facts["eta_high_seconds"] = found.eta_high_seconds
    return facts
