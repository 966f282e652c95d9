"""What is old is kept some seconds together, peaks and all, and a chart is put together from what there is."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from sqlalchemy import Table, delete, func, insert, select, update

from oomwatch import wire
from oomwatch.store import columns
from oomwatch.store.schema import chunks, loose_hours, tiers
from oomwatch.store.store import Batch, Entry, Keep, Series, Store

NOON = 1_699_963_200.0  # a full hour
HOUR, DAY = 3600.0, 86_400.0
GPU = {"node": "n1", "gpu": "0"}
KEEP = Keep(raw_seconds=DAY, fine_seconds=7 * DAY, coarse_seconds=90 * DAY)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    opened = Store.open(database_url)
    yield opened
    opened.close()


def used_at(second: float) -> int:
    """A sawtooth, with a spike of one second in every quarter of an hour."""
    return 79_000 if second % 900 == 777 else 50_000 + int(second) % 97


def record(store: Store, first: int, last: int, every: int = 1, node: str = "n1", gpu: str = "0") -> None:
    samples = [
        wire.Sample(seq=second + 1, at=NOON + second, gpus=(wire.GpuSample(gpu=gpu, used_bytes=used_at(second)),))
        for second in range(first, last, every)
    ]
    entries = [Entry(node=node, session=f"s{first}", received_at=one.at, message=one) for one in samples]
    store.record(Batch(entries=tuple(entries)))


def keep_up(store: Store, now: float) -> None:
    while store.compact(now):
        pass
    while store.prune(now, 7 * DAY, readings=KEEP):
        pass


def read(store: Store, start: float, end: float, step: float) -> Series:
    return store.series("gpu_used_bytes", GPU, NOON + start, NOON + end, step)


def in_one(series: Series) -> tuple[float, float]:
    return min(one for one in series.min if one is not None), max(one for one in series.max if one is not None)


def count(store: Store, table: Table) -> int:
    with store._database.reading() as connection:
        return connection.scalars(select(func.count()).select_from(table)).one()


@pytest.mark.parametrize(("age_days", "step_seconds"), [(0, 1.0), (2, 10.0), (8, 60.0)])
def test_the_older_the_wider_and_every_peak_is_there(store: Store, age_days: int, step_seconds: float) -> None:
    record(store, 0, 3600)
    keep_up(store, NOON + 2 * HOUR + age_days * DAY)
    found = read(store, 0, 3599, 1)
    assert found.step_seconds == step_seconds
    width = int(step_seconds)
    for at, low, high in zip(found.times, found.min, found.max, strict=True):
        within = [used_at(at - NOON + second) for second in range(width)]
        assert (low, high) == (min(within), max(within))
    assert len(found.times) == 3600 / width


def test_readings_go_in_the_end(store: Store) -> None:
    record(store, 0, 60)
    keep_up(store, NOON + 100 * DAY)
    assert (count(store, chunks), count(store, tiers)) == (0, 0)
    assert read(store, 0, 60, 1).times == ()


def test_every_step_tells_the_same_peaks_across_all_seams(store: Store) -> None:
    """Three hours: one of which only tiers are left, one that is folded, and one that still runs."""
    for first in range(0, 10_800, 300):
        record(store, first, first + 300)
    keep_up(store, NOON + 2 * HOUR + 1000)
    with store._database.writing() as connection:
        connection.execute(delete(chunks).where(chunks.c.start_ms < (NOON + HOUR) * 1000))
    for step in (1, 7, 10, 25, 60, 97, 144, 900, 3600):
        found = read(store, 0, 10_799, step)
        for at, low, high in zip(found.times, found.min, found.max, strict=True):
            begin = int(max(0.0, at - NOON))
            within = [used_at(second) for second in range(begin, min(10_800, int(at - NOON + found.step_seconds)))]
            assert (low, high) == (min(within), max(within)), (step, at)
        steps = {after - before for before, after in pairwise(found.times)}
        assert steps <= {found.step_seconds}  # no gap and nothing doubled
        assert found.step_seconds == max(10, -(-step // 10) * 10) or step >= 120


def test_a_short_stretch_within_a_long_span_is_as_fine_as_it_is_kept(store: Store) -> None:
    for first in range(0, 18_000, 600):
        record(store, first, first + 600)
    keep_up(store, NOON + 8 * HOUR)
    for start, end in ((3 * HOUR, 4 * HOUR - 1), (3.5 * HOUR, 4.25 * HOUR), (0, 10)):
        assert read(store, start, end, 2).step_seconds == 2
    assert read(store, 3 * HOUR, 4 * HOUR - 1, 10).step_seconds == 10


def test_a_mean_is_that_of_all_readings_and_none_counts_twice(store: Store) -> None:
    record(store, 0, 3600)
    keep_up(store, NOON + 2 * HOUR)
    record(store, 3600, 5400)
    found = read(store, 0, 5399, 5400)
    expected = sum(used_at(second) for second in range(5400)) / 5400
    total = [mean for mean in found.mean if mean is not None]
    assert sum(total) / len(total) == pytest.approx(expected, rel=1e-3)


def test_late_readings_are_shown_at_once_and_become_part_of_the_tiers(store: Store) -> None:
    record(store, 0, 3600, every=2)
    keep_up(store, NOON + 2 * HOUR)
    record(store, 777, 778)
    assert in_one(read(store, 770, 779, 10))[1] == 79_000
    keep_up(store, NOON + 2 * HOUR)
    assert in_one(read(store, 770, 779, 10))[1] == 79_000
    keep_up(store, NOON + 3 * DAY)
    assert in_one(read(store, 770, 779, 10))[1] == 79_000
    assert in_one(read(store, 0, 3599, 3600)) == (50_000, 79_000)


def test_readings_that_come_when_only_tiers_are_left_are_added_to_them(store: Store) -> None:
    record(store, 0, 3600, every=2)
    keep_up(store, NOON + 3 * DAY)
    record(store, 777, 778)
    keep_up(store, NOON + 3 * DAY)
    found = read(store, 0, 3599, 10)
    assert in_one(found) == (50_000, 79_000)
    assert len(found.times) == 360
    assert count(store, chunks) == 0


def test_a_late_reading_of_the_same_millisecond_as_a_merged_chunk_is_not_lost(store: Store) -> None:
    record(store, 0, 60)
    keep_up(store, NOON + 2 * HOUR)
    sample = wire.Sample(seq=1, at=NOON, gpus=(wire.GpuSample(gpu="0", used_bytes=99_000),))
    store.record(Batch(entries=(Entry(node="n1", session="late", received_at=NOON, message=sample),)))
    for now in (NOON + 2 * HOUR, NOON + 3 * DAY):
        keep_up(store, now)
        assert in_one(read(store, 0, 59, 60))[1] == 99_000


def test_readings_are_not_forgotten_before_they_are_in_a_tier(store: Store) -> None:
    record(store, 0, 60)
    store.prune(NOON + 3 * DAY, 7 * DAY, readings=KEEP)
    assert count(store, chunks) == 1
    keep_up(store, NOON + 3 * DAY)
    assert count(store, chunks) == 0
    assert in_one(read(store, 0, 59, 10)) == (50_000, 50_059)


def test_an_hour_that_was_missed_is_taken_up_when_its_time_has_come(store: Store) -> None:
    record(store, 0, 60)
    with store._database.writing() as connection:
        connection.execute(delete(loose_hours))
    for _ in range(2):
        keep_up(store, NOON + 3 * DAY)
    assert count(store, chunks) == 0
    assert in_one(read(store, 0, 59, 10)) == (50_000, 50_059)


def test_a_chunk_that_is_damaged_stops_nothing_else(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    record(store, 0, 60)
    record(store, 60, 120)
    with store._database.writing() as connection:
        connection.execute(update(chunks).where(chunks.c.start_ms == NOON * 1000).values(blob=b"\2"))
    keep_up(store, NOON + 2 * HOUR)
    assert "cannot be read" in caplog.text
    assert in_one(store.series("gpu_used_bytes", GPU, NOON + 60, NOON + 119, 10)) == (50_000, 50_096)
    keep_up(store, NOON + 8 * DAY)
    assert count(store, chunks) == 0


def test_a_tier_that_is_damaged_stops_nothing_else(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    record(store, 0, 60)
    keep_up(store, NOON + 2 * HOUR)
    with store._database.writing() as connection:
        connection.execute(update(tiers).values(blob=b"\2"))
    record(store, 60, 120)
    keep_up(store, NOON + 2 * HOUR)
    assert "is begun anew" in caplog.text
    assert store.compact(NOON + 2 * HOUR) is False  # nothing is left to do


def test_what_an_older_version_merged_gets_its_tiers(store: Store) -> None:
    record(store, 0, 3600)
    keep_up(store, NOON + 2 * HOUR)
    with store._database.writing() as connection:
        start_ms, blob = connection.execute(select(chunks.c.start_ms, chunks.c.blob)).one()
        old = columns.pack(columns.unpack(start_ms, blob))  # as it was before there were tiers
        connection.execute(update(chunks).values(blob=old, folded=False))
        connection.execute(delete(tiers))
        connection.execute(insert(loose_hours), {"hour_ms": start_ms, "next_subject": 0})
    before = read(store, 0, 3599, 60)
    keep_up(store, NOON + 2 * HOUR)
    after = read(store, 0, 3599, 60)
    assert count(store, tiers) == 2
    assert (after.min, after.max) == (before.min, before.max)


def test_samples_of_which_every_reading_is_gone_are_the_greatest_of_each_ten_seconds(store: Store) -> None:
    record(store, 0, 900)
    keep_up(store, NOON + 3 * DAY)
    found = [(one.at - NOON, one.gpus[0].used_bytes) for _, one in store.recent_samples(NOON, NOON + 899)]
    assert found == [(at, max(used_at(at + second) for second in range(10))) for at in range(0, 900, 10)]


def test_several_gpus_are_read_at_once_in_the_same_buckets(store: Store) -> None:
    record(store, 0, 3600)
    record(store, 0, 1800, node="n2", gpu="3")
    keep_up(store, NOON + 2 * HOUR)
    places = [("n2", "3"), ("n1", "0"), ("n1", "9")]
    found = store.series_of_gpus("gpu_used_bytes", places, NOON, NOON + 3599, 60)
    assert [one.labels for one in found] == [{"node": node, "gpu": gpu} for node, gpu in places]
    assert [len(one.times) for one in found] == [30, 60, 0]
    assert found[1] == store.series("gpu_used_bytes", GPU, NOON, NOON + 3599, 60)
    with pytest.raises(ValueError, match="not one that is read of each GPU"):
        store.series_of_gpus("host_memory_used_bytes", places, NOON, NOON + 3599, 60)


def test_the_gpus_of_which_there_is_history_are_known_by_node_and_by_run(store: Store) -> None:
    record(store, 0, 1)
    record(store, 0, 1, node="n2", gpu="3")
    event = wire.Event(seq=5, at=NOON, run="r", body=wire.Step(step=1))
    store.record(Batch(entries=(Entry(node="n2", session="e", received_at=NOON, message=event),)))
    assert store.gpus() == [("n1", "0"), ("n2", "3")]
    assert store.gpus(node="n1") == [("n1", "0")]
    assert store.gpus(run="r") == [("n2", "3")]
    assert store.gpus(run="other") == []
