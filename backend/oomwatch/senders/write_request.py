"""Prometheus' remote write 1.0: its three small messages, as protobuf has them on the wire.

WriteRequest {repeated TimeSeries timeseries = 1}, TimeSeries {repeated Label labels = 1; repeated Sample samples = 2},
Label {string name = 1; string value = 2}, Sample {double value = 1; int64 timestamp = 2, in milliseconds}.
https://prometheus.io/docs/specs/prw/remote_write_spec/
"""

import struct
from collections.abc import Iterable, Mapping

# The NaN by which Prometheus knows that a series has ended (its value/value.go): any other is only a gap.
STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))[0]
_NAME, _VALUE = 1, 2
_LABELS, _SAMPLES = 1, 2
_TIMESERIES = 1
_BYTES, _FIXED64, _VARINT = 2, 1, 0  # wire types
_SAMPLE_VALUE = bytes([1 << 3 | _FIXED64])
_SAMPLE_TIME = bytes([2 << 3 | _VARINT])


def labels_part(name: str, labels: Mapping[str, str]) -> bytes:
    """The labels of a series, sorted as the receiver demands; one that is empty does not exist."""
    told = {**{label: value for label, value in labels.items() if value}, "__name__": name}
    return b"".join(
        _field(_LABELS, _field(_NAME, label.encode()) + _field(_VALUE, told[label].encode())) for label in sorted(told)
    )


def sample_part(value: float, at_ms: int) -> bytes:
    return _field(_SAMPLES, _SAMPLE_VALUE + struct.pack("<d", value) + _SAMPLE_TIME + _varint(at_ms))


def write_request(series: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Of each series its labels and its sample."""
    return b"".join(_field(_TIMESERIES, labels + sample) for labels, sample in series)


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | _BYTES]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    told = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - what fits into seven bits
        told.append(value & 0x7F | 0x80)
        value >>= 7
    told.append(value)
    return bytes(told)
