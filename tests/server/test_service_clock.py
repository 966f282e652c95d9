"""Clocks that are wrong, are set, or stand still: nobody's silence, and nothing from the future."""

from pathlib import Path

import pytest
from tests.server.house import START, House, hello, sample

from oomwatch import wire
from oomwatch.rulefile import parse_rules
from oomwatch.service.timepiece import steady_clock
from oomwatch.trace import TraceWriter, read_trace, replay

SILENT = parse_rules(
    """
rules:
  - alert: agent_silent
    when: {kind: threshold, metric: agent_silent_seconds, above: 30s}
    summary: "{node} is silent"
"""
).rules
FAR = 1e12


def said(house: House) -> list[tuple[str, str]]:
    return [(one.alert, one.state) for one in house.channels.offered]


# ---------------------------------------------------------------- an agent's clock


@pytest.mark.parametrize("at", [START + 1.5, START + 5000, FAR])
def test_no_message_is_from_the_future(at: float) -> None:
    house = House()
    session, agent = house.connect()
    house.service.reception.take(session, sample(1, 79, at=at))
    house.service.reception.take(session, wire.Event(seq=2, at=at, run="r", body=wire.Step(step=1)))
    house.service.reception.take(session, wire.Bye(seq=3, at=at))
    house.flush()
    kept = [one.at for one in house.shelf.messages if not isinstance(one, wire.Hello)]
    assert kept == [START] * 3
    assert agent.acknowledged == [3]
    fleet = house.service.engine.fleet
    assert (fleet.nodes["gpu-07"].gpus["0"].at, fleet.runs["r"].last_seen_at) == (START, START)


def test_after_a_message_from_the_far_future_the_next_ones_count(tmp_path: Path) -> None:
    house = House()
    house.service._judge.recorder = writer = TraceWriter(tmp_path / "trace.jsonl")
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 10, at=FAR))
    house.wait(1)
    house.service.reception.take(session, sample(2, 79, at=house.now))
    house.wait(1)
    writer.close()
    assert said(house) == [("full", "firing")]
    (tick,) = [tick for tick in house.browsers.of(wire.Tick) if tick.nodes][-1:]
    assert tick.nodes[0].used_mib == (79 * 1024,)
    times = [line.message.at for line in read_trace(tmp_path / "trace.jsonl") if isinstance(line.message, wire.Sample)]
    assert max(times) <= house.now


def test_every_hello_measures_the_agents_clock_anew() -> None:
    house = House()
    session, _ = house.connect()
    house.pass_time(10)
    house.service.reception.take(session, hello(sent_at=house.now - 3600))  # the agent's clock was set back
    house.service.reception.take(session, sample(1, 79, at=house.now - 3600))
    house.flush()
    assert session.skew_seconds == -3600
    assert house.shelf.messages[-1] == sample(1, 79, at=house.now)


# ---------------------------------------------------------------- our own clock


@pytest.mark.parametrize("by", [-3600.0, 3600.0])
def test_a_clock_that_is_set_makes_nobody_silent_and_hides_no_silence(by: float) -> None:
    house = House(SILENT)
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 10, at=house.now))
    house.wait(5)
    house.set_by = by
    house.wait(24)
    assert said(house) == []
    house.wait(4)
    assert said(house) == [("agent_silent", "firing")]


@pytest.mark.parametrize("by", [-3600.0, 3600.0])
def test_agents_times_fit_a_clock_that_was_set(by: float) -> None:
    house = House()
    session, _ = house.connect()
    house.wait(1)
    house.set_by = by
    house.service.reception.take(session, sample(1, 79, at=house.now))  # by the agent's clock, which nobody has set
    house.flush()
    assert house.shelf.messages[-1] == sample(1, 79, at=house.now + by)
    assert session.skew_seconds == -by
    house.set_by = 0.0
    house.service.beat()
    assert session.skew_seconds == 0


def test_a_clock_that_was_set_back_delays_no_number_on_the_page() -> None:
    house = House(SILENT)
    house.connect()
    house.wait(35)
    house.set_by = -3600
    house.wait(12)
    told = [message.alert.value or 0 for message in house.browsers.of(wire.AlertChanged)]
    assert max(told) >= 40


def test_an_old_connection_still_gives_way_after_the_clock_was_set_back() -> None:
    house = House()
    _, old = house.connect()
    house.wait(1)
    house.set_by = -3600
    house.wait(8)
    house.connect(hello(session="s2", sent_at=house.now - 3600))
    assert old.dismissed == [None]


# ---------------------------------------------------------------- a pause


def test_the_time_in_which_the_server_stood_still_is_nobodys_silence() -> None:
    house = House(SILENT)
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 10, at=house.now))
    house.wait(5)
    house.now += 300
    house.wait(24)
    assert said(house) == []
    house.wait(5)
    assert said(house) == [("agent_silent", "firing")]


def test_after_a_pause_what_queued_up_is_taken_in_before_time_is_judged() -> None:
    house = House(SILENT)
    session, _ = house.connect()
    house.wait(29)
    house.now += 10
    house.service.beat()
    assert house.service.engine.episodes() == []
    house.service.reception.take(session, sample(1, 10, at=house.now - 5))
    house.wait(20)
    assert said(house) == []


def test_a_node_that_is_heard_first_after_a_pause_is_not_heard_from_the_future() -> None:
    """Else its next silence would go unnoticed for as long as the pause was."""
    house = House(SILENT)
    session, _ = house.connect()
    house.now += 8 * 3600
    house.service.reception.take(session, sample(1, 10, at=house.now))
    house.wait(1)
    assert house.service.engine.fleet.nodes["gpu-07"].heard_at <= house.now
    house.wait(33)
    assert said(house) == [("agent_silent", "firing")]


def test_a_server_that_is_always_late_judges_all_the_same() -> None:
    house = House(SILENT)
    house.connect()
    for _ in range(3):
        house.now += 4
        house.service.beat()
    assert house.service.seconds_since_beat() <= 4


def test_a_recording_of_pauses_and_of_a_clock_that_was_set_replays_to_the_same(tmp_path: Path) -> None:
    house = House(SILENT)
    house.service._judge.recorder = writer = TraceWriter(tmp_path / "trace.jsonl")
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 10, at=house.now))
    house.wait(20)
    house.now += 500
    house.wait(3)
    house.set_by = -900.0
    house.wait(20)
    writer.close()
    live = [(one.id, one.state, one.at) for one in house.channels.offered]
    assert [state for _, state, _ in live] == ["firing"]
    assert [(one.id, one.state, one.at) for one in replay(read_trace(tmp_path / "trace.jsonl"), SILENT)] == live


def test_the_steady_clock_runs_forward() -> None:
    before = steady_clock()
    assert steady_clock() >= before
