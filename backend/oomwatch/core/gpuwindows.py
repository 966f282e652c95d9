"""A GPU's readings of device memory, in the windows that rules and steps look into."""

from array import array

from oomwatch.core.blocks import BlockWindow
from oomwatch.core.gpusteps import GpuSteps
from oomwatch.core.window import PeakWindow

PEAK_SLICE_SECONDS = 10.0
PEAK_KEEP_SECONDS = 1800.0


class GpuWindows:
    """Peaks, blocks and the step that runs.

    The first reading of each ten seconds is put into them at once, the others are gathered and follow together: with
    the next ten seconds, or as soon as somebody looks. What is found there is the same; a reading costs half as much.
    """

    __slots__ = ("_at", "_blocks", "_steps", "_until", "_used_bytes", "_used_peaks")

    def __init__(self) -> None:
        self._used_peaks = PeakWindow(PEAK_SLICE_SECONDS, PEAK_KEEP_SECONDS)
        self._blocks = BlockWindow()
        self._steps = GpuSteps()
        self._at, self._used_bytes = array("d"), array("d")  # gathered
        self._until = float("-inf")  # the running ten seconds end

    def add(self, at: float, used_bytes: float) -> bool:
        """Take a reading in. True: it is the first of another minute."""
        if at < self._until:
            self._at.append(at)
            self._used_bytes.append(used_bytes)
            return False
        self._settle()
        self._until = at - at % PEAK_SLICE_SECONDS + PEAK_SLICE_SECONDS
        self._used_peaks.add(at, used_bytes)
        self._steps.read(at, used_bytes)
        return self._blocks.add(at, used_bytes)

    @property
    def used_peaks(self) -> PeakWindow:
        self._settle()
        return self._used_peaks

    @property
    def blocks(self) -> BlockWindow:
        self._settle()
        return self._blocks

    @property
    def steps(self) -> GpuSteps:
        self._settle()
        return self._steps

    @property
    def told_steps(self) -> GpuSteps:
        """The same for who asks of steps that are over, or has figures of torch and processes: whatever is gathered."""
        return self._steps

    def begin_other_steps(self) -> None:
        """Those until now were of another run."""
        self._settle()
        self._steps = GpuSteps()

    def shift(self, seconds: float) -> None:
        """The clock that the times are told by was set by so much."""
        self._settle()
        self._until = float("-inf")
        self._used_peaks.shift(seconds)
        self._steps.shift(seconds)
        self._blocks.shift(seconds)

    def _settle(self) -> None:
        at, used_bytes = self._at, self._used_bytes
        if at:
            self._used_peaks.extend(at, used_bytes)
            self._steps.read_all(at, used_bytes)
            self._blocks.extend(at, used_bytes)
            del at[:], used_bytes[:]
