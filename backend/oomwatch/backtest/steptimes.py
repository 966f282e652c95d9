"""When each line of a log was written, where it does not say so: laid out by the durations in the step lines.

A step line tells how long the step took and each of its phases, in the order they ran. Steps follow each other without
a pause; a memory line is put where its words say ("After resume kv_cache" begins the rollout), and what says nothing
between its neighbours. Core and live runs cut phases by the same durations (core/phases.py).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import median
from typing import NamedTuple

from oomwatch import wire
from oomwatch.backtest.logs import Told

STEP_SECONDS = 60.0  # of a step whose line has no time, where no other has one either
STARTUP_SECONDS = 60.0  # between the first line of a process and the first step, for want of any time
_OF_A_START = (wire.TorchMemory, wire.EngineMemory, wire.Probe)
MOVE_SECONDS = 1.0  # between "Before load ..." and "After load ...", and between what follows upon each other
# Points that end their phase; others of one phase are spread over it.
_ENDS = ("After rollout generation", "Before vllm offload", "Before SGLang offload")


class Span(NamedTuple):
    start: float
    end: float


class _Row(NamedTuple):
    """What one line told: all of it at the same time."""

    told: list[Told]
    phase: str | None = None  # in which it was written
    ends: str | None = None  # which is over by it
    point: str = ""


class _Block(NamedTuple):
    """A step's rows and its step line; None for what came after the last."""

    rows: list[_Row]
    step: Told | None


Placed = tuple[float, Told]


def placed(told: Sequence[Told]) -> list[Placed]:
    """Each event with its time in seconds from the beginning, in order."""
    blocks = list(_blocks(told))
    usual = _usual_phases(blocks)
    at = STARTUP_SECONDS if blocks and _starts_up(blocks[0].rows) else 0.0
    result: list[Placed] = []
    rollout_marked = False
    for number, block in enumerate(blocks):
        layout = _Layout(block, at, usual, rollout_marked=rollout_marked, startup_seconds=0.0 if number else at)
        result += layout.placed()
        rollout_marked = any(row.phase == "rollout" for row in block.rows)
        at = layout.until
    return result


def _blocks(told: Sequence[Told]) -> Iterator[_Block]:
    rows: list[_Row] = []
    for _, group in groupby(told, key=lambda one: (one.origin.source, one.line) if one.line else id(one)):
        of_line = list(group)
        step = next((one for one in of_line if isinstance(one.body, wire.Step)), None)
        if step is None:
            rows.append(_row(of_line))
        else:
            yield _Block(rows, step)
            rows = []
    if rows:
        yield _Block(rows, None)


def _row(told: list[Told]) -> _Row:
    body = told[0].body
    if isinstance(body, wire.TorchMemory):
        return _Row(told, body.phase, body.ends_phase, body.at_point or "")
    if isinstance(body, wire.EngineWake):
        return _Row(told, "rollout" if "kv_cache" in body.tags or not body.tags else "update_weights")
    if isinstance(body, wire.EngineSleep):
        return _Row(told, ends="rollout")
    return _Row(told)


def _starts_up(rows: Sequence[_Row]) -> bool:
    first = next((row for row in rows if not isinstance(row.told[0].body, wire.Config)), None)
    return first is not None and not _tells_phase(first) and isinstance(first.told[0].body, _OF_A_START)


def _tells_phase(row: _Row) -> bool:
    return row.phase is not None or row.ends is not None


def _usual_phases(blocks: Sequence[_Block]) -> dict[str, float]:
    """The median duration of each phase, in order: how a step that never ended is laid out."""
    known = [block.step.body for block in blocks if block.step and isinstance(block.step.body, wire.Step)]
    names = [name for name in wire.PHASES if any(name in step.phase_seconds for step in known)]
    return {
        name: median(step.phase_seconds[name] for step in known if name in step.phase_seconds)
        for name in names
        if name not in ("validation", "save_checkpoint")
    }


class _Layout:
    """One step: when it ran, its phases, and where in them its lines stand."""

    def __init__(
        self, block: _Block, start: float, usual: dict[str, float], *, rollout_marked: bool, startup_seconds: float
    ) -> None:
        self._block = block
        self._start = start
        self._startup_seconds = startup_seconds
        body = block.step.body if block.step is not None else None
        step = body if isinstance(body, wire.Step) else wire.Step(step=0, phase_seconds=usual)
        phases = {name: seconds for name, seconds in step.phase_seconds.items() if name != "validation"}
        self.took, self._validation = _durations(step, phases, usual)
        self._ended = block.step is not None
        marked = rollout_marked or any(row.phase == "rollout" for row in block.rows)
        self._spans = self._laid_out(phases, forwards=marked or not self._ended)
        self.until = start + self.took + self._validation if self._ended else start

    def _laid_out(self, phases: dict[str, float], *, forwards: bool) -> dict[str, Span]:
        """As core.phases does: from the rollout's mark on where there is one, else back from the end."""
        order = list(phases)
        if "update_weights" in order and self._weights_come_first():
            order.remove("update_weights")
            order.insert(0, "update_weights")
        total = sum(phases.values())
        scale = min(1.0, self.took / total) if total else 1.0
        at = self._start if forwards else self._start + max(0.0, self.took - total * scale)
        spans = {}
        for name in order:
            spans[name] = Span(at, at + phases[name] * scale)
            at = spans[name].end
        return spans

    def _weights_come_first(self) -> bool:
        """Whether the engine is given its weights when the step begins (verl until 0.7), and not when it ends."""
        named = [row.phase or row.ends for row in self._block.rows if _tells_phase(row)]
        return bool(named) and named[0] == "update_weights" and "rollout" in named

    def placed(self) -> list[Placed]:
        rows = self._block.rows
        times = self._filled(rows, self._fixed(rows))
        result = [(at, one) for row, at in zip(rows, times, strict=True) for one in row.told]
        if self._block.step is not None:
            result.append((self.until, self._block.step))
        return result

    def _fixed(self, rows: Sequence[_Row]) -> list[float | None]:
        """The times of the rows whose words say where they stand."""
        times: list[float | None] = [None] * len(rows)
        reached = self._start
        left: set[str] = set()
        for phase, places in _runs(rows):
            span = self._spans.get(phase)
            if span is None:
                continue
            if rows[places[0]].phase is not None:
                if span.start < reached and span.end <= reached:  # its phase is over: the next step begins
                    span = Span(self._start + self.took, self._start + self.took)
                for place, share in zip(places, _shares(rows, places), strict=True):
                    times[place] = max(reached, span.start + (span.end - span.start) * share)
            elif phase not in left and span.end >= reached:
                times[places[0]] = span.end
                left.add(phase)
            reached = max([reached, *(at for place in places if (at := times[place]) is not None)])
        return times

    def _filled(self, rows: Sequence[_Row], fixed: list[float | None]) -> list[float]:
        """All times, in order: what is not fixed follows what it belongs to, or lies between its neighbours."""
        end = self._start + self.took
        times: list[float] = []
        at = self._start
        starting = self._startup_seconds > 0
        for place, row in enumerate(rows):
            known = fixed[place]
            following = next((one for one in fixed[place:] if one is not None), None)
            if starting and not _tells_phase(row) and known is None:
                times.append(self._start_up(place, rows))
                continue
            starting = False
            if known is None and place and row.point and row.point == rows[place - 1].point:
                known = at  # another process, at the same point
            elif known is None and (place == 0 or _belongs_to(row, rows[place - 1]) or not self._ended):
                known = self._of_failure(row, at) or at + (MOVE_SECONDS if place or not self._ended else 0.0)
                known = min(known, max(at, following)) if following is not None else known
            elif known is None:
                unknown = sum(1 for one in _until_known(fixed, place))
                known = at + ((following if following is not None else end) - at) / (unknown + 1)
            at = max(at, known if not self._ended else min(known, end))
            times.append(at)
        return times

    def _of_failure(self, row: _Row, at: float) -> float | None:
        """An error that names its phase happened in the midst of it."""
        body = row.told[0].body
        span = self._spans.get(body.phase or "") if isinstance(body, wire.DeviceOom) else None
        middle = (span.start + span.end) / 2 if span else None
        return middle if middle is not None and middle > at else None

    def _start_up(self, place: int, rows: Sequence[_Row]) -> float:
        """Before the first step: lines of the start, over the time that it may have taken."""
        first = next((index for index, row in enumerate(rows) if _tells_phase(row)), len(rows))
        return self._start - self._startup_seconds * (1 - place / max(1, first))


def _durations(step: wire.Step, phases: dict[str, float], usual: dict[str, float]) -> tuple[float, float]:
    """Seconds of the step, and of the validation after it. Some versions count it within the step."""
    total = sum(phases.values())
    validation = step.phase_seconds.get("validation", 0.0)
    if step.validation_only:
        return 0.0, validation or step.step_seconds or 0.0
    took = step.step_seconds or total or step.rollout_seconds or sum(usual.values()) or STEP_SECONDS
    within = step.step_seconds is not None and took >= total + validation
    return (took - validation, validation) if within and validation else (took, validation)


def _runs(rows: Sequence[_Row]) -> Iterator[tuple[str, list[int]]]:
    """Places of rows that tell of one phase, up to the next that tells of another."""
    telling = [place for place, row in enumerate(rows) if _tells_phase(row)]
    for (phase, _), places in groupby(
        telling, key=lambda place: (rows[place].phase or rows[place].ends, rows[place].phase is None)
    ):
        yield str(phase), list(places)


def _shares(rows: Sequence[_Row], places: Sequence[int]) -> list[float]:
    """Where in its phase each of some rows lies, from 0 to 1. Several processes pass the same point together."""
    points = list(dict.fromkeys(rows[place].point for place in places))
    if len(points) == 1:
        return [1.0 if points[0].startswith(_ENDS) else 0.0] * len(places)
    last = len(points) - 1 if points[-1].startswith("After") else len(points)
    return [points.index(rows[place].point) / last for place in places]


def _belongs_to(row: _Row, before: _Row) -> bool:
    """ "After load ..." upon "Before load ..."; and the second of two errors."""
    same = row.point.removeprefix("After ") == before.point.removeprefix("Before ") and bool(row.point)
    return same or (not row.point and not _tells_phase(row))


def _until_known(fixed: Sequence[float | None], place: int) -> Iterator[None]:
    for one in fixed[place:]:
        if one is not None:
            return
        yield None
