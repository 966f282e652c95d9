"""One rank has far more memory in use than the others that do the same."""

from collections.abc import Sequence
from statistics import median
from typing import ClassVar

from oomwatch import wire
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.gpurecord import GpuRecord
from oomwatch.core.held import held_in_run
from oomwatch.core.lives import RunNews
from oomwatch.core.peers import role_of, strangers_bytes
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.trend import scatter
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.units import Quantity

SCATTER_PEERS_MIN = 3  # of fewer no scatter can be told
FAR_SCATTERS = 4.0
PIPELINE_KEYS = tuple(f"{role}.megatron.pipeline_model_parallel_size" for role in ("actor_rollout_ref.actor", "critic"))


class Imbalance(Kind, frozen=True, kw_only=True, tag="imbalance", cache_hash=True):
    """{kind: imbalance, above: 15%, peak_above: 80%, steps: 3}

    In so many steps in a row, a GPU's peak is above the median of the run's other GPUs of the same role by that share
    of the card and by four times their scatter, and it is above `peak_above` itself. What programs of others have on a
    card does not count. The stages of a pipeline differ by nature: runs with one are not judged.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("gpu",)
    hears: ClassVar[tuple[News, ...]] = ("steps",)
    predicts: ClassVar[Channel | None] = "device"
    topic: ClassVar[Topic | None] = "device"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        "peak_bytes",
        "median_bytes",
        "excess_bytes",
        "peers",
        "role",
        "rank",
        "usable_bytes",
        "step",
    )

    above: Quantity = Quantity(0.15)
    peak_above: Quantity = Quantity(0.80)
    steps: int = 3

    def __post_init__(self) -> None:
        for name, bound in (("above", self.above), ("peak_above", self.peak_above)):
            if not 0 < bound <= 1:
                raise ValueError(f"{name} is a share of the card; write for example 15% or 0.15")
        if not 1 <= self.steps <= 30:  # noqa: PLR2004 - of the 64 that are kept
            raise ValueError("steps must be from 1 to 30")

    def holds_for(self, peaks: Sequence[float], of_others: Sequence[Sequence[float]], capacity_bytes: float) -> bool:
        """Whether the peaks of a GPU stick out of those of the others, step by step."""
        if len(peaks) < self.steps or len(of_others) < self.steps:
            return False
        return all(
            self._sticks_out(peak, others, capacity_bytes)
            for peak, others in zip(peaks[-self.steps :], of_others[-self.steps :], strict=True)
        )

    def _sticks_out(self, peak: float, others: Sequence[float], capacity_bytes: float) -> bool:
        if not others or peak <= self.peak_above * capacity_bytes:
            return False
        excess = peak - median(others)
        scattered = scatter(others) if len(others) >= SCATTER_PEERS_MIN else 0.0
        return excess > self.above * capacity_bytes and excess > FAR_SCATTERS * scattered

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        return held_in_run(fleet, subject, self, now, self._judged)

    def _judged(self, fleet: Fleet, gpu: GpuRecord, run: RunRecord) -> Verdict:
        moments = [step.at for step in list(gpu.steps)[-self.steps :] if step.usual]
        mine = _own_peaks(gpu, run, self.steps)
        peaks = [mine[at] for at in moments if at in mine]
        if len(peaks) < self.steps:
            return UNKNOWN
        if peaks[-1] <= self.peak_above * gpu.usable_bytes or _is_pipeline(run):
            return INACTIVE
        by_role = run.memo.once(
            ("peaks by role", self.steps), gpu.steps[-1].at, lambda: _peaks_by_role(fleet, run, moments)
        )
        others = [_without(group, peak) for group, peak in zip(by_role.get(role_of(gpu), []), peaks, strict=False)]
        if not self.holds_for(peaks, others, gpu.usable_bytes):
            return INACTIVE
        usual = median(others[-1])
        facts: dict[str, wire.Fact] = {
            "peak_bytes": peaks[-1],
            "median_bytes": usual,
            "excess_bytes": peaks[-1] - usual,
            "peers": len(others[-1]),
            "usable_bytes": gpu.usable_bytes,
            "step": gpu.steps[-1].step,
        }
        if role := role_of(gpu):
            facts["role"] = role
        if (rank := next((one.rank for one in gpu.processes or () if one.rank is not None), None)) is not None:
            facts["rank"] = rank
        return Verdict("active", peaks[-1] - usual, float(self.above) * gpu.usable_bytes, "bytes", facts)


def _is_pipeline(run: RunRecord) -> bool:
    sizes = [run.config.get(key) for key in PIPELINE_KEYS]
    return any(isinstance(size, int) and size > 1 for size in sizes)


def _peaks_by_role(fleet: Fleet, run: RunRecord, moments: Sequence[float]) -> dict[str, list[list[float]]]:
    """By role, for each of the moments, the peaks of all the run's GPUs of that role."""
    found: dict[str, list[list[float]]] = {}
    for gpu in fleet.gpus_of_run(run):
        groups = found.setdefault(role_of(gpu), [[] for _ in moments])
        peaks = _own_peaks(gpu, run, len(moments))
        for group, at in zip(groups, moments, strict=True):
            if at in peaks:
                group.append(peaks[at])
    return found


def _own_peaks(gpu: GpuRecord, run: RunRecord, steps: int) -> dict[float, float]:
    """The peaks of the last steps, by their times, less what programs of others have on the card."""
    others = strangers_bytes(gpu, run)
    return {step.at: step.peak_bytes - others for step in list(gpu.steps)[-steps:] if step.peak_bytes is not None}


def _without(group: Sequence[float], peak: float) -> list[float]:
    """The peaks of the others: all but one's own."""
    others = list(group)
    others.remove(peak)
    return others
