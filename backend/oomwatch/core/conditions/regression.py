"""The run needs far more memory than when it last went well.

A public case: 27.0 GB held after offload, against 7.9 GB with the version before.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from oomwatch import wire
from oomwatch.core.conditions.bounds import check_share, check_size
from oomwatch.core.conditions.kind import Kind
from oomwatch.core.fleet import Fleet
from oomwatch.core.held import held
from oomwatch.core.lives import RunNews
from oomwatch.core.past import Levels, StepLevel, highest
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Channel, News, Scope, Subject, Topic
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.units import Quantity

GIB = 2**30
CHANGED_KEYS_TOLD = 4


class Excess(NamedTuple):
    phase: str | None  # of a peak; None: the floor of the step
    bytes: float  # the least of the steps compared
    good_bytes: float
    limit_bytes: float


class Regression(Kind, frozen=True, kw_only=True, tag="regression", cache_hash=True):
    """{kind: regression, steps: 3, by: 5GiB, increase: 30%, of_card: 20%, peak_above: 80%}

    In each of the last usual steps, on the run's fullest GPU, the floor of the step or a phase's peak is above that of
    the same run's last start that ended well: by `by` and `increase` together, or by `of_card`. The first is what a
    floor of some GiB shows (a state that was offloaded and is not), the second a peak that is high anyway. A peak that
    has grown no more than the responses have is theirs, and is not told; nor is one on a card that has room.
    """

    scopes: ClassVar[tuple[Scope, ...]] = ("run",)
    hears: ClassVar[tuple[News, ...]] = ("steps",)
    predicts: ClassVar[Channel | None] = None
    topic: ClassVar[Topic | None] = "device"
    over_when_run: ClassVar[RunNews | None] = "starts"
    fact_names: ClassVar[tuple[str, ...]] = (
        "phase", "step", "level_bytes", "good_bytes", "excess_bytes", "increase_ratio",
        "length_mean_tokens", "good_length_mean_tokens", "changed_keys",
    )  # fmt: skip

    steps: int = 3
    by: Quantity = Quantity(5 * GIB)
    increase: Quantity = Quantity(0.3)
    of_card: Quantity = Quantity(0.2)
    peak_above: Quantity = Quantity(0.8)

    def __post_init__(self) -> None:
        if not 1 <= self.steps <= 30:  # noqa: PLR2004 - of the 64 that are kept
            raise ValueError("steps must be from 1 to 30")
        check_size("by", self.by)
        check_share("increase", self.increase)
        for name, share in (("of_card", self.of_card), ("peak_above", self.peak_above)):
            if not 0 < share <= 1:
                raise ValueError(f"{name} is a share of the card; write for example 20% or 0.2")

    def holds_for(
        self, levels: Sequence[StepLevel], good: Levels, card_bytes: float, length_ratio: float | None
    ) -> Excess | None:
        """The largest excess over the good run, in all the steps; `levels` are those of the steps, oldest first.

        `length_ratio`: how long responses are, as a multiple of the good run's, where both are told.
        """
        last = levels[-self.steps :]
        if len(last) < self.steps:
            return None
        found = [self._floor(last, good, card_bytes)]
        for was in good.phases:
            peak = min(level.peaks.get(was.phase, 0.0) for level in last)
            is_theirs = length_ratio is not None and peak <= length_ratio * was.peak_bytes
            if peak > self.peak_above * card_bytes and not is_theirs:
                found.append(self._excess(was.phase, peak, was.peak_bytes, card_bytes))
        above = [one for one in found if one is not None and one.bytes > one.limit_bytes]
        return max(above, key=lambda one: one.bytes - one.good_bytes, default=None)

    def _floor(self, last: Sequence[StepLevel], good: Levels, card_bytes: float) -> Excess | None:
        floors = [level.floor_bytes for level in last if level.floor_bytes is not None]
        if good.floor_bytes is None or len(floors) < self.steps:
            return None
        return self._excess(None, min(floors), good.floor_bytes, card_bytes)

    def _excess(self, phase: str | None, now: float, good_bytes: float, card_bytes: float) -> Excess:
        margin = min(max(self.by, self.increase * good_bytes), self.of_card * card_bytes)
        return Excess(phase, now, good_bytes, good_bytes + margin)

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:  # noqa: ARG002 - steps have no age
        run = fleet.runs.get(subject.name)
        steps = run.steps.segment() if run else []
        if run is None or not steps:
            return UNKNOWN
        past = fleet.pasts.of(run.name)
        good = past.good if past else None
        return INACTIVE if good is None else held(run.memo, self, steps[-1], lambda: self._judged(fleet, run, good))

    def _judged(self, fleet: Fleet, run: RunRecord, good: Levels) -> Verdict:
        gpus = [gpu for gpu in fleet.gpus_of_run(run) if gpu.steps]
        steps = [one for one in run.steps.segment() if one.usual][-self.steps :]
        if len(steps) < self.steps:
            return UNKNOWN
        by_gpu = [{step.at: step for step in list(gpu.steps)[-2 * self.steps :]} for gpu in gpus]
        levels = [highest(of_gpu[step.at] for of_gpu in by_gpu if step.at in of_gpu) for step in steps]
        lengths = [length for one in steps if (length := one.step.response_length_mean_tokens) is not None]
        length = sum(lengths) / len(lengths) if lengths else None
        ratio = length / good.length_mean_tokens if length and good.length_mean_tokens else None
        card = min((gpu.usable_bytes for gpu in gpus), default=0)
        excess = self.holds_for(levels, good, card, ratio)
        if excess is None:
            return INACTIVE
        facts: dict[str, wire.Fact] = {
            "step": steps[-1].step.step,
            "level_bytes": excess.bytes,
            "good_bytes": excess.good_bytes,
            "excess_bytes": excess.bytes - excess.good_bytes,
        }
        if excess.phase is not None:
            facts["phase"] = excess.phase
        if excess.good_bytes:
            facts["increase_ratio"] = excess.bytes / excess.good_bytes - 1
        if ratio is not None and length and good.length_mean_tokens:
            facts |= {"length_mean_tokens": length, "good_length_mean_tokens": good.length_mean_tokens}
        if changed := changed_keys(good.config, run.config):
            facts["changed_keys"] = changed
        return Verdict("active", excess.bytes, excess.limit_bytes, "bytes", facts)


def changed_keys(before: Mapping[str, wire.ConfigValue], now: Mapping[str, wire.ConfigValue]) -> str:
    """ "a.b: 4 -> 8, c: unset -> True": the settings that differ, as far as both runs told theirs."""
    if not before or not now:
        return ""
    keys = [key for key in sorted(dict.fromkeys([*before, *now])) if before.get(key) != now.get(key)]
    told = [f"{key}: {before.get(key, 'unset')} -> {now.get(key, 'unset')}" for key in keys[:CHANGED_KEYS_TOLD]]
    return ", ".join(told + ["..."] * (len(keys) > CHANGED_KEYS_TOLD))
