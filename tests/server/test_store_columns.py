"""Readings survive the way into compressed columns and back."""

import random
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch import wire
from oomwatch.store import columns
from oomwatch.store.columns import GPU_FIELDS, HOST_FIELDS, Columns, ColumnsError

NOON_MS = 1_700_000_000_000
PAGE = 65536
OLD_BLOB = "010602000000480d6378c1c0cc80061e08787882840e1ca8af07d1bc075cc0348c0fa201e7ca0b77"

_gpu = partial(wire.GpuSample, gpu="0")
gpu_readings = st.builds(
    _gpu,
    status=st.sampled_from(("ok", "no_data", "lost")),
    used_bytes=st.none() | st.integers(0, 192 * 2**30 // PAGE).map(lambda pages: pages * PAGE),
    utilization_ratio=st.none() | st.integers(0, 100).map(lambda percent: percent / 100),
    power_watts=st.none() | st.integers(0, 1500).map(float),
    temperature_celsius=st.none() | st.integers(-10, 120).map(float),
    ecc_uncorrected_total=st.none() | st.integers(0, 2**24),
)
gaps_ms = st.integers(0, 60_000)


def through(rows: list[tuple[int, wire.GpuSample]]) -> list[tuple[int, wire.GpuSample]]:
    packed = columns.from_readings(GPU_FIELDS, rows)
    again = columns.unpack(packed.at_ms[0], columns.pack(packed))
    return list(columns.to_readings(GPU_FIELDS, again, _gpu))


@given(st.lists(st.tuples(gaps_ms, gpu_readings), min_size=1, max_size=30))
def test_every_reading_comes_back_as_it_was_and_missing_stays_missing(steps: list[tuple[int, wire.GpuSample]]) -> None:
    at_ms, rows = NOON_MS, []
    for gap_ms, reading in steps:
        at_ms += gap_ms
        rows.append((at_ms, reading))
    assert through(rows) == rows


def test_rows_are_put_in_the_order_of_their_time() -> None:
    late, early = (NOON_MS + 2000, _gpu(used_bytes=2)), (NOON_MS, _gpu(used_bytes=1))
    assert through([late, early]) == [early, late]


def test_a_host_reading_with_nothing_in_it_is_all_missing() -> None:
    packed = columns.from_readings(HOST_FIELDS, [(NOON_MS, wire.HostSample())])
    again = columns.unpack(NOON_MS, columns.pack(packed))
    assert list(columns.to_readings(HOST_FIELDS, again, wire.HostSample)) == [(NOON_MS, wire.HostSample())]


def test_memory_beyond_what_float32_counts_is_right_to_one_part_in_16_million() -> None:
    odd = 3 * 2**40 + 12345
    [(_, back)] = through([(NOON_MS, _gpu(used_bytes=odd))])
    assert back.used_bytes is not None
    assert back.used_bytes == pytest.approx(odd, rel=2**-24)


def test_power_is_kept_in_whole_watts() -> None:
    [(_, much), (_, little)] = through([(NOON_MS, _gpu(power_watts=699.62)), (NOON_MS + 1, _gpu(power_watts=70.4))])
    assert (much.power_watts, little.power_watts) == (700.0, 70.0)


def test_blobs_of_the_version_before_are_read() -> None:
    """The same two readings, as they were written when each column had planes of its own."""
    told = [(NOON_MS, _gpu(used_bytes=7 * PAGE, power_watts=70.5)), (NOON_MS + 1000, _gpu(used_bytes=9 * PAGE))]
    blob = bytes.fromhex(OLD_BLOB)
    assert list(columns.to_readings(GPU_FIELDS, columns.unpack(NOON_MS, blob), _gpu)) == told
    alone = columns.unpack(NOON_MS, blob, only=[1])
    assert [list(column) for column in alone.values] == [[7.0 * PAGE, 9.0 * PAGE]]


def test_one_column_can_be_read_alone() -> None:
    packed = columns.from_readings(GPU_FIELDS, [(NOON_MS, _gpu(used_bytes=7)), (NOON_MS + 1000, _gpu(used_bytes=9))])
    alone = columns.unpack(NOON_MS, columns.pack(packed), only=[columns.field_index(GPU_FIELDS, "used_bytes")])
    assert [list(column) for column in alone.values] == [[7.0, 9.0]]
    assert list(alone.at_ms) == [NOON_MS, NOON_MS + 1000]


def test_a_blob_from_before_a_field_was_added_reads_as_missing_there() -> None:
    newer = columns.from_readings(GPU_FIELDS, [(NOON_MS, _gpu(used_bytes=7, ecc_uncorrected_total=1))])
    older = Columns(newer.at_ms, newer.values[:2])
    again = columns.unpack(NOON_MS, columns.pack(older))
    assert list(columns.to_readings(GPU_FIELDS, again, _gpu)) == [(NOON_MS, _gpu(used_bytes=7))]
    assert columns.unpack(NOON_MS, columns.pack(older), only=[5]).values == ()
    both = columns.merged([again, newer])
    assert [reading.ecc_uncorrected_total for _, reading in columns.to_readings(GPU_FIELDS, both, _gpu)] == [None, 1]


def test_merging_sorts_parts_that_overlap() -> None:
    parts = [
        columns.from_readings(GPU_FIELDS, [(NOON_MS + at, _gpu(used_bytes=at)) for at in times])
        for times in ([0, 2000], [1000, 3000])
    ]
    assert [reading.used_bytes for _, reading in columns.to_readings(GPU_FIELDS, columns.merged(parts), _gpu)] == [
        0, 1000, 2000, 3000,
    ]  # fmt: skip


def test_since_leaves_out_what_is_older() -> None:
    whole = columns.from_readings(GPU_FIELDS, [(NOON_MS + at, _gpu(used_bytes=at)) for at in (0, 1000, 2000)])
    assert list(columns.between(whole, NOON_MS + 1000, NOON_MS + 2000).at_ms) == [NOON_MS + 1000, NOON_MS + 2000]
    assert list(columns.between(whole, NOON_MS - 1, NOON_MS + 1999).at_ms) == [NOON_MS, NOON_MS + 1000]


def test_sixty_noisy_readings_take_less_than_a_byte_and_a_half_a_value() -> None:
    noise = random.Random(1)  # the same noise at each run
    rows = [
        (
            NOON_MS + 1000 * second + noise.randrange(4),
            _gpu(
                used_bytes=(58_000 + 500 * (second // 20)) * 2**20,
                utilization_ratio=noise.choice((0.97, 0.98, 0.99, 1.0)),
                power_watts=round(noise.gauss(640, 9), 3),
                temperature_celsius=61.0 + noise.randrange(2),
                ecc_uncorrected_total=0,
            ),
        )
        for second in range(60)
    ]
    blob = columns.pack(columns.from_readings(GPU_FIELDS, rows))
    assert len(blob) / (60 * len(GPU_FIELDS)) < 1.5


@pytest.mark.parametrize("spoil", [lambda blob: blob[:-5], lambda blob: blob[:3], lambda blob: b"\x09" + blob[1:]])
def test_a_damaged_blob_is_refused(spoil: Callable[[bytes], bytes]) -> None:
    blob = columns.pack(columns.from_readings(GPU_FIELDS, [(NOON_MS, _gpu(used_bytes=1))]))
    with pytest.raises(ColumnsError, match="chunk of readings"):
        columns.unpack(NOON_MS, spoil(blob))
