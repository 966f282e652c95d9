"""What is known of one run, over all nodes that told of it: its steps, its configuration, its cycles."""

from collections import Counter, deque
from typing import NamedTuple

from oomwatch import wire
from oomwatch.core import notable
from oomwatch.core.coverage import Sights
from oomwatch.core.lives import LifeCount
from oomwatch.core.memo import Keeping, Memo
from oomwatch.core.notable import Notable
from oomwatch.core.phases import Timeline
from oomwatch.core.steps import StepHistory
from oomwatch.core.subject import Subject
from oomwatch.core.window import WINDOW_SECONDS_MAX, Window
from oomwatch.plan.batches import Batches, batches_of

CYCLE_MARKS_KEPT = 2000
MARKERS_MAX, PRINTERS_MAX = 32, 4096  # of a run; of a marker: who prints more is no trainer
MARKER_CURRENT_SECONDS = 600.0  # a marker that was not printed for so long, and for so many steps, is one of the past
MARKER_CURRENT_STEPS = 3

Printer = tuple[str, int | None]  # node and process id: ids repeat between nodes


class CycleMark(NamedTuple):
    at: float
    printer: Printer


class RunRecord:
    """One training run, over all nodes that told of it."""

    def __init__(self, run: str, now: float, keeping: Keeping) -> None:
        self.subject = Subject("run", run)
        self.name = run
        self.first_seen_at = now
        self.last_seen_at = now
        self.nodes: dict[str, None] = {}  # in order of first sight
        self.simulated = False
        self.steps = StepHistory()
        self.lives = LifeCount()
        self.timeline = Timeline()
        self.sights = Sights()
        self.config: dict[str, wire.ConfigValue] = {}
        self.model: dict[str, wire.ConfigValue] = {}  # sizes, by the keys of its config.json
        self.critic_model: dict[str, wire.ConfigValue] = {}
        self.framework: str | None = None
        self.framework_version: str | None = None
        self._batches: tuple[dict[str, wire.ConfigValue], str | None, Batches] | None = None
        self.torch_reserved = Window(WINDOW_SECONDS_MAX)  # of processes that could not be mapped to a GPU
        self.torch_subject: Subject | None = None  # where the trainer's rank 0 was last seen
        self.cycle_marks: dict[str, deque[CycleMark]] = {}
        self.cycle_totals: dict[str, dict[Printer, int]] = {}
        self.memo = Memo(keeping)
        self.notable: tuple[Notable, ...] = ()  # of processes whose node is not known

    @property
    def batches(self) -> Batches:
        """How verl cuts its steps: worked out once for each configuration that is told."""
        known = self._batches
        if known is None or known[0] is not self.config or known[1] != self.framework_version:
            worked_out = batches_of(self.config, self.framework_version)
            known = self._batches = (self.config, self.framework_version, worked_out)
        return known[2]

    def shift(self, seconds: float) -> None:
        self.first_seen_at += seconds
        self.last_seen_at += seconds
        self.steps.shift(seconds)
        self.lives.shift(seconds)
        self.timeline.shift(seconds)
        self.torch_reserved.shift(seconds)
        self.notable = notable.moved(self.notable, seconds)
        for marks in self.cycle_marks.values():
            moved = [mark._replace(at=mark.at + seconds) for mark in marks]
            marks.clear()
            marks.extend(moved)

    def configure(self, told: wire.Config) -> None:
        """Its configuration was told. Who tells the same again, and knows less of the models, unsays nothing."""
        if told.model or told.values != self.config:
            self.model, self.critic_model = told.model, told.critic_model
        self.config, self.framework, self.framework_version = told.values, told.framework, told.version

    def mark_cycle(self, marker: str, at: float, printer: Printer) -> None:
        if marker not in self.cycle_marks and len(self.cycle_marks) >= MARKERS_MAX:
            return
        self.cycle_marks.setdefault(marker, deque(maxlen=CYCLE_MARKS_KEPT)).append(CycleMark(at, printer))
        totals = self.cycle_totals.setdefault(marker, {})
        if printer in totals or len(totals) < PRINTERS_MAX:
            totals[printer] = totals.get(printer, 0) + 1

    def absorb(self, other: "RunRecord") -> None:
        """Take over what was told of this run under another name: little, for a run is named when it starts."""
        self.first_seen_at = min(self.first_seen_at, other.first_seen_at)
        self.last_seen_at = max(self.last_seen_at, other.last_seen_at)
        self.nodes |= other.nodes
        self.config = self.config or other.config
        self.model, self.critic_model = self.model or other.model, self.critic_model or other.critic_model
        self.framework = self.framework or other.framework
        self.framework_version = self.framework_version or other.framework_version
        if not self.steps:
            self.steps, self.timeline, self.sights = other.steps, other.timeline, other.sights
            self.lives = other.lives
        for marker, marks in other.cycle_marks.items():
            for mark in marks:
                self.mark_cycle(marker, mark.at, mark.printer)

    def cycle_marker(self) -> str | None:
        """The most reliable of the markers that this run still prints: the one to count cycles by."""
        since = self.last_seen_at - max(
            MARKER_CURRENT_SECONDS, MARKER_CURRENT_STEPS * (self.steps.rhythm_seconds() or 0.0)
        )
        ranked = [marker for marker in (*wire.RESHARD_MARKERS, *self.cycle_marks) if marker in self.cycle_marks]
        current = (marker for marker in ranked if self.cycle_marks[marker][-1].at >= since)
        return next(current, ranked[0] if ranked else None)

    def cycles_total(self) -> int:
        """Cycles since first sight. Several processes print the same cycle, so the busiest one's count is the run's."""
        marker = self.cycle_marker()
        return max(self.cycle_totals[marker].values()) if marker else 0

    def cycles_between(self, start: float, end: float) -> int:
        marks = self.cycle_marks.get(self.cycle_marker() or "", ())
        counts = Counter(mark.printer for mark in marks if start < mark.at <= end)
        return max(counts.values(), default=0)
