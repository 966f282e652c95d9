"""Who speaks, who is alive, what is kept unspoken, and what replicas of different versions understand of each other."""

import msgspec
import pytest
from tests.server.house import hello, sample

from oomwatch import wire
from oomwatch.cluster.envelope import (
    Gone,
    MalformedEnvelopeError,
    Pulse,
    Said,
    Unstored,
    decode,
    encode,
    message_in,
    raw,
)
from oomwatch.cluster.floor import Floor
from oomwatch.cluster.members import Members, Pulsed
from oomwatch.cluster.ownership import LEADER, Doors, home_of, owner, picked
from oomwatch.cluster.unspoken import Unspoken

THREE = ("a", "b", "c")


def said(message: wire.AgentMessage, seq: int = 1) -> Said:
    return Said(
        replica="a",
        node="n1",
        session="s1",
        seq=seq,
        received_at=10.0,
        claimed_at=10.0,
        interval_seconds=1.0,
        message=raw(message),
    )


def told(
    state: wire.AlertState = "firing", at: float = 10.0, *, node: str = "n1", alert_id: str = "x1",
    change: wire.TransitionChange = "state",
) -> wire.Transition:  # fmt: skip
    return wire.Transition(
        id=alert_id, alert="full", severity="warning", state=state, at=at, started_at=5.0, labels={"node": node},
        change=change,
    )  # fmt: skip


# ---------------------------------------------------------------- who speaks


def test_the_door_of_a_node_speaks_for_it() -> None:
    doors = Doors()
    doors.learn("n1", "b", 1.0)
    assert owner("n1", doors, THREE) == "b"


def test_where_the_door_is_dead_all_pick_the_same_one_that_lives() -> None:
    doors = Doors()
    doors.learn("n1", "b", 1.0)
    assert owner("n1", doors, ("a", "c")) == picked("n1", ("c", "a")) in ("a", "c")


def test_a_death_moves_only_what_the_dead_one_was_picked_for() -> None:
    before = {f"n{number}": picked(f"n{number}", THREE) for number in range(200)}
    after = {node: picked(node, ("a", "c")) for node in before}
    assert {node for node in before if before[node] != after[node]} == {node for node in before if before[node] == "b"}
    assert all(50 < list(before.values()).count(replica) < 90 for replica in THREE)


def test_a_word_from_an_earlier_door_does_not_bring_the_node_back_to_it() -> None:
    doors = Doors()
    assert doors.learn("n1", "a", 1.0)
    assert doors.learn("n1", "b", 5.0)
    assert not doors.learn("n1", "a", 4.0)
    assert doors.of("n1") == "b"


def test_an_agent_that_went_to_a_replica_with_a_slower_clock_is_there() -> None:
    at_a, at_b = Doors(), Doors()
    said_by_a = at_a.claim("n1", "a", 12.0)  # its clock is two seconds ahead
    assert at_b.learn("n1", "a", said_by_a)
    said_by_b = at_b.claim("n1", "b", 10.5)
    assert at_a.learn("n1", "b", said_by_b)
    assert not at_b.learn("n1", "a", said_by_a)  # what was still under way
    assert at_b.claim("n1", "b", 11.0) == said_by_b
    assert at_a.of("n1") == at_b.of("n1") == "b"


def test_what_belongs_to_no_node_has_its_home_at_the_leader() -> None:
    assert home_of({"run": "gone"}, {}) == LEADER


def test_the_first_node_of_a_run_is_its_home() -> None:
    assert home_of({"run": "r"}, {"r": ("n2", "n1")}) == "n1"
    assert home_of({"run": "r", "node": "n2"}, {"r": ("n1",)}) == "n2"


def test_who_comes_to_speak_waits_and_reads_first() -> None:
    floor = Floor()
    floor.review(["n1"], lambda _: True, 10.0)
    assert "n1" not in floor
    assert floor.due(10.5) == []
    assert floor.due(11.0) == ["n1"]
    assert floor.take(["n1", "n2"]) == ["n1"]
    assert "n1" in floor
    floor.review(["n1"], lambda _: False, 12.0)
    assert "n1" not in floor


def test_who_has_stood_still_reads_again_before_it_speaks() -> None:
    floor = Floor()
    floor.review(["n1"], lambda _: True, 10.0)
    floor.take(["n1"])
    floor.yield_all()
    assert "n1" not in floor
    floor.review(["n1"], lambda _: True, 20.0)
    assert floor.due(21.0) == ["n1"]


def test_what_came_to_another_while_it_was_read_of_is_not_taken() -> None:
    floor = Floor()
    floor.review(["n1"], lambda _: True, 10.0)
    floor.review(["n1"], lambda _: False, 11.0)
    assert floor.take(["n1"]) == []


# ---------------------------------------------------------------- who is alive


def test_a_replica_is_dead_six_seconds_after_it_was_seen_last() -> None:
    members = Members("a")
    assert members.pulse("b", Pulsed(0.0, 0.0), 100.0)
    assert not members.pulse("b", Pulsed(0.0, 0.0), 101.0)
    assert members.alive(107.0) == ("a", "b")
    assert members.alive(107.1) == ("a",)


def test_either_the_database_or_nats_keeps_a_replica_alive() -> None:
    members = Members("a")
    members.pulse("b", Pulsed(0.0, 0.0), 100.0)
    assert members.stored({"a": 0.1, "b": 1.0, "c": 2.0, "d": 90.0}, 110.0) == ["b", "c"]
    assert members.alive(110.0) == THREE
    assert members.stored({"b": 3.0}, 112.0) == []


def test_nobody_dies_while_neither_can_be_asked() -> None:
    members = Members("a")
    members.pulse("b", Pulsed(0.0, 0.0), 100.0)
    members.can_see(can_see=False, now=102.0)
    assert members.alive(500.0) == ("a", "b")
    members.can_see(can_see=True, now=500.0)
    assert members.alive(503.0) == ("a", "b")
    assert members.alive(505.0) == ("a",)


def test_one_that_says_goodbye_is_gone_whatever_the_database_remembers() -> None:
    members = Members("a")
    members.pulse("b", Pulsed(0.0, 0.0), 100.0)
    members.gone("b", 100.5)
    assert members.stored({"b": 1.0}, 101.0) == []
    assert members.alive(101.0) == ("a",)
    assert members.pulse("b", Pulsed(200.0, 0.0), 102.0)


def test_one_that_was_started_again_under_its_name_is_new() -> None:
    members = Members("a")
    members.pulse("b", Pulsed(0.0, 0.0), 100.0)
    assert members.pulse("b", Pulsed(50.0, 0.0), 101.0)


def test_of_two_that_say_they_lead_the_later_is_believed() -> None:
    members = Members("a")
    members.pulse("b", Pulsed(0.0, 0.0, leads=50.0), 100.0)
    members.pulse("c", Pulsed(0.0, 0.0, leads=90.0), 100.0)
    assert members.leader_but_me(101.0) == ("c", 90.0)
    assert members.leader_but_me(104.0) is None


def test_a_clock_that_is_off_is_told() -> None:
    members = Members("a")
    members.pulse("b", Pulsed(0.0, -3.5), 100.0)
    members.pulse("c", Pulsed(0.0, 0.4), 100.0)
    assert list(members.clocks_off(101.0)) == [("b", -3.5)]


# ---------------------------------------------------------------- what is kept


def test_what_the_speaker_has_said_is_kept_no_longer() -> None:
    unspoken = Unspoken()
    unspoken.put(told())
    unspoken.put(told("resolved", 20.0))
    unspoken.hear(told(alert_id="x2", at=10.1))
    assert [one.state for one in unspoken.take(lambda _: True)] == ["resolved"]


def test_the_end_that_the_speaker_tells_ends_all_that_was_kept() -> None:
    unspoken = Unspoken()
    unspoken.put(told())
    unspoken.put(told("firing", 12.0, change="severity"))
    unspoken.hear(told("resolved", 20.0))
    assert len(unspoken) == 0


def test_an_alert_that_fires_again_outlives_the_word_of_its_earlier_end() -> None:
    unspoken = Unspoken()
    unspoken.put(told("firing", 30.0, alert_id="again"))
    unspoken.hear(told("resolved", 20.0))
    unspoken.hear(told("firing", 10.0))
    assert [one.id for one in unspoken.take(lambda _: True)] == ["again"]


def test_what_became_ours_and_was_kept_for_a_while_is_noticed() -> None:
    unspoken = Unspoken()
    unspoken.put(told(node="n1", at=10.0))
    assert unspoken.has_any(lambda _: True, before=11.0)
    assert not unspoken.has_any(lambda _: True, before=9.0)
    assert not unspoken.has_any(lambda _: False, before=11.0)


def test_only_what_is_ours_is_taken_in_the_order_of_time() -> None:
    unspoken = Unspoken()
    unspoken.put(told(node="n2", at=12.0))
    unspoken.put(told(node="n1", at=11.0, alert_id="x2"))
    unspoken.put(told(node="n3", at=10.0, alert_id="x3"))
    ours = unspoken.take(lambda one: one.labels["node"] != "n3")
    assert [one.labels["node"] for one in ours] == ["n1", "n2"]
    assert unspoken.ids() == {"x3"}


def test_what_came_and_went_and_nobody_spoke_of_is_dropped_after_a_minute() -> None:
    unspoken = Unspoken()
    unspoken.put(told())
    unspoken.put(told("resolved", 20.0))
    unspoken.expire(80.0)
    assert len(unspoken) == 2
    unspoken.expire(80.5)
    assert len(unspoken) == 0


# ---------------------------------------------------------------- envelopes


@pytest.mark.parametrize("message", [hello("n1"), sample(7, 79.0), wire.Bye(seq=8, at=3.0)])
def test_what_an_agent_said_arrives_as_it_was(message: wire.AgentMessage) -> None:
    arrived = decode(encode(said(message)))
    assert isinstance(arrived, Said)
    assert message_in(arrived) == message


def test_transitions_travel_whole() -> None:
    envelope = Unstored(replica="a", transitions=(told(),))
    assert decode(encode(envelope)) == envelope


def _changed(envelope: msgspec.Struct, **changes: object) -> bytes:
    fields = msgspec.msgpack.decode(encode(envelope))  # type: ignore[arg-type]
    return msgspec.msgpack.encode({**fields, **changes})


def test_fields_of_a_newer_replica_are_passed_over() -> None:
    arrived = decode(_changed(Pulse(replica="b", sent_at=1.0, started_at=0.5), mood={"good": [1, 2]}))
    assert arrived == Pulse(replica="b", sent_at=1.0, started_at=0.5)
    newer = msgspec.msgpack.decode(encode(said(sample(7, 79.0))))
    newer["message"]["weather"] = "fine"
    newer["urgency"] = 3
    envelope = decode(msgspec.msgpack.encode(newer))
    assert isinstance(envelope, Said)
    assert message_in(envelope) == sample(7, 79.0)


def test_fields_that_an_older_replica_does_not_send_have_their_defaults() -> None:
    older = {"type": "pulse", "replica": "b", "sent_at": 1.0, "started_at": 0.5}
    assert decode(msgspec.msgpack.encode(older)) == Pulse(replica="b", sent_at=1.0, started_at=0.5)


def test_types_of_a_newer_replica_are_none() -> None:
    assert decode(_changed(Gone(replica="b"), type="sung")) is None
    newer = msgspec.msgpack.decode(encode(said(sample(7, 79.0))))
    newer["message"]["type"] = "smell"
    envelope = decode(msgspec.msgpack.encode(newer))
    assert isinstance(envelope, Said)
    assert message_in(envelope) is None


def test_a_kind_of_event_of_a_newer_replica_is_none() -> None:
    event = wire.Event(seq=1, at=2.0, body=wire.DiskFull(reporter="raylet"), run="r")
    newer = msgspec.msgpack.decode(encode(said(event)))
    newer["message"]["body"]["kind"] = "coffee_empty"
    envelope = decode(msgspec.msgpack.encode(newer))
    assert isinstance(envelope, Said)
    assert message_in(envelope) is None


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x93\x01\x02\x03", msgspec.msgpack.encode({"type": "pulse"})])
def test_bytes_that_are_no_envelope_are_called_so(payload: bytes) -> None:
    with pytest.raises(MalformedEnvelopeError):
        decode(payload)
