"""A signal is above a bound and still rising."""

from functools import cached_property

from msgspec import Struct

from oomwatch import wire
from oomwatch.core.fleet import WINDOW_SECONDS_MAX, Fleet, News, Scope, Subject
from oomwatch.core.signals import Signal, signal
from oomwatch.core.verdict import INACTIVE, UNKNOWN, Verdict
from oomwatch.core.window import Point
from oomwatch.units import Duration, Quantity, format_duration

PARTS = 3  # one rise is a warm-up; two in a row are a trend
WINDOW_STEPS = 4  # the window holds this many of the run's steps at least, so that each part has seen a peak


class Rising(Struct, frozen=True, kw_only=True, tag_field="kind", tag="rising", forbid_unknown_fields=True, dict=True):
    """{kind: rising, metric: torch_reserved_ratio, above: 90%, by: 0.5%, window: 10m}

    The window's points are cut into three parts. Their peaks are compared, since the raw line is a sawtooth: the signal
    is high if the last peak is above the bound, and still rising if the last is above the first by `by` and each has
    its share in the rise.
    """

    metric: str
    above: Quantity
    by: Quantity = Quantity(0.005)
    window: Duration = Duration(600)

    def __post_init__(self) -> None:
        if signal(self.metric).window is None:
            raise ValueError(f'"{self.metric}" keeps no window to look for a rise in')
        if not 0 < self.window <= WINDOW_SECONDS_MAX:
            raise ValueError(f"window must be more than 0s and at most {format_duration(WINDOW_SECONDS_MAX)}")

    @cached_property
    def _signal(self) -> Signal:
        return signal(self.metric)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return self._signal.scopes

    @property
    def fact_names(self) -> tuple[str, ...]:
        return ("earlier_peak_ratio", "risen_ratio", "over_seconds")

    @property
    def hears(self) -> tuple[News, ...]:
        return self._signal.hears

    def judge(self, fleet: Fleet, subject: Subject, now: float) -> Verdict:
        window = self._signal.window(fleet, subject) if self._signal.window else None
        points = window.between(now - self._window_seconds(fleet, subject), now) if window else []
        if len(points) < PARTS:
            return UNKNOWN
        first, middle, last = _peaks(points)
        active = last > self.above and last - first >= self.by and min(middle - first, last - middle) >= self.by / PARTS
        if not active:
            return INACTIVE
        facts: dict[str, wire.Fact] = {
            "earlier_peak_ratio": first,
            "risen_ratio": last - first,
            "over_seconds": points[-1].at - points[0].at,
        }
        return Verdict("active", last, float(self.above), self._signal.unit, facts)

    def _window_seconds(self, fleet: Fleet, subject: Subject) -> float:
        run = fleet.runs.get(fleet.run_of(subject) or "")
        rhythm_seconds = run.steps.rhythm_seconds() if run else None
        return max(self.window, WINDOW_STEPS * (rhythm_seconds or 0.0))


def _peaks(points: list[Point]) -> tuple[float, float, float]:
    """The highest value of each third of the points."""
    size, rest = divmod(len(points), PARTS)
    first, second = size, 2 * size + (rest > 1)
    values = [point.value for point in points]
    return max(values[:first]), max(values[first:second]), max(values[second:])
