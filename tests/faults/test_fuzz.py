"""Anything at all, read by everything that reads: it is understood, or refused with a sentence, and breaks nothing.

    OOMWATCH_FUZZ=1000000 python -m pytest tests/faults/test_fuzz.py        # or: make fuzz

By default a few cases, the same at every run; with a number so many of each, of which no two runs are the same.
"""

import os
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.doctor.test_hostile import PIECES
from tests.fuzz.odd_json import spots_of
from tests.fuzz.targets import assert_told, rule_file
from tests.server.house import START, House, hello
from tests.server.test_metrics_reference import told_of

from oomwatch import wire
from oomwatch.doctor.read.reading import Source
from oomwatch.metrics.page import encode
from oomwatch_agent.logs.reader import LineReader, Recognised
from oomwatch_agent.logs.splitter import LineSplitter
from oomwatch_agent.logs.table import PATTERNS
from oomwatch_agent.logs.trainers import TRAINERS

CASES = int(os.environ.get("OOMWATCH_FUZZ", "60"))
ROOT = Path(__file__).resolve().parents[2]
GOLDEN = sorted(one.read_bytes().strip() for one in (ROOT / "tests/wire/v1").glob("*.json"))
RULES = (ROOT / "alerts.yaml").read_text(encoding="utf-8")

fuzzing = settings(
    max_examples=CASES,
    derandomize="OOMWATCH_FUZZ" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

ODD = [
    "null",
    "-1",
    "1e308",
    "1e999",
    "0",
    "9007199254740993",
    '""',
    "[]",
    "{}",
    "true",
    '"\\u0000"',
    "[[]]",
    '"' + "x" * 300 + '"',
]


def damaged(whole: bytes, changes: list[tuple[int, bytes]]) -> bytes:
    """With other bytes at some places."""
    letters = bytearray(whole)
    for at, put in changes:
        letters[at % len(letters) : at % len(letters) + 1] = put
    return bytes(letters)


BYTES = st.lists(
    st.tuples(st.integers(0, 5000), st.one_of(st.binary(max_size=3), st.sampled_from([one.encode() for one in ODD]))),
    max_size=6,
)
FRAMES = st.one_of(st.binary(max_size=200), st.builds(damaged, st.sampled_from(GOLDEN), BYTES))


@fuzzing
@given(FRAMES)
def test_a_frame_is_a_message_or_malformed_and_a_message_is_the_same_when_it_is_sent_on(frame: bytes) -> None:
    for decode in (wire.decode_agent, wire.decode_server):
        try:
            message = decode(frame)
        except wire.MalformedMessageError:
            continue
        if not isinstance(message, wire.Unknown):
            assert decode(wire.encode(message)) == message


def _with_odd_values(whole: bytes, places: list[tuple[int, object]]) -> wire.AgentMessage | None:
    """A message of ours with some values in place of others; None where that is none any more."""
    tree = msgspec.json.decode(whole)
    for at, value in places:
        spots = list(spots_of(tree))
        if spots:
            holder, key = spots[at % len(spots)]
            holder[key] = value
    try:
        message = wire.decode_agent(msgspec.json.encode(tree))
    except (wire.MalformedMessageError, msgspec.MsgspecError):
        return None
    return None if isinstance(message, wire.Unknown) else message


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(0, 2**53), st.integers(-3, 3), st.floats(0, 1e15), st.floats(0, 1),
    st.text(max_size=20), st.sampled_from(["0", "gpu-07", "r", "actor", "ok", "lost", "rollout", "", "192.0.2.7"]),
    st.just([]), st.just({}),
)  # fmt: skip
MESSAGES = st.builds(
    _with_odd_values, st.sampled_from(GOLDEN), st.lists(st.tuples(st.integers(0, 500), VALUES), max_size=5)
)


@fuzzing
@given(st.lists(MESSAGES, min_size=1, max_size=6))
def test_whatever_is_a_message_is_judged_shown_and_exported_without_a_defect(
    told: list[wire.AgentMessage | None],
) -> None:
    house = House()
    session, _ = house.connect(hello(run="r"))
    for seq, message in enumerate((one for one in told if one is not None), start=1):
        if isinstance(message, wire.Hello):
            message = msgspec.structs.replace(message, node="gpu-07", session="s1")  # noqa: PLW2901
        else:
            message = msgspec.structs.replace(message, seq=seq, at=START + seq)  # noqa: PLW2901
        house.now += 1
        house.service.reception.take(session, message)
        house.service.beat()
    assert msgspec.json.decode(wire.encode(house.service.snapshot()))
    assert encode(told_of(house).collect()).content
    assert house.service.defects.total == 0


LOG_PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"\n", b"\r", b"\0", b"\x1b[36m", b"(a pid=1) ", b"step:1 - ", b"{'actor_rollout_ref': {"]),
    st.sampled_from([pattern.example.encode() + b"\n" for pattern in PATTERNS]),
    st.sampled_from([line.encode() + b"\n" for trainer in TRAINERS for line in trainer.example]),
    st.sampled_from([one.encode() for one in ODD]),
)


@fuzzing
@given(st.lists(LOG_PIECES, max_size=20), st.integers(1, 300))
def test_a_log_gives_nothing_or_what_the_wire_takes(pieces: list[bytes], block_bytes: int) -> None:
    content, reader, splitter = b"".join(pieces), LineReader(), LineSplitter()
    found: list[Recognised] = []
    for at in range(0, len(content), block_bytes):
        found += reader.read(splitter.feed(content[at : at + block_bytes]))
    for one in [*found, *reader.read(splitter.flush()), *reader.end()]:
        event = wire.Event(seq=1, at=1.0, body=one.body, run=one.run, origin=one.origin("x.log"))
        assert wire.decode_agent(wire.encode(event)) == event


RULE_WORDS = [
    "rules:", "\n", "  - alert: a", "    when: ", "{kind: threshold", "}", "&a ", "*a", "<<: ", "!!int ", "notify:",
    "  channels: ", "- ", "? ", ": ", "'", '"', "|", ">", "#", "[", "]",
]  # fmt: skip
RULE_LINES = RULES.splitlines()
RULE_FILES = st.one_of(
    st.text(max_size=100),
    st.builds(lambda changes: damaged(RULES.encode(), changes).decode(errors="replace"), BYTES),
    st.lists(st.sampled_from(RULE_LINES), max_size=12).map("\n".join),
    st.lists(st.sampled_from(RULE_WORDS), max_size=30).map("".join),
)


@fuzzing
@given(RULE_FILES)
def test_a_rule_file_is_read_or_refused_with_places(text: str) -> None:
    rule_file(text.encode(errors="replace"))


@fuzzing
@given(
    st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=40).map("".join),
    st.lists(st.text(max_size=10), max_size=3),
)
def test_a_configuration_is_read_or_refused_with_words(text: str, overrides: list[str]) -> None:
    assert_told([Source("-", text)], overrides)
