"""The last step's value is far above what is usual for the run."""

from bisect import insort
from typing import ClassVar

from oomwatch import wire
from oomwatch.core.conditions.bounds import check_share
from oomwatch.core.conditions.of_signal import OfSignal
from oomwatch.core.fleet import Fleet
from oomwatch.core.lives import RunNews
from oomwatch.core.steps import StepRecord
from oomwatch.core.subject import News, Subject
from oomwatch.core.verdict import UNKNOWN, Verdict, inactive
from oomwatch.units import Quantity

# A level that has lasted this many steps is no jump any more but what is usual now.
SETTLED_STEPS = 20
# Until so many usual steps are known, a jump must also exceed every step that did not jump, warm-up included: a median
# of one is easily unlucky.
CONFIDENT_STEPS = 5


class Jump(OfSignal, frozen=True, kw_only=True, tag="jump"):
    """{kind: jump, metric: rollout_seconds, increase: 200%}: more than three times the median of the earlier steps.

    Steps 1 to 3, validation-only steps and the first step after a resume are no baseline and are not judged. Steps that
    jumped themselves do not count as usual, unless the new level has lasted for SETTLED_STEPS.
    """

    hears: ClassVar[tuple[News, ...]] = ("steps",)
    over_when_run: ClassVar[RunNews | None] = "starts"

    increase: Quantity

    def __post_init__(self) -> None:
        if self.signal.step_value is None:
            raise ValueError(f'"{self.metric}" has no value for each step')
        if self.increase <= 0:
            raise ValueError("increase must be more than 0; 200% means more than three times as much")
        check_share("increase", self.increase)

    @property
    def fact_names(self) -> tuple[str, ...]:
        return (
            "step",
            f"baseline_{self.signal.unit}",
            "increase_ratio",
            "baseline_steps",
            "response_length_mean_tokens",
            "usual_response_length_mean_tokens",
        )

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:  # noqa: ARG002 - steps have no age
        run = fleet.runs.get(subject.name)
        watched = self.signal
        value_of = watched.step_value
        if run is None or value_of is None:
            return UNKNOWN
        records = [record for record in run.steps.segment() if value_of(record.step) is not None]
        values = [value_of(record.step) or 0.0 for record in records]
        if not records or not records[-1].usual:
            return UNKNOWN
        usual, highest = self._usual(values[:-1], records[:-1])
        if not usual:
            return UNKNOWN
        baseline, value = _median(usual), values[-1]
        limit = baseline * (1 + self.increase)
        active = value > limit and (len(usual) >= CONFIDENT_STEPS or value > highest)
        if not active:
            return inactive(value, limit, watched.unit)
        facts: dict[str, wire.Fact] = {
            "step": records[-1].step.step,
            f"baseline_{watched.unit}": baseline,
            "increase_ratio": value / baseline - 1 if baseline else 0.0,
            "baseline_steps": len(usual),
        }
        return Verdict("active", value, limit, watched.unit, facts | _lengths(records))

    def _usual(self, values: list[float], records: list[StepRecord]) -> tuple[list[float], float]:
        """The values that say what is usual, sorted; and the highest that was no jump, whether usual or not."""
        usual: list[float] = []
        jumped: list[float] = []
        highest = 0.0
        for value, record in zip(values, records, strict=True):
            if not record.usual:
                highest = max(highest, value)
            elif usual and value > _median(usual) * (1 + self.increase):
                jumped.append(value)
                if len(jumped) >= SETTLED_STEPS:
                    usual, jumped = sorted(jumped), []
            else:
                insort(usual, value)
                jumped = []
        return usual, max([highest, *usual[-1:]])


def _median(ordered: list[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _lengths(records: list[StepRecord]) -> dict[str, wire.Fact]:
    """Response lengths now and usually, where the trainer tells them: a long rollout is not always a slow one."""
    last = records[-1].step.response_length_mean_tokens
    earlier = sorted(
        length for record in records[:-1] if (length := record.step.response_length_mean_tokens) is not None
    )
    if last is None or not earlier:
        return {}
    return {"response_length_mean_tokens": last, "usual_response_length_mean_tokens": _median(earlier)}
