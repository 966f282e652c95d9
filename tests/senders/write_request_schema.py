"""Remote write's messages by protobuf's own library: what ours wrote by hand is held against it."""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

_TYPE = descriptor_pb2.FieldDescriptorProto
# (name, number, type, the message or None, repeated)
_MESSAGES: dict[str, list[tuple[str, int, Any, str | None, bool]]] = {
    "Label": [("name", 1, _TYPE.TYPE_STRING, None, False), ("value", 2, _TYPE.TYPE_STRING, None, False)],
    "Sample": [("value", 1, _TYPE.TYPE_DOUBLE, None, False), ("timestamp", 2, _TYPE.TYPE_INT64, None, False)],
    "TimeSeries": [
        ("labels", 1, _TYPE.TYPE_MESSAGE, "Label", True),
        ("samples", 2, _TYPE.TYPE_MESSAGE, "Sample", True),
    ],
    "WriteRequest": [("timeseries", 1, _TYPE.TYPE_MESSAGE, "TimeSeries", True)],
}


def _request_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="remote.proto", package="prometheus", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, other, repeated in fields:
            label = _TYPE.LABEL_REPEATED if repeated else _TYPE.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if other:
                added.type_name = f".prometheus.{other}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("prometheus.WriteRequest"))


_REQUEST = _request_class()


def read(body: bytes) -> list[tuple[dict[str, str], float, int]]:
    """Labels in their order, value and time of each series of a request, which has one sample of each."""
    request = _REQUEST.FromString(body)
    found = []
    for series in request.timeseries:
        (sample,) = series.samples
        found.append(({label.name: label.value for label in series.labels}, sample.value, sample.timestamp))
    return found
