"""When will something on a node be full: its memory, the disk that Ray spills to, /dev/shm.

The unit of time is the training step, or several of them where they are very short; on a node whose run tells of no
steps it is five minutes.
"""

from array import array
from collections.abc import Sequence
from itertools import pairwise
from math import isnan, nan
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core.fleet import Fleet
from oomwatch.core.foretold import Foretold
from oomwatch.core.growth import growth, is_undone
from oomwatch.core.hosthistory import FINE_SECONDS, KEPT_SECONDS, SPAN_SECONDS, Peaks, Place, Span
from oomwatch.core.noderecord import NodeRecord
from oomwatch.core.runrecord import RunRecord
from oomwatch.core.subject import Subject
from oomwatch.core.trend import LONG

UNIT_SECONDS_MIN = 2 * FINE_SECONDS
CURRENT_UNITS = 3  # steps that do not come for so many of them, and ten minutes, are no measure of time any more
CURRENT_SECONDS_MIN = 600.0
UNITS_KEPT = 4 * LONG
STEPS_MAX = 2 * UNITS_KEPT  # that are looked at, however short they are
HELD_UNITS = 10  # so long it is believed that no unit has confirmed

FACTS = ("eta_seconds", "eta_steps", "level_bytes", "growth_bytes_per_hour")


class Units(NamedTuple):
    """How a node's time is cut: the bounds of the spans, oldest first."""

    bounds: tuple[float, ...]
    unit_seconds: float
    step_seconds: float | None  # None: no steps are told


class Filling(NamedTuple):
    """A growth that is believed, and where it leads."""

    eta_seconds: float  # from `until` on
    agreed_seconds: float  # the later of what its last unit said and what the one before that said
    step_seconds: float | None  # None: no steps are told
    growth_bytes_per_hour: float
    level_bytes: float  # what is used at the peaks, spikes of some steps included
    since: float  # over which time it was seen
    until: float  # the end of the last unit that confirmed it

    def facts_at(self, now: float) -> dict[str, wire.Fact]:
        """FACTS, as far as they are known."""
        eta_seconds = max(0.0, self.eta_seconds - max(0.0, now - self.until))
        facts: dict[str, wire.Fact] = {
            "eta_seconds": eta_seconds,
            "level_bytes": round(self.level_bytes),
            "growth_bytes_per_hour": round(self.growth_bytes_per_hour),
        }
        return facts | ({"eta_steps": round(eta_seconds / self.step_seconds)} if self.step_seconds else {})

    def foretold_at(self, now: float, what: Place) -> Foretold:
        """The same for who does not ask whether that is near."""
        seconds = max(0.0, self.agreed_seconds - max(0.0, now - self.until))
        return Foretold(what, seconds, seconds / self.step_seconds if self.step_seconds else None)


class Horizon(NamedTuple):
    """How far a rule looks ahead: a time, or so many steps of the node's run where those take longer."""

    seconds: float
    steps: int

    def check(self) -> None:
        """Raises ValueError where nothing can be so near."""
        if self.seconds <= 0 or self.steps < 0:
            raise ValueError("within must be longer than 0s, and within_steps cannot be negative")

    def seconds_of(self, fleet: Fleet, subject: Subject) -> float:
        return max(self.seconds, self.steps * fleet.rhythm_seconds(subject))


def rhythm_of(fleet: Fleet, subject: Subject, now: float) -> RunRecord | None:
    """The run whose steps measure the time of a node; None where there is none, or it tells of none any more."""
    run = fleet.run_record(subject)
    rhythm = run.steps.rhythm_seconds() if run else None
    last = run.steps.last() if run else None
    if run is None or rhythm is None or last is None or not rhythm > 0:
        return None
    return run if now - last.at <= max(CURRENT_UNITS * rhythm, CURRENT_SECONDS_MIN) else None


def stamp(run: RunRecord | None, now: float) -> float:
    """Changes whenever there is another unit to judge: when the last one ended."""
    last = run.steps.last() if run else None
    return last.at if last else now // SPAN_SECONDS * SPAN_SECONDS


def units(run: RunRecord | None, now: float, since: float = float("-inf")) -> Units:
    """The spans to compare, up to `now`; those before a restart of the run, and those that warmed it up, left out."""
    if run is None:
        number = int(now // SPAN_SECONDS)
        bounds = tuple(SPAN_SECONDS * earlier for earlier in range(number - UNITS_KEPT, number + 1))
        return Units(tuple(at for at in bounds if at >= since), SPAN_SECONDS, None)
    oldest = now - KEPT_SECONDS + SPAN_SECONDS
    ends = [at for at in run.steps.usual_ends(STEPS_MAX) if oldest <= at <= now]
    bounds = _apart(ends)[-UNITS_KEPT - 1 :]
    unit_seconds = (bounds[-1] - bounds[0]) / (len(bounds) - 1) if len(bounds) > 1 else UNIT_SECONDS_MIN
    return Units(bounds, unit_seconds, run.steps.rhythm_seconds())


def filling(
    node: NodeRecord,
    run: RunRecord | None,
    place: Place,
    full_bytes: float,
    now: float,
    *,
    since: float = float("-inf"),
) -> Filling | None:
    """How a place of a node fills up to so many bytes; None where it does not. Worked out once a unit.

    What was believed once holds for some units more, unless it is undone: among noise not every unit confirms it.
    `since`: what came before is not looked at.
    """
    peaks = node.history.of(place)
    if peaks is None:
        return None
    key = _key(place, full_bytes)
    ended = (stamp(run, now), since)
    cut = node.memo.once(("units", place), ended, lambda: units(run, now, since))

    def work_out() -> Filling | None:
        return _anew(_of_spans(node, place, peaks, cut), cut, full_bytes, node.memo.last(key))

    return node.memo.once(key, ended, work_out)


def last_filling(node: NodeRecord, place: Place, full_bytes: float) -> Filling | None:
    """What `filling` gave last: for who only reads."""
    known = node.memo.last(_key(place, full_bytes))
    return known if isinstance(known, Filling) else None


def _key(place: Place, full_bytes: float) -> tuple[str, Place, float]:
    return ("filling", place, full_bytes)


class _Known(NamedTuple):
    """The peaks of the spans that were judged last, by a clock that was set by so much. Packed: each node has some."""

    bounds: tuple[float, ...]
    peaks: "array[float]"  # of each span between two bounds, as the history has it; not a number where it has none
    shifted_seconds: float

    def of_spans(self) -> dict[Span, float]:
        return {span: peak for span, peak in zip(pairwise(self.bounds), self.peaks, strict=True) if not isnan(peak)}


def _of_spans(node: NodeRecord, place: Place, peaks: Peaks, cut: Units) -> list[float]:
    """The peaks of a place. Spans that are over are looked up once: there are many, and one is new."""
    key = ("peaks", place)

    def look_up() -> _Known:
        before = node.memo.last(key)
        shifted_seconds, known = peaks.shifted_seconds, dict[Span, float]()
        if isinstance(before, _Known) and before.shifted_seconds == shifted_seconds:
            known = before.of_spans()
        spans = list(pairwise(cut.bounds))
        found = peaks.each(spans, known)
        return _Known(cut.bounds, array("f", [found.get(span, nan) for span in spans]), shifted_seconds)

    found = node.memo.once(key, (cut.bounds, peaks.shifted_seconds), look_up)
    return [peak for peak in found.peaks if not isnan(peak)]


def _anew(values: Sequence[float], cut: Units, full_bytes: float, last: object) -> Filling | None:
    spans = list(pairwise(cut.bounds))
    found = growth(values, full_bytes)
    if found is None:
        return _held(last, spans, values) if isinstance(last, Filling) else None
    return Filling(
        eta_seconds=found.left * cut.unit_seconds,
        agreed_seconds=found.agreed * cut.unit_seconds,
        step_seconds=cut.step_seconds,
        growth_bytes_per_hour=found.slope * 3600 / cut.unit_seconds,
        level_bytes=found.level,
        since=spans[-min(found.peaks, len(spans))][0],
        until=cut.bounds[-1],
    )


def _held(last: Filling, spans: Sequence[Span], peaks: Sequence[float]) -> Filling | None:
    """What was believed some units ago, if it still is."""
    if not spans or is_undone(peaks) or last.until < spans[-min(HELD_UNITS, len(spans))][0]:
        return None
    return last


def _apart(times: Sequence[float]) -> tuple[float, ...]:
    """The times, without those too soon after the one before."""
    kept = [*times[:1]]
    for at in times:
        if at - kept[-1] >= UNIT_SECONDS_MIN:
            kept.append(at)
    return tuple(kept)
