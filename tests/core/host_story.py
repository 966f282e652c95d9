"""A node without GPUs whose memory and disks are told: the scaffold of the tests of what fills up on a host."""

from collections.abc import Iterable, Sequence

from tests.core.story import GIB, Story

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.core.rule import RuleSet

TOTAL_GIB, SHM_GIB, DISK_GIB = 1000, 100, 2000
READ_SECONDS = 10
FOLDER = "/tmp/ray"  # noqa: S108 - a name, not a path


def number(told: wire.Transition, fact: str) -> float:
    """A fact that is a number."""
    value = told.facts[fact]
    assert not isinstance(value, str)
    return value


def gib(value: float | None) -> int | None:
    return None if value is None else round(value * GIB)


class HostStory(Story):
    """Readings every ten seconds, judged on the grid in between."""

    def __init__(
        self,
        rules: RuleSet,
        *,
        container_gib: float | None = None,
        run: str | None = "r",
        engine: type[Engine] = Engine,
    ) -> None:
        super().__init__(rules, gpus=0, run=run, engine=engine)
        facts = wire.HostFacts(
            memory_total_bytes=TOTAL_GIB * GIB,
            memory_limit_bytes=gib(container_gib),
            shm_total_bytes=SHM_GIB * GIB,
            disk_path=FOLDER,
            disk_total_bytes=DISK_GIB * GIB,
        )
        hello = wire.Hello(
            protocol=1, agent_version="0", node="n", session="s", sent_at=0, interval_seconds=READ_SECONDS,
            facts=wire.NodeFacts(host=facts), run=run,
        )  # fmt: skip
        self._observe(hello, "n")

    def read(
        self,
        machine: float | None = None,
        *,
        container: float | None = None,
        shm: float | None = None,
        disk: float | None = None,
        processes: dict[str, float] | None = None,
    ) -> "HostStory":
        """The next reading, in GiB; processes are numbered from 1 in the order in which they are given."""
        self.now += READ_SECONDS
        sizes = enumerate((processes or {}).items(), start=1)
        listed = tuple(wire.HostProcess(pid=pid, name=name, rss_bytes=round(size * GIB)) for pid, (name, size) in sizes)
        self.sample(
            host=wire.HostSample(
                memory_used_bytes=gib(machine),
                cgroup_used_bytes=gib(container),
                shm_used_bytes=gib(shm),
                disk_used_bytes=gib(disk),
                processes=listed or None,
            )
        )
        self.heard += self.engine.advance(self.now)
        return self

    def steps(self, peaks: Iterable[float], step_seconds: int = 150, trough: float = 0.7) -> "HostStory":
        """Steps of the run with these peaks, each between troughs of that share."""
        first = self._steps_told + 1
        for number, peak in enumerate(peaks, start=first):
            self._one_step(number, peak, step_seconds, trough)
            self._steps_told = number
        return self

    _steps_told = 0

    @property
    def states(self) -> list[str]:
        """What alerts went through; not what was said of them afterwards."""
        return [one.state for one in self.heard if one.change == "state"]

    def _one_step(self, number: int, peak: float, step_seconds: int, trough: float) -> None:
        readings = step_seconds // READ_SECONDS
        for reading in range(readings):
            self.read(peak if readings // 3 <= reading < 2 * readings // 3 else trough * peak)
        self.step(number, step_seconds=float(step_seconds))

    def spans(self, peaks: Sequence[float], seconds: int = 300) -> "HostStory":
        """The same without a word of steps."""
        for peak in peaks:
            for reading in range(seconds // READ_SECONDS):
                self.read(peak if reading % 15 < 5 else 0.7 * peak)
        return self
