"""Which phase of a step a run was in, and since when: a timeline of spans, each with how it is known.

Two sources, of different worth:

- Marks, live and exact: a memory line or a sleep or wake line says which phase begins at this moment. Only runs that
  log at DEBUG level print them, and only some boundaries have one.
- The step line, afterwards: it gives the duration of every phase, in the order they ran. When it arrives, the step is
  cut: laid out from the moment its rollout was marked to begin, else back from the step's end. It arrives a second or
  so late (Ray, the file, the tail), so a cut is good to UNCERTAIN_SECONDS.

Until a step line comes, the marks alone tell; what they told is then replaced by the cut, but for spans that marks
bound on both sides.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from oomwatch import wire

UNCERTAIN_SECONDS = 1.5
LATE_SECONDS = 2 * UNCERTAIN_SECONDS  # between a mark and a step line that tell of the same moment
SPANS_KEPT = 4000  # 400 steps of ten phases
How = Literal["mark", "step line"]


class Span(NamedTuple):
    start: float
    end: float
    phase: str
    step: int | None
    how: How


class _Open(NamedTuple):
    start: float
    phase: str


class _Final:
    """The last spans that were cut, in order of time. In columns: 40 bytes each, as objects they took 125."""

    __slots__ = ("_ends", "_hows", "_phases", "_starts", "_steps")

    def __init__(self) -> None:
        self._starts, self._ends, self._steps = array("d"), array("d"), array("q")
        self._phases: list[str] = []
        self._hows: list[How] = []

    def extend(self, step: int, spans: Sequence[Span]) -> None:
        """Add those of a step."""
        self._starts.extend(span.start for span in spans)
        self._ends.extend(span.end for span in spans)
        self._steps.extend([step] * len(spans))
        self._phases.extend(span.phase for span in spans)
        self._hows.extend(span.how for span in spans)
        old = max(0, len(self._starts) - SPANS_KEPT)
        del self._starts[:old], self._ends[:old], self._steps[:old], self._phases[:old], self._hows[:old]

    def overlapping(self, start: float, end: float) -> Iterator[Span]:
        for place in range(bisect_right(self._ends, start), bisect_left(self._starts, end)):
            yield Span(
                self._starts[place], self._ends[place], self._phases[place], self._steps[place], self._hows[place]
            )

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._starts = array("d", [at + seconds for at in self._starts])
        self._ends = array("d", [at + seconds for at in self._ends])


class Timeline:
    """The phases of one run. All its colocated GPUs go through them together: rank 0 speaks for all."""

    def __init__(self) -> None:
        self._final = _Final()
        self._marked: list[Span] = []  # the last ones bounded by marks on both sides, since the last cut
        self._open: _Open | None = None
        self._cut_until: float | None = None
        self.last_step: tuple[Span, ...] = ()  # the phases of the step that was cut last, oldest first

    # ------------------------------------------------------------ reading

    def spans(self, start: float = 0.0, end: float = float("inf")) -> Iterator[Span]:
        """Spans that overlap [start, end], oldest first; the last may still be open and then ends at its start."""
        yield from self._final.overlapping(start, end)
        yield from (span for span in self._marked if span.end > start and span.start < end)
        if self._open is not None and self._open.start < end:
            yield Span(self._open.start, self._open.start, self._open.phase, None, "mark")

    def current(self) -> str | None:
        """The phase that the run is in, where a mark told."""
        return self._open.phase if self._open else None

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._final.shift(seconds)
        self._marked = [_moved(span, seconds) for span in self._marked]
        self.last_step = tuple(_moved(span, seconds) for span in self.last_step)
        if self._open is not None:
            self._open = self._open._replace(start=self._open.start + seconds)
        if self._cut_until is not None:
            self._cut_until += seconds

    # ------------------------------------------------------------ feeding

    def observe(self, at: float, body: wire.EventBody) -> None:
        """Take in an event of the run, if it says anything about phases."""
        if isinstance(body, wire.Step):
            self._cut(at, body)
        elif isinstance(body, wire.TorchMemory):
            if body.phase is not None:
                self._mark(at, body.phase)
            elif body.ends_phase is not None:
                self._leave(at, body.ends_phase)
        elif isinstance(body, wire.EngineWake):
            self._mark(at, "rollout" if "kv_cache" in body.tags or not body.tags else "update_weights")
        elif isinstance(body, wire.EngineSleep):
            self._leave(at, "rollout")

    def _mark(self, at: float, phase: str) -> None:
        """A phase begins, unless it already runs."""
        if self._open is not None and self._open.phase == phase:
            return
        self._close(at)
        self._open = _Open(at, phase)

    def _leave(self, at: float, phase: str) -> None:
        if self._open is not None and self._open.phase == phase:
            self._close(at)

    def _close(self, at: float) -> None:
        if self._open is not None and at > self._open.start:
            self._marked.append(Span(self._open.start, at, self._open.phase, None, "mark"))
            del self._marked[:-SPANS_KEPT]  # a run that tells of no steps is never cut
        self._open = None

    # ------------------------------------------------------------ cutting

    def _cut(self, at: float, step: wire.Step) -> None:
        """Replace what marks told of this step by what its line says of all of it."""
        phases = {name: seconds for name, seconds in step.phase_seconds.items() if seconds > 0 and name != "validation"}
        validation_seconds = step.phase_seconds.get("validation", 0.0)
        ended_at = self._end_of_step(at, validation_seconds)
        took_seconds = max(step.step_seconds or 0.0, sum(phases.values()))
        marked_at = self._rollout_marked_at(ended_at, took_seconds)
        began_at = marked_at if marked_at is not None else self._beginning(ended_at, took_seconds)
        laid_out = _laid_out(phases, began_at, ended_at, step.step, anchored=marked_at is not None)
        marked = [span._replace(step=step.step) for span in self._marked if began_at <= span.start and span.end <= at]
        spans = _fitted(laid_out, marked)
        validated_at = max(ended_at, at) if validation_seconds > 0 else ended_at
        if validated_at > ended_at:
            spans.append(Span(ended_at, validated_at, "validation", step.step, "step line"))
        self._final.extend(step.step, spans)
        self.last_step = tuple(spans)
        self._marked = []
        self._cut_until = validated_at
        if self._open is not None:
            self._open = self._open._replace(start=max(self._open.start, self._cut_until))

    def _end_of_step(self, at: float, validation_seconds: float) -> float:
        """When the step's last phase ended: where the next rollout was marked to begin, else by the step line."""
        earliest = self._cut_until if self._cut_until is not None else float("-inf")
        marked_at = self._open.start if self._open is not None and self._open.phase == "rollout" else None
        late_seconds = validation_seconds + LATE_SECONDS
        if marked_at is not None and earliest < marked_at and at - late_seconds <= marked_at <= at:
            return marked_at
        return max(earliest, at - validation_seconds)

    def _beginning(self, ended_at: float, took_seconds: float) -> float:
        """When the step began: where the one before ended, unless there was a pause (or no one before)."""
        if self._cut_until is None:
            return ended_at - took_seconds
        return max(self._cut_until, ended_at - took_seconds - LATE_SECONDS)

    def _rollout_marked_at(self, ended_at: float, took_seconds: float) -> float | None:
        """When this step's rollout began, where a mark says so and the step's duration bears it out."""
        earliest = max(self._cut_until or 0.0, ended_at - took_seconds - LATE_SECONDS)
        return next(
            (span.start for span in self._marked if span.phase == "rollout" and earliest <= span.start < ended_at), None
        )


def _moved(span: Span, seconds: float) -> Span:
    return span._replace(start=span.start + seconds, end=span.end + seconds)


def _laid_out(phases: dict[str, float], began_at: float, ended_at: float, step: int, *, anchored: bool) -> list[Span]:
    """The phases one after the other: forwards from an exact beginning, else backwards from the end.

    A log that is replayed faster than it was written claims more time than has passed: then the phases share what there
    was, in proportion.
    """
    total = sum(phases.values())
    room = max(0.0, ended_at - began_at)
    scale = min(1.0, room / total) if total else 0.0
    at = began_at if anchored else ended_at - total * scale
    spans: list[Span] = []
    for phase, seconds in phases.items():
        spans.append(Span(at, at + seconds * scale, phase, step, "step line"))
        at = spans[-1].end
    return spans


def _fitted(laid_out: list[Span], marked: list[Span]) -> list[Span]:
    """The spans of a step in order: marked ones as they are, cut ones with what is left, gaps of seconds as idle."""
    exact = {span.phase: span for span in marked}
    fitted: list[Span] = []
    for span in laid_out:
        chosen = exact.get(span.phase, span)
        start = max(chosen.start, fitted[-1].end) if fitted else chosen.start
        if fitted and start - fitted[-1].end > UNCERTAIN_SECONDS:
            fitted.append(Span(fitted[-1].end, start, "idle", span.step, "step line"))
        end = min(chosen.end, *(other.start for other in marked if other.start > start), float("inf"))
        if end > start:
            fitted.append(Span(start, end, chosen.phase, span.step, chosen.how))
    return fitted
