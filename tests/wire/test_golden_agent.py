"""Golden messages of protocol version 1: what agents and servers of any later version must read the same.

To add one: add it to MESSAGES and run `python -m tests.wire.write_golden`. Never change one that has been released.
"""

import json
from pathlib import Path

import msgspec
import pytest
from tests.wire.golden_messages import MESSAGES

from oomwatch import wire

FOLDER = Path(__file__).parent / "v1"


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_written_as_it_always_was(name: str) -> None:
    assert json.loads(wire.encode(MESSAGES[name])) == json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_is_read_as_it_always_was(name: str) -> None:
    message = MESSAGES[name]
    decode = wire.decode_server if isinstance(message, wire.ServerMessage) else wire.decode_agent
    assert decode((FOLDER / f"{name}.json").read_bytes()) == message


def test_every_type_and_every_kind_of_event_has_a_golden_message() -> None:
    types = {message.__struct_config__.tag for message in MESSAGES.values()}
    assert types == wire.AGENT_TYPES | wire.SERVER_TYPES
    kinds = {message.body.__struct_config__.tag for message in MESSAGES.values() if isinstance(message, wire.Event)}
    assert kinds == wire.EVENT_KINDS


def test_a_field_of_a_later_version_is_ignored() -> None:
    assert wire.decode_agent(b'{"type":"bye","seq":7,"at":1.0,"mood":"fine"}') == wire.Bye(seq=7, at=1.0)


def test_a_type_of_a_later_version_is_told_apart_from_a_broken_frame() -> None:
    assert wire.decode_agent(b'{"type":"telemetry","seq":9}') == wire.Unknown(type="telemetry", seq=9)
    event = b'{"type":"event","seq":9,"at":1,"body":{"kind":"new_kind","x":1}}'
    assert wire.decode_agent(event) == wire.Unknown(type="event/new_kind", seq=9)
    assert wire.decode_server(b'{"type":"pause"}') == wire.Unknown(type="pause")


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"seq":1}',
        b'{"type":"sample","seq":-1,"at":1}',
        b'{"type":"sample","seq":1,"at":1,"gpus":[{"gpu":"0","used_bytes":-5}]}',
        b'{"type":"sample","seq":1,"at":1,"gpus":[{"gpu":"0","used_bytes":1e999}]}',
        b'{"type":"event","seq":1,"at":1,"body":{"kind":"step","step":NaN}}',
        b'{"type":"event","seq":1,"at":1}',
        b'{"type":"hello","protocol":1}',
    ],
)
def test_a_frame_that_lies_is_malformed_and_the_error_says_where(frame: bytes) -> None:
    with pytest.raises(wire.MalformedMessageError):
        wire.decode_agent(frame)


def test_the_error_names_the_field() -> None:
    with pytest.raises(wire.MalformedMessageError, match=r"gpus\[0\]\.used_bytes"):
        wire.decode_agent(b'{"type":"sample","seq":1,"at":1,"gpus":[{"gpu":"0","used_bytes":-5}]}')


def test_what_is_missing_is_left_out_and_not_zero() -> None:
    frame = msgspec.json.decode(wire.encode(wire.Sample(seq=1, at=2.0, gpus=(wire.GpuSample(gpu="0"),))))
    assert frame == {"type": "sample", "seq": 1, "at": 2.0, "gpus": [{"gpu": "0"}]}
