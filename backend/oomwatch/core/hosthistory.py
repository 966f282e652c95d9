"""What a node's memory and disks did over the last hours: peaks in slices of time, and whose memory grew.

Kept as small arrays of single precision (good to 128 KiB at 2 TiB), so that a node costs some fifty kilobytes once
they are full.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from oomwatch import wire

FINE_SECONDS, FINE_KEPT_SECONDS = 10.0, 10800.0  # fine enough to tell the steps of a fast run apart
COARSE_SECONDS, KEPT_SECONDS = 60.0, 86400.0  # long enough for many steps of a slow one
COARSE_FROM_SECONDS = 90.0  # spans as long hold the middle of a coarse slice
SPAN_SECONDS = 300.0  # as long as most steps take: the unit of time where none is told of
PROCESS_SECONDS, PROCESS_KEPT_SECONDS = 60.0, 21600.0
PROCESSES_SEEN = 8  # the largest of each list
PROCESSES_KEPT = 24  # of all lists, those that were seen last
NO_READING = -1.0

# What can fill up: the machine's memory, the container's, the file system that Ray spills to, /dev/shm.
Place: TypeAlias = Literal["machine", "container", "spill_disk", "shm"]


Span: TypeAlias = tuple[float, float]  # start and end, Unix seconds


class PeakRow:
    """The highest value in each slice of the last `kept_seconds`. A late reading goes where it belongs.

    It has a place for each slice from the first that was read on, and so grows to its full length.
    """

    __slots__ = ("_first", "_most", "_peaks", "_shifted_seconds", "_slice_seconds")

    def __init__(self, slice_seconds: float, kept_seconds: float) -> None:
        self._slice_seconds = slice_seconds
        self._most = int(kept_seconds / slice_seconds)
        self._peaks = array("f")
        self._first = 0  # number of the first slice
        self._shifted_seconds = 0.0

    def add(self, at: float, value: float) -> None:
        """Take a reading in, at its Unix seconds."""
        number, stop = self._number(at), self._first + len(self._peaks)
        if not self._peaks or number >= stop - 1 + self._most:
            self._first, self._peaks = number, array("f", [value])
        elif number >= stop:
            self._peaks.extend([NO_READING] * (number - stop) + [value])
            surplus = max(0, len(self._peaks) - self._most)
            del self._peaks[:surplus]
            self._first += surplus
        elif number >= self._first:
            place = number - self._first
            self._peaks[place] = max(self._peaks[place], value)
        elif number >= stop - self._most:
            self._peaks = array("f", [value] + [NO_READING] * (self._first - number - 1)) + self._peaks
            self._first = number

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._shifted_seconds += seconds

    def peak(self, start: float, end: float) -> float | None:
        """The highest value of the slices whose middle is in [start, end); None where there is no reading."""
        half = self._slice_seconds / 2
        first, stop = self._number(start + half) - self._first, self._number(end + half) - self._first
        highest = max(self._peaks[max(0, first) : max(0, stop)], default=NO_READING)
        return highest if highest > NO_READING else None

    def _number(self, at: float) -> int:
        return int((at - self._shifted_seconds) // self._slice_seconds)


class Peaks:
    """What was used of one place: finely for the last hours, coarsely for a day."""

    __slots__ = ("_coarse", "_fine", "_highest", "_moment", "shifted_seconds")

    def __init__(self) -> None:
        self._fine = PeakRow(FINE_SECONDS, FINE_KEPT_SECONDS)
        self._coarse = PeakRow(COARSE_SECONDS, KEPT_SECONDS)
        self.shifted_seconds = 0.0  # by so much the clock was set, in all
        self._moment, self._highest = -1.0, 0.0  # the ten seconds of the last reading, and what is known of them

    def add(self, at: float, value: float) -> None:
        """Take a reading in, at its Unix seconds."""
        moment = (at - self.shifted_seconds) // FINE_SECONDS
        if moment == self._moment and value <= self._highest:
            return  # no new peak of its ten seconds, as most are
        self._highest = value if moment != self._moment else max(value, self._highest)
        self._moment = moment
        self._fine.add(at, value)
        self._coarse.add(at, value)

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._fine.shift(seconds)
        self._coarse.shift(seconds)
        self.shifted_seconds += seconds

    def each(self, spans: Sequence[Span], known: Mapping[Span, float]) -> dict[Span, float]:
        """The peak of each span of time that has any, in their order; those that are known are not looked up again."""
        peaks = {span: known.get(span) or self._peak(span) for span in spans}
        return {span: peak for span, peak in peaks.items() if peak is not None}

    def _peak(self, span: Span) -> float | None:
        start, end = span
        row = self._coarse if end - start >= COARSE_FROM_SECONDS else self._fine
        return row.peak(start, end)


class Grower(NamedTuple):
    """The process that took most of a growth."""

    name: str
    pid: int
    growth_bytes: float


class _Process(NamedTuple):
    name: str
    resident: PeakRow


class HostHistory:
    """One node's. A place that was never read has no peaks."""

    def __init__(self) -> None:
        self._places: dict[Place, Peaks] = {}
        self._processes: dict[int, _Process] = {}  # in the order in which they were last seen
        self._span: int | None = None  # number of the latest

    def of(self, place: Place) -> Peaks | None:
        return self._places.get(place)

    def observe(self, sample: wire.HostSample, at: float) -> bool:
        """Take a reading in. True: it is the first of another span of time, and the one before is complete."""
        self._add("machine", at - (sample.memory_used_peak_seconds_ago or 0.0), sample.memory_used_peak_bytes)
        self._add("machine", at, sample.memory_used_bytes)
        self._add("container", at - (sample.cgroup_used_peak_seconds_ago or 0.0), sample.cgroup_used_peak_bytes)
        self._add("container", at, sample.cgroup_used_bytes)
        self._add("spill_disk", at, sample.disk_used_bytes)
        self._add("shm", at, sample.shm_used_bytes)
        if sample.processes:
            self._observe_processes(sample.processes, at)
        span, before = int(at // SPAN_SECONDS), self._span
        self._span = span if before is None else max(span, before)
        return before is not None and span > before

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        for peaks in self._places.values():
            peaks.shift(seconds)
        for process in self._processes.values():
            process.resident.shift(seconds)

    def grower(self, start: float, end: float) -> Grower | None:
        """The process whose resident memory grew most between two times; None where none is known to have grown.

        One that came in between counts with all it has: before, it was too small to be listed.
        """
        growers = (self._growth(pid, process, start, end) for pid, process in self._processes.items())
        return max((one for one in growers if one is not None), key=lambda one: one.growth_bytes, default=None)

    def _growth(self, pid: int, process: _Process, start: float, end: float) -> Grower | None:
        last = process.resident.peak(end - 2 * PROCESS_SECONDS, end + PROCESS_SECONDS)
        if last is None:
            return None  # gone, or no longer among the largest
        first = process.resident.peak(start, start + 2 * PROCESS_SECONDS)
        growth = last - (first or 0.0)
        return Grower(process.name, pid, growth) if growth > 0 else None

    def _add(self, place: Place, at: float, value: int | None) -> None:
        if value is None:
            return
        peaks = self._places.get(place)
        if peaks is None:
            peaks = self._places[place] = Peaks()
        peaks.add(at, value)

    def _observe_processes(self, processes: Sequence[wire.HostProcess], at: float) -> None:
        for process in sorted(processes, key=lambda one: -one.rss_bytes)[:PROCESSES_SEEN]:
            known = self._processes.pop(process.pid, None)
            if known is None or known.name != process.name:
                known = _Process(process.name, PeakRow(PROCESS_SECONDS, PROCESS_KEPT_SECONDS))
            known.resident.add(at, process.rss_bytes)
            self._processes[process.pid] = known
        self._forget(list(self._processes)[:-PROCESSES_KEPT])

    def _forget(self, pids: Iterable[int]) -> None:
        for pid in pids:
            del self._processes[pid]
