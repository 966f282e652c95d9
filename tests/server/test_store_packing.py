"""Columns of whole numbers come back exactly, each without the others, and take few bytes."""

import math
import random
import zlib
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomwatch.store.packing import pack_columns, unpack_columns

MISSING = math.nan
numbers = st.one_of(
    st.integers(-(2**53), 2**53),
    st.integers(0, 300),
    st.integers(0, 80 * 512).map(lambda blocks: blocks * 2**21),
)
wholes = numbers.map(float)
tables = st.integers(1, 40).flatmap(
    lambda rows: st.lists(
        st.lists(wholes | st.just(MISSING), min_size=rows, max_size=rows)
        | st.lists(wholes, min_size=rows, max_size=rows)
        | wholes.map(lambda number: [number] * rows),
        min_size=1,
        max_size=6,
    )
)


def same(found: list[float], put: list[float]) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(found, put, strict=True))  # noqa: PLR0124


@given(tables)
def test_every_number_comes_back_exactly_and_missing_stays_missing(table: list[list[float]]) -> None:
    packed = pack_columns([array("d", column) for column in table])
    found = list(unpack_columns(packed, len(table[0]), range(len(table))))
    assert all(same(*pair) for pair in zip(found, table, strict=True))


@given(tables, st.data())
def test_any_columns_can_be_read_without_the_others(table: list[list[float]], data: st.DataObject) -> None:
    wanted = sorted(data.draw(st.sets(st.sampled_from(range(len(table))))))
    found = list(unpack_columns(pack_columns(table), len(table[0]), wanted))
    assert all(same(*pair) for pair in zip(found, [table[place] for place in wanted], strict=True))


def test_what_stands_still_takes_a_few_bytes_however_long_it_is() -> None:
    assert len(pack_columns([[71_400 * 2**20] * 3600, [MISSING] * 3600])) < 12


def test_noise_takes_hardly_more_than_there_is_in_it() -> None:
    noise = random.Random(3)
    column = [noise.choice((970, 980, 990, 1000)) for _ in range(3600)]
    assert len(pack_columns([column])) < 3600 * 2 / 8 * 1.15  # two bits each


def test_a_sawtooth_of_whole_blocks_takes_less_than_half_a_byte_a_value() -> None:
    noise = random.Random(4)
    blocks = [(29_000 if second % 97 >= 40 else 35_700) + (noise.random() < 0.2) for second in range(3600)]
    assert len(pack_columns([[2**21 * number for number in blocks]])) < 3600 / 2


@pytest.mark.parametrize("cut", range(1, 12))
def test_what_was_cut_short_is_refused(cut: int) -> None:
    packed = pack_columns([[1.0, 5.0, MISSING, 3000.0], [7.0] * 4])
    with pytest.raises((IndexError, ValueError, zlib.error)):
        list(unpack_columns(packed[:-cut], 4, [0, 1]))


def test_columns_of_another_length_than_was_said_are_refused() -> None:
    with pytest.raises(ValueError, match="3 numbers for 4 rows"):
        list(unpack_columns(pack_columns([[1.0, 2.0, 5.0]]), 4, [0]))
