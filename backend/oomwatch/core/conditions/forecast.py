"""Device memory will be full soon: in so many steps of the run or, where no steps are told, in so many minutes."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.blockforecast import BlockForecast
from oomwatch.core.blockforecast import forecast as forecast_blocks
from oomwatch.core.blocks import FIVE_SECONDS, TEN_SECONDS
from oomwatch.core.fleet import Fleet
from oomwatch.core.forecast import Forecast, forecast
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.peaks import GpuStep, usual_of
from oomwatch.core.settings import response_cap_of
from oomwatch.core.stepseries import first_full
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.units import Duration

STEPS_MAX, SECONDS_MAX = 200, 6 * 3600
QUIET_STEPS, QUIET_SECONDS = 5, 600.0  # a run that tells of no step for so long is judged by the blocks of its GPUs
BLOCKS_JUDGED_SECONDS = 60.0  # a fast leak is seen before its block is over
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


class ForecastOf(Struct, frozen=True, kw_only=True, tag_field="kind", tag="forecast", forbid_unknown_fields=True):
    """{kind: forecast, within_steps: 40, within: 30m, blocks_within: 2h}

    The peaks of each phase are followed from step to step (core/forecast.py). It comes true when those of one lead to
    the card's end within the steps or within the time, whichever is longer, and did so a step ago too. Where no steps
    are told, blocks of five minutes are followed instead (core/blockforecast.py), and the time is `blocks_within`.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu",)
    hears: ClassVar[tuple[News, ...]] = ("steps", "readings")
    predicts: ClassVar[Channel | None] = "device"
    topic: ClassVar[Topic | None] = "device"
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
        rhythm_seconds = fleet.rhythm_seconds(subject)
        if gpu.steps and now - gpu.steps[-1].at <= max(QUIET_SECONDS, QUIET_STEPS * rhythm_seconds):
            run = fleet.runs.get(fleet.run_of(subject) or "")
            cap_tokens = response_cap_of(run.config) if run else None
            return gpu.memo.once(self, gpu.steps[-1].at, lambda: self._of_steps(gpu, cap_tokens, rhythm_seconds))
        if gpu.blocks.open is None or now - gpu.at > BLOCKS_SECONDS:
            return UNKNOWN
        return gpu.memo.once(self, gpu.at // BLOCKS_JUDGED_SECONDS, lambda: self._of_blocks(gpu))

    def _of_steps(self, gpu: GpuRecord, cap_tokens: float | None, rhythm_seconds: float) -> Verdict:
        steps = usual_of(gpu.steps)
        found = self._soon(steps, gpu, cap_tokens, rhythm_seconds)
        if found is None:
            return INACTIVE
        phase, one = found
        if one.eta_steps > AT_ONCE_STEPS and self._soon(steps[:-1], gpu, cap_tokens, rhythm_seconds) is None:
            return INACTIVE
        facts = _eta(one.eta_steps, one.eta_low_steps, one.eta_high_steps, rhythm_seconds)
        facts |= {"phase": phase, "because": one.reason, "known_steps": one.steps}
        facts |= {"slope_bytes": round(one.slope_bytes)} | _level(one.level_bytes, gpu)
        return Verdict("active", one.eta_steps * rhythm_seconds, float(self.within), "seconds", facts)

    def _soon(
        self, steps: Sequence[GpuStep], gpu: GpuRecord, cap_tokens: float | None, rhythm_seconds: float
    ) -> tuple[str, Forecast] | None:
        """The forecast, where it is of a time near enough, and not beyond twice the window that it rests on."""
        found = first_full(steps, gpu.usable_bytes, cap_tokens)
        soon_steps = max(self.within_steps, self.within / rhythm_seconds if rhythm_seconds else 0.0)
        return found if found and found[1].eta_steps <= min(soon_steps, 2 * found[1].steps) else None

    def _of_blocks(self, gpu: GpuRecord) -> Verdict:
        found = forecast_blocks(gpu.blocks.closed(), gpu.usable_bytes, gpu.blocks.open)
        if found is None or found.eta_seconds > self.blocks_within:
            return self._of_block_peaks(gpu)
        facts = _facts_of_blocks(found) | _level(found.level_bytes, gpu)
        return Verdict("active", found.eta_seconds, float(self.blocks_within), "seconds", facts)

    def _of_block_peaks(self, gpu: GpuRecord) -> Verdict:
        """Peaks that climb on floors that do not: lengths that grow, in a run that tells of no steps."""
        for seconds in (FIVE_SECONDS, TEN_SECONDS):
            peaks = [block.peak_bytes for block in gpu.blocks.closed(seconds)]
            one = forecast(peaks, gpu.usable_bytes)
            near = min(self.blocks_within, PEAKS_AHEAD_SECONDS)
            if one is None or one.eta_steps * seconds > near or forecast(peaks[:-1], gpu.usable_bytes) is None:
                continue
            facts = _level(one.level_bytes, gpu) | {
                "eta_seconds": one.eta_steps * seconds,
                "eta_low_seconds": one.eta_low_steps * seconds,
                "growth_bytes_per_hour": round(one.slope_bytes * 3600 / seconds),
            }
            return Verdict("active", one.eta_steps * seconds, float(self.blocks_within), "seconds", facts)
        return INACTIVE


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
