"""Recording what the engine was given, and reading it back."""

from pathlib import Path

import pytest
from tests.server.house import FULL_AT_ONCE, START, House, hello, sample
from tests.server.running_server import AgentClient, serving, settings_in, until

from oomwatch import wire
from oomwatch.trace import Line, TraceError, TraceWriter, read_trace, replay


def test_a_recording_replays_to_what_the_live_server_said(tmp_path: Path) -> None:
    house = House()
    writer = TraceWriter(tmp_path / "trace.jsonl")
    house.service._judge.recorder = writer
    session, _ = house.connect()
    for second in range(40):
        house.now += 1
        house.service.reception.take(session, sample(second + 1, 79 if second < 10 else 10, at=house.now))
        house.service.beat()
        house.flush()
    writer.close()
    live = [(one.id, one.state, one.at, one.value) for one in house.channels.offered]
    replayed = replay(read_trace(tmp_path / "trace.jsonl"), FULL_AT_ONCE)
    assert [(one.id, one.state, one.at, one.value) for one in replayed] == live
    assert [state for _, state, _, _ in live] == ["firing", "resolved"]


def test_a_recording_over_a_restart_goes_on_with_the_same_alert(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, record=tmp_path / "trace.jsonl")
    with serving(settings) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=server.parts.service.clock()))
        agent.say(sample(1, 79, server.parts.service.clock()))
        agent.hear_ack_of(1)
    with serving(settings) as server:
        ended = until("the alert of before", lambda: server.get("/api/v1/alerts").json())
    lines = list(read_trace(tmp_path / "trace.jsonl"))
    assert any(line.recalled for line in lines)
    (restored,) = [line.restored for line in lines if line.restored]
    assert [transition.id for transition in restored] == [ended[0]["id"]]
    assert next(replay(lines, FULL_AT_ONCE)).id == ended[0]["id"]


def test_a_line_that_was_cut_short_is_the_end_of_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b'{"advance":5.0}\n{"advance":6')
    assert list(read_trace(path)) == [Line(advance=5.0)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"advance":5.0}\n{"advance":"soon"}\n', ":2: Expected `float"),
        ("{}\n", ':1: a line has "advance"'),
        ('{"now":5.0,"node":"n"}\n', ':1: a line has "advance"'),
        ("no json\n", ":1: JSON is malformed"),
    ],
)
def test_a_recording_with_a_mistake_names_its_line(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(TraceError) as mistake:
        list(read_trace(path))
    assert why in str(mistake.value)


def test_a_recording_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nothing\.jsonl: No such file"):
        list(read_trace(tmp_path / "nothing.jsonl"))


def test_a_full_disk_ends_the_recording_and_nothing_else() -> None:
    writer = TraceWriter(Path("/dev/full"))
    writer.observe(sample(1, 40), "gpu-07", START)
    writer.advance(START)
    writer.observe(wire.Bye(seq=2, at=START), "gpu-07", START)
    writer.close()
