"""PURE: columns of whole numbers in few bytes, each to be had without the others.

A column is kept as what its numbers have in common (the least of them, and the greatest number that divides all of
their distances from it) and what is left of each, either as it is or as the step from the one before, whichever deflate
makes less of. What is left is laid out in planes (all lowest bytes, all second bytes, ...): a plane of noise then does
not spoil the next. Deflate may look for repetitions or only count bytes (Huffman): of noise the latter makes less.

    column   length of the rest, kind, then by its kind
    ABSENT   nothing
    CONSTANT the number
    else     least, divisor, bytes a number, then the length of each plane and the planes;
             with GAPS a plane before them in which 1 stands for a number and 0 for none

Lengths and numbers are varints of seven bits a byte, signed ones zigzag.
"""

import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress, repeat
from math import gcd
from operator import eq, sub
from typing import Any

ABSENT, CONSTANT, PLAIN, STEPS = range(4)
GAPS = 8  # a flag beside PLAIN and STEPS
NAN = float("nan")
# Neighbours repeat nearby; a window of 4 KiB is set up in a fraction of the time that zlib's default of 32 KiB takes.
_WINDOW_BITS, _MEMORY_LEVEL, _LEVEL = -12, 8, 6
_TYPECODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_LONGEST_VARINT = 10
_BIG_ENDIAN = array("H", b"\x01\x00")[0] != 1


def pack_columns(columns: Iterable[Sequence[float]]) -> bytes:
    """Columns of whole numbers, NaN where one is missing; each below 2**63."""
    out = bytearray()
    for column in columns:
        body = _packed(column)
        out += _varint(len(body)) + body
    return bytes(out)


def unpack_columns(raw: bytes, rows: int, wanted: Sequence[int]) -> Iterator[list[Any]]:
    """The columns at these places, which are in order: lists of int, or NaN where a number is missing.

    Raises IndexError, ValueError or zlib.error for what pack_columns did not write.
    """
    place, column = 0, 0
    for index in wanted:
        while True:
            length, begin = _read_varint(raw, place)
            place = begin + length
            column += 1
            if column > index:
                break
        yield _unpacked(raw[begin:place], rows)


def _packed(column: Sequence[float]) -> bytes:
    total = sum(column)
    whole = total == total  # noqa: PLR0124 - NaN is not itself, and what it is added to is NaN
    if whole and column.count(column[0]) == len(column):
        return bytes([CONSTANT]) + _signed(int(column[0]))
    present = b"" if whole else bytes(map(eq, column, column))
    if not whole and not any(present):
        return bytes([ABSENT])
    numbers = list(map(int, column if whole else compress(column, present)))
    least = min(numbers)
    distances = list(map(sub, numbers, repeat(least)))
    divisor = gcd(*distances) or 1
    gaps = b"" if whole else _with_length(_deflated(present))
    kind, planes = _left(distances if divisor == 1 else [distance // divisor for distance in distances])
    head = bytes([kind if whole else kind | GAPS]) + _signed(least) + _varint(divisor)
    return head + gaps + bytes([len(planes)]) + b"".join(map(_with_length, planes))


def _left(plain: list[int]) -> tuple[int, list[bytes]]:
    """Numbers in planes, deflated, and whether they are written as they are or as their steps."""
    ways = {PLAIN: _planes(plain), STEPS: _planes([plain[0], *_zigzag(map(sub, plain[1:], plain))])}
    counted = {kind: list(map(_counted, planes)) for kind, planes in ways.items()}
    kind = min(ways, key=lambda way: sum(map(len, counted[way])))
    return kind, [min(pair, key=len) for pair in zip(counted[kind], map(_found, ways[kind]), strict=True)]


def _zigzag(numbers: Iterable[int]) -> list[int]:
    return [2 * number if number >= 0 else -2 * number - 1 for number in numbers]


def _unzigzag(numbers: Iterable[int]) -> list[int]:
    return [-(number >> 1) - 1 if number & 1 else number >> 1 for number in numbers]


def _planes(numbers: list[int]) -> list[bytes]:
    size = next(size for size in _TYPECODES if max(numbers) < 1 << 8 * size)
    raw = _little_endian(array(_TYPECODES[size], numbers)).tobytes()
    return [raw[plane::size] for plane in range(size)]


def _little_endian(numbers: "array[int]") -> "array[int]":
    """The same, or back again, in place."""
    if _BIG_ENDIAN:
        numbers.byteswap()
    return numbers


def _unpacked(body: bytes, rows: int) -> list[Any]:
    kind = body[0] & ~GAPS
    if kind == ABSENT:
        return [NAN] * rows
    least, place = _read_signed(body, 1)
    if kind == CONSTANT:
        return [least] * rows
    divisor, place = _read_varint(body, place)
    present: bytes | None = None
    if body[0] & GAPS:
        present, place = _read_deflated(body, place)
    left = _read_planes(body, place)
    if kind == STEPS:
        left = list(accumulate(_unzigzag(left[1:]), initial=left[0]))
    numbers = [number * divisor + least for number in left]
    return _spread(numbers, present, rows)


def _spread(numbers: list[int], present: bytes | None, rows: int) -> list[Any]:
    """The numbers where they belong. ValueError: they are not as many as the rows."""
    if len(numbers) != (rows if present is None else sum(present)) or (present is not None and len(present) != rows):
        raise ValueError(f"{len(numbers)} numbers for {rows} rows")
    if present is None:
        return numbers
    each = iter(numbers)
    return [next(each) if there else NAN for there in present]


def _read_planes(body: bytes, place: int) -> list[int]:
    size, place = body[place], place + 1
    if size not in _TYPECODES:
        raise ValueError(f"numbers of {size} bytes")
    woven = bytearray()
    for plane in range(size):
        part, place = _read_deflated(body, place)
        if not woven:
            woven = bytearray(size * len(part))
        woven[plane::size] = part
    return _little_endian(array(_TYPECODES[size], bytes(woven))).tolist()


def _deflated(raw: bytes) -> bytes:
    return min(_found(raw), _counted(raw), key=len)


def _found(raw: bytes) -> bytes:
    return _compressed(raw, zlib.Z_DEFAULT_STRATEGY)


def _counted(raw: bytes) -> bytes:
    return _compressed(raw, zlib.Z_HUFFMAN_ONLY)


def _compressed(raw: bytes, strategy: int) -> bytes:
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, strategy)
    return compressor.compress(raw) + compressor.flush()


def _read_deflated(body: bytes, place: int) -> tuple[bytes, int]:
    length, begin = _read_varint(body, place)
    return zlib.decompress(body[begin : begin + length], -zlib.MAX_WBITS), begin + length


def _with_length(raw: bytes) -> bytes:
    return _varint(len(raw)) + raw


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(raw: bytes, place: int) -> tuple[int, int]:
    number = 0
    for index in range(_LONGEST_VARINT):
        byte = raw[place + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:  # noqa: PLR2004 - the last one
            return number, place + index + 1
    raise ValueError("a number that does not end")


def _signed(number: int) -> bytes:
    return _varint(_zigzag([number])[0])


def _read_signed(raw: bytes, place: int) -> tuple[int, int]:
    number, place = _read_varint(raw, place)
    return _unzigzag([number])[0], place
