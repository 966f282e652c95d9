"""Golden messages of protocol version 1 to browsers: what the pages of any later version must read the same."""

import json

import pytest
from tests.wire.golden_live_messages import FOLDER, LIVE_MESSAGES

from oomwatch import wire


@pytest.mark.parametrize("name", LIVE_MESSAGES)
def test_a_live_message_is_written_as_it_always_was(name: str) -> None:
    golden = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert json.loads(wire.encode(LIVE_MESSAGES[name])) == golden


def test_every_live_type_has_a_golden_message() -> None:
    assert {message.__struct_config__.tag for message in LIVE_MESSAGES.values()} == wire.LIVE_TYPES


def test_every_golden_live_message_is_one_of_ours() -> None:
    assert {path.stem for path in FOLDER.glob("live-*.json")} == set(LIVE_MESSAGES)
