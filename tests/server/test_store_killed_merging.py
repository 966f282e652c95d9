"""A server that is killed while it merges loses nothing, doubles nothing, and its next life goes on where it was."""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

import pytest
from tests.server.running_server import ENVIRON

from oomwatch import wire
from oomwatch.store.store import Batch, Entry, Store

NOON = 1_699_963_200.0  # a full hour
HOUR_MS, NOON_MS = 3_600_000, 1_699_963_200_000
DAY = 86_400.0
PLACES = (("n1", "0"), ("n1", ""))  # a GPU and its host
SECONDS = range(0, 1200, 7)  # two pieces of ten minutes
CALLS = 12  # as many as make them
LATER_EACH_TIME = 1.25


class Merger:
    """A process of its own that merges, and copies of which are killed."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-m", "tests.server.killed_merging", url, str(NOON + DAY)]
        self._process = subprocess.Popen(
            command, env=ENVIRON, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ended(self, how: str, number: float) -> str:
        """What became of one that was to end then."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(how, number, file=self._process.stdin)
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """An hour's readings as they were told, unmerged."""
    opened = Store.open(database_url)
    for first in range(CALLS):
        entries = [_told(number, second) for number, second in enumerate(SECONDS) if number % CALLS == first]
        opened.record(Batch(entries=tuple(entries)))
    yield opened
    opened.close()


@pytest.fixture
def merger(database_url: str, store: Store) -> Iterator[Merger]:  # noqa: ARG001 - it opens what is there
    started = Merger(database_url)
    yield started
    started.close()


def _told(number: int, second: int) -> Entry:
    """Each at a session of its own: readings of a second come in any order here."""
    gpu = wire.GpuSample(gpu="0", used_bytes=_used(second), utilization_ratio=0.5)
    sample = wire.Sample(seq=1, at=NOON + second, gpus=(gpu,), host=wire.HostSample(memory_used_bytes=_used(second)))
    return Entry(node="n1", session=f"s{number}", received_at=sample.at, message=sample)


def _used(second: int) -> int:
    """Every one differs, and the greatest of ten seconds or of a minute is now its first and now its last."""
    return 4096 * (1_000_003 * second % 9973)


def _expected(width_ms: int) -> dict[int, Sequence[int]]:
    """The readings of each bucket."""
    found: dict[int, list[int]] = defaultdict(list)
    for second in SECONDS:
        found[(NOON_MS + 1000 * second) // width_ms * width_ms].append(_used(second))
    return dict(found)


def assert_whole(store: Store) -> None:
    """Every reading once, and each width has every bucket's number of readings and its least and greatest."""
    read = [(one.at - NOON, one.gpus[0].used_bytes, one.host) for _, one in store.recent_samples(0.0)]
    assert read == [(second, _used(second), wire.HostSample(memory_used_bytes=_used(second))) for second in SECONDS]
    for width_ms in (10_000, 60_000):
        expected = _expected(width_ms)
        hour = store.hour(PLACES, NOON_MS, NOON_MS + HOUR_MS - 1, width_ms)
        assert [place for place, _ in hour.parts] == list(PLACES)
        for place, part in hour.parts:
            assert list(part.at_ms) == sorted(expected)
            rows, field = part.values[0], 1 if place[1] else 0  # used_bytes; memory_used_bytes
            lows, spreads = part.values[1 + 4 * field], part.values[2 + 4 * field]
            found = list(zip(rows, lows, [low + more for low, more in zip(lows, spreads, strict=True)], strict=True))
            assert found == [(len(known), min(known), max(known)) for _, known in sorted(expected.items())]


def test_one_that_is_killed_before_any_of_its_statements_loses_and_doubles_nothing(
    store: Store, merger: Merger
) -> None:
    kills, helpings, number = 0, 0, 1
    while (became := merger.ended("statement", number)) != "done":
        assert became in ("killed", "helped")
        assert_whole(store)
        kills, helpings = kills + (became == "killed"), helpings + (became == "helped")
        number = number + 1 if became == "killed" else 1
    assert helpings >= 2 * 3  # a GPU and a host: two pieces and the hour
    assert kills > 5 * helpings
    assert {one.kept: one.chunks for one in store.sizes().history} == {"raw": 2, "10s": 2, "1m": 2}


def test_one_that_is_killed_at_any_moment_loses_and_doubles_nothing(store: Store, merger: Merger) -> None:
    kills, seconds = 0, 0.0005
    while (became := merger.ended("moment", seconds)) != "done":
        assert became == "killed"
        assert_whole(store)
        kills, seconds = kills + 1, LATER_EACH_TIME * seconds
    assert kills > 3
    assert_whole(store)
    assert {one.kept: one.chunks for one in store.sizes().history} == {"raw": 2, "10s": 2, "1m": 2}
