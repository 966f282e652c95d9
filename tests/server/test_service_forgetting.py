"""Nodes and runs that are no more: after a day without a word, or because a person says so."""

from pathlib import Path

import pytest
from tests.server.house import FULL_AT_ONCE, START, House, hello, sample

from oomwatch import wire
from oomwatch.service.service import FORGET_SECONDS, FORGETTING_SECONDS
from oomwatch.service.sessions import StillConnectedError
from oomwatch.trace import TraceWriter, read_trace, replay


def house_whose_agent_is_gone(*, simulated: bool = False) -> House:
    """A full GPU of gpu-07, told of, and its agent disconnected."""
    house = House()
    session, agent = house.connect(hello(simulated=simulated))
    house.service.reception.take(session, sample(1, 79))
    house.flush()
    house.service.reception.leave(session, agent)
    return house


def test_a_node_that_is_gone_for_good_takes_its_alerts_along() -> None:
    house = house_whose_agent_is_gone(simulated=True)
    house.service.retire("gpu-07")
    house.flush()
    ended = house.channels.offered[-1]
    assert (ended.state, ended.reason, ended.simulated) == ("resolved", "node removed", True)
    assert ended.texts["en"].summary.startswith("GPU 0 of gpu-07")
    assert house.browsers.of(wire.Forgotten) == [wire.Forgotten(nodes=("gpu-07",))]
    assert house.service.snapshot().nodes == ()
    assert list(house.service.roster) == []
    assert not house.service.knows("gpu-07")


def test_a_node_whose_agent_is_connected_is_not_forgotten() -> None:
    house = House()
    house.connect()
    with pytest.raises(StillConnectedError, match='the agent of node "gpu-07" is connected; stop it first'):
        house.service.retire("gpu-07")
    assert [node.node for node in house.service.snapshot().nodes] == ["gpu-07"]


def test_a_forgotten_node_that_comes_back_is_shown_as_new() -> None:
    house = house_whose_agent_is_gone()
    house.wait(1)
    house.service.retire("gpu-07")
    house.connect(hello(session="s2", sent_at=house.now))
    house.wait(1)
    kinds = [type(one) for one in house.browsers.shown if isinstance(one, wire.NodeChanged | wire.Forgotten)]
    assert kinds == [wire.NodeChanged, wire.Forgotten, wire.NodeChanged]


def test_what_was_not_heard_for_a_day_is_forgotten_within_the_hour_and_the_page_is_told() -> None:
    house = House()
    session, agent = house.connect(hello(run="r"))
    house.service.reception.take(session, wire.Event(seq=1, at=START, run="r", body=wire.TorchMemory(reserved_bytes=1)))
    house.wait(1)
    house.service.reception.leave(session, agent)
    house.pass_time(FORGET_SECONDS - 60)
    house.wait(1)
    assert house.browsers.of(wire.Forgotten) == []
    house.pass_time(FORGETTING_SECONDS)
    house.wait(1)
    assert house.browsers.of(wire.Forgotten) == [wire.Forgotten(nodes=("gpu-07",), runs=("r",))]
    assert (house.service.snapshot().nodes, house.service.picture.torch_latest) == ((), {})


def test_a_recording_of_a_node_that_was_removed_replays_to_the_same(tmp_path: Path) -> None:
    house = House()
    house.service._judge.recorder = writer = TraceWriter(tmp_path / "trace.jsonl")
    session, agent = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.service.reception.leave(session, agent)
    house.wait(1)
    house.service.retire("gpu-07")
    house.wait(1)
    writer.close()
    live = [(one.id, one.state, one.at, one.reason) for one in house.channels.offered]
    replayed = replay(read_trace(tmp_path / "trace.jsonl"), FULL_AT_ONCE)
    assert [(one.id, one.state, one.at, one.reason) for one in replayed] == live
    assert [reason for *_, reason in live] == [None, "node removed"]
