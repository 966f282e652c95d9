"""Three servers that judge the same: one says it, all know it; nothing is lost or doubled when the speaker changes."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.cluster.trio import Trio, Unreachable
from tests.server.house import FULL_AFTER_A_WHILE, FULL_AT_ONCE, GIB, Agent, hello, sample

from oomwatch import wire
from oomwatch.core.engine import Engine
from oomwatch.service.sessions import RefusalError, StillConnectedError
from oomwatch.tasks import end
from oomwatch.trace import TraceWriter, give, read_trace

FULL, FREE = 79.0, 10.0


def cut(trio: Trio, *, is_connected: bool) -> None:
    for server in trio.servers.values():
        server.line.is_connected = is_connected
        server.line.problem = None if is_connected else "cut"
        if is_connected:
            server.replica.hearing.on_connect()


def test_what_is_said_to_one_is_known_to_all_and_stored_once() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    for name in "abc":
        assert trio[name].service.engine.fleet.nodes["n1"].gpus["0"].used_bytes is not None
        assert [node.state for node in trio[name].service.picture.nodes(trio.now)] == ["live"]
    assert len(trio.truth.messages) == 4  # the hello among them


def test_an_alert_is_said_by_the_door_and_seen_everywhere_under_one_id() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "b")
    trio.step(4, lambda: trio.say(session, FREE, "b"))
    trio.step(2, lambda: trio.say(session, FULL, "b"))
    assert trio.stored() == [("n1", "firing")]
    alert = trio.truth.transitions[0].id
    assert [trio[name].firing() for name in "abc"] == [{"n1": alert}] * 3
    trio.step(14, lambda: trio.say(session, FREE, "b"))
    assert trio.stored() == [("n1", "firing"), ("n1", "resolved")]
    assert [trio[name].firing() for name in "abc"] == [{}] * 3
    assert [trio.told(name) for name in "abc"] == [[("n1", "firing"), ("n1", "resolved")]] * 3


def test_what_the_door_did_not_come_to_say_is_said_by_another_once() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    trio.say(session, FULL, "a")
    trio.arrive()  # the others have heard the reading
    trio.kill("a")
    trio.step(5)
    assert trio.stored() == []  # nobody is taken for dead so soon
    trio.step(6)
    assert trio.stored() == [("n1", "firing")]
    assert trio["b"].firing() == trio["c"].firing() == {"n1": trio.truth.transitions[0].id}


def test_what_is_found_while_an_agent_goes_to_another_and_back_within_a_second_is_said_once() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    away, _ = trio.connect("n1", "b")
    trio.say(away, FULL, "b")
    trio.arrive()
    back, _ = trio.connect("n1", "a")
    trio.step(6, lambda: trio.say(back, FULL, "a"))
    assert trio.stored() == [("n1", "firing")]
    assert [trio[name].firing() for name in "abc"] == [{"n1": trio.truth.transitions[0].id}] * 3


def test_what_the_dead_one_has_said_is_not_said_again_and_ends_under_its_id() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    trio.step(2, lambda: trio.say(session, FULL, "a"))
    trio.kill("a")
    again, _ = trio.connect("n1", "b")
    trio.step(12, lambda: trio.say(again, FULL, "b"))
    assert trio.stored() == [("n1", "firing")]
    trio.step(14, lambda: trio.say(again, FREE, "b"))
    assert trio.stored() == [("n1", "firing"), ("n1", "resolved")]
    assert len({one.id for one in trio.truth.transitions}) == 1


def test_the_speakers_word_overrules_what_was_found_elsewhere() -> None:
    """One that missed the first readings found the alert later, by another id."""
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    trio["c"].line.is_connected = False
    trio.say(session, FULL, "a")
    trio.arrive()
    trio["c"].line.is_connected = True
    trio.step(3, lambda: trio.say(session, FULL, "a"))
    (episode,) = trio["c"].service.engine.episodes()
    assert episode.id == trio.truth.transitions[0].id
    assert trio["c"].firing() == {"n1": episode.id}
    assert trio["c"].chorus.counts()[1] == 0


def test_a_server_that_stood_still_says_nothing_that_another_has_said_meanwhile() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    trio.say(session, FULL, "a")
    trio.arrive()
    trio["a"].is_dead = True  # it is stopped in the moment in which it would have stored it
    trio.step(12)
    trio["a"].is_dead = False
    trio.step(6)
    assert trio.stored() == [("n1", "firing")]


# ---------------------------------------------------------------- agents that move


def test_an_agent_that_moves_goes_on_where_the_database_says_and_is_judged_once() -> None:
    trio = Trio()
    session, old = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    moved, agent = trio.connect("n1", "b")
    assert moved.stored_seq == 4
    trio["b"].service.reception.take(moved, sample(4, FREE, trio.now))
    before = len(trio.truth.messages)
    trio.step(1, lambda: trio.say(moved, FREE, "b"))
    assert agent.acknowledged[-1] == 5
    assert len(trio.truth.messages) == before + 2  # a hello and a sample
    assert old.dismissed == [None]  # its half-open connection


def test_a_node_is_taken_whichever_server_its_agent_is_connected_to() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    with pytest.raises(RefusalError) as refusal:
        trio.connect("n1", "b", session="another")
    assert refusal.value.refused.reason is wire.RefusedReason.NODE_TAKEN
    with pytest.raises(StillConnectedError):
        trio["b"].service.retire("n1")


def test_nobody_is_locked_out_by_a_server_that_died_nor_by_a_connection_that_did() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    trio.step(6)  # half-open: nothing comes
    trio.connect("n1", "b", session="another")
    trio.kill("b")
    trio.step(8)
    trio.connect("n1", "c", session="third")


def test_an_agent_that_left_frees_its_name_everywhere_at_once() -> None:
    trio = Trio()
    session, agent = trio.connect("n1", "a")
    trio.step(2, lambda: trio.say(session, FREE, "a"))
    trio["a"].service.reception.leave(session, agent)
    trio.arrive()
    trio.connect("n1", "b", session="another")


def test_what_an_agent_is_asked_for_goes_by_way_of_its_door() -> None:
    trio = Trio()
    session, agent = trio.connect("n1", "a")
    trio.step(6, lambda: trio.say(session, FULL, "a"))
    (alert,) = trio["b"].service.board.open()
    far = trio["b"].service.roster.find("n1")
    assert far is not None
    assert far.elsewhere is not None
    far.elsewhere.ask(wire.ActRequest(id=alert.id, alert=alert, acts=("stacks",)))
    trio.arrive()
    assert [one.id for one in agent.asked] == [alert.id]


@pytest.mark.parametrize("is_connected", [True, False])
def test_a_node_that_a_person_retires_is_gone_everywhere(*, is_connected: bool) -> None:
    trio = Trio()
    session, agent = trio.connect("n1", "a")
    trio.step(6, lambda: trio.say(session, FULL, "a"))
    trio["a"].service.reception.leave(session, agent)
    trio.arrive()
    cut(trio, is_connected=is_connected)
    trio.truth.retired.append("n1")
    trio["b"].service.retire("n1")
    trio.step(2)
    assert all("n1" not in trio[name].service.engine.fleet.nodes for name in "abc")
    assert trio.stored() == [("n1", "firing"), ("n1", "resolved")]
    assert [trio[name].firing() for name in "abc"] == [{}] * 3


def test_a_node_that_was_retired_and_is_back_stays() -> None:
    trio = Trio()
    session, agent = trio.connect("n1", "a")
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    trio["a"].service.reception.leave(session, agent)
    trio.arrive()
    trio["b"].service.retire("n1")
    again, _ = trio.connect("n1", "a", session="another")
    trio.truth.retired.append("n1")  # it is read after the agent came, and before its hello is stored
    trio.step(3, lambda: trio.say(again, FREE, "a"))
    assert all("n1" in trio[name].service.engine.fleet.nodes for name in "abc")


# ---------------------------------------------------------------- traces


def test_a_trace_tells_what_a_server_made_of_the_others_words(tmp_path: Path) -> None:
    """Of its own readings it would have found another id, and of those that it missed a silence."""
    trio = Trio()
    writer = TraceWriter(tmp_path / "trace")
    trio["c"].service._judge.recorder = writer
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    cut(trio, is_connected=False)
    trio.step(30, lambda: trio.say(session, FULL, "a"))
    engine = Engine(FULL_AT_ONCE)
    writer.close()
    for line in read_trace(tmp_path / "trace"):
        give(engine, line)
    live = trio["c"].service.engine
    assert [(one.id, one.fired_at) for one in live.episodes()] == [(one.id, one.fired_at) for one in engine.episodes()]
    assert live.episodes()[0].id == trio.truth.transitions[0].id
    assert live.fleet.nodes["n1"].heard_at == engine.fleet.nodes["n1"].heard_at > trio.now - 5


# ---------------------------------------------------------------- people


def test_who_takes_care_of_an_alert_is_known_whichever_server_was_told() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(6, lambda: trio.say(session, FULL, "a"))
    (alert,) = trio["c"].service.board.open()
    trio["c"].service.attention.acknowledge([alert.id], by="lin")
    trio.step(2, lambda: trio.say(session, FULL, "a"))
    for name in "abc":
        (seen,) = trio[name].service.board.open()
        assert seen.acknowledged is not None
        assert seen.acknowledged.by == "lin"
    assert [one.change for one in trio.truth.transitions] == ["state", "acknowledged"]


def test_a_silence_holds_everywhere_and_its_mute_is_said_once() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(6, lambda: trio.say(session, FULL, "a"))
    silence = wire.Silence(
        id="q1", matchers=(wire.Matcher(label="node", op="=", value="n1"),), starts_at=trio.now,
        ends_at=trio.now + 1000, created_by="lin", created_at=trio.now,
    )  # fmt: skip
    trio.truth.kept_silences["q1"] = silence
    trio["c"].service.attention.put_silences([silence])
    trio.step(3, lambda: trio.say(session, FULL, "a"))
    for name in "abc":
        assert trio[name].service.attention.silences() == (silence,)
        assert [one.muted[0].by for one in trio[name].service.board.open()] == ["q1"]
    assert [one.change for one in trio.truth.transitions] == ["state", "muted"]
    ended = msgspec.structs.replace(silence, ends_at=trio.now)
    trio.truth.kept_silences["q1"] = ended
    trio["b"].service.attention.put_silences([ended])
    trio.step(3, lambda: trio.say(session, FULL, "a"))
    assert all(trio[name].service.attention.silences() == () for name in "abc")
    assert [one.change for one in trio.truth.transitions] == ["state", "muted", "muted"]


# ---------------------------------------------------------------- who leads


def test_one_leads_and_where_it_dies_another() -> None:
    trio = Trio()
    first = trio.leader()
    assert first is not None
    trio.kill(first)
    trio.step(6)
    assert trio.leader() not in (None, first)


def test_without_the_database_the_leader_goes_on_and_takes_the_lease_back_first() -> None:
    trio = Trio()
    first = trio.leader()
    trio.truth.is_gone, trio.truth.holder = True, None
    trio.step(20)
    assert trio.leader() == first
    trio.truth.is_gone = False
    trio.step(8)
    assert trio.leader() == first == trio.truth.holder


def test_a_leader_that_alone_lost_the_database_stops_when_it_hears_another() -> None:
    trio = Trio()
    first = trio.leader()
    assert first is not None
    cut_off = trio[first].replica.leadership
    cut_off._lease = Unreachable()
    trio.truth.holder = None
    trio.step(8)
    assert trio.leader() not in (None, first)


def test_a_channel_is_tried_again_by_the_leader_whichever_server_is_asked() -> None:
    trio = Trio()
    leader = trio.leader()
    assert leader is not None
    asked = next(name for name in "abc" if name != leader)
    trio[asked].replica.retry("ops")
    trio.arrive()

    async def work() -> None:
        retrying = asyncio.create_task(trio[leader].replica._retry_for_ever())
        while not trio[leader].channels.retried:  # noqa: ASYNC110 - what retries tells nobody
            await asyncio.sleep(0)
        await end([retrying])

    asyncio.run(asyncio.wait_for(work(), 30))
    assert [trio[name].channels.retried for name in "abc"] == [["ops"] if name == leader else [] for name in "abc"]


def test_without_the_database_all_are_told_and_it_is_stored_once_later() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "b")
    trio.step(4, lambda: trio.say(session, FREE, "b"))
    trio.truth.is_gone = True
    trio.step(3, lambda: trio.say(session, FULL, "b"))
    assert trio.stored() == []
    assert [list(trio[name].firing()) for name in "abc"] == [["n1"]] * 3
    assert [trio.told(name) for name in "abc"] == [[("n1", "firing")]] * 3
    trio.truth.is_gone = False
    trio.step(4, lambda: trio.say(session, FULL, "b"))
    assert trio.stored() == [("n1", "firing")]
    assert [trio.told(name) for name in "abc"] == [[("n1", "firing")]] * 3


def test_what_was_told_without_the_database_is_stored_though_who_said_it_dies_before() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "b")
    trio.step(4, lambda: trio.say(session, FREE, "b"))
    trio.truth.is_gone = True
    trio.step(3, lambda: trio.say(session, FULL, "b"))
    trio.kill("b")
    trio.truth.is_gone = False
    again, _ = trio.connect("n1", "c")
    trio.step(12, lambda: trio.say(again, FULL, "c"))
    assert trio.stored() == [("n1", "firing")]
    assert [trio.told(name) for name in "ac"] == [[("n1", "firing")]] * 2


# ---------------------------------------------------------------- without NATS


def test_without_nats_what_is_said_is_known_everywhere_by_the_database() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    cut(trio, is_connected=False)
    trio.step(4, lambda: trio.say(session, FULL, "a"))
    assert [list(trio[name].firing()) for name in "abc"] == [["n1"]] * 3
    assert trio.stored() == [("n1", "firing")]
    assert any("NATS" in problem for problem in trio["b"].keeping.problems())
    cut(trio, is_connected=True)
    trio.step(14, lambda: trio.say(session, FREE, "a"))
    assert [trio[name].firing() for name in "abc"] == [{}] * 3
    assert trio["b"].keeping.problems() == []


def test_nobody_is_called_silent_for_want_of_nats() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    cut(trio, is_connected=False)
    trio.step(60, lambda: trio.say(session, FREE, "a"))
    record = trio["b"].service.engine.fleet.nodes["n1"]
    assert trio.now - record.heard_at <= 2


def test_an_agent_that_moves_while_there_is_no_nats_is_not_called_silent_by_its_old_door() -> None:
    trio = Trio()
    session, old = trio.connect("n1", "a")
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    cut(trio, is_connected=False)
    trio["a"].service.reception.leave(session, old)
    moved, _ = trio.connect("n1", "b")
    trio.step(60, lambda: trio.say(moved, FREE, "b"))
    assert trio.now - trio["a"].service.engine.fleet.nodes["n1"].heard_at <= 6
    assert [trio[name].chorus.speaks_for({"node": "n1"}) for name in "ab"] == [False, True]
    cut(trio, is_connected=True)
    trio.step(3, lambda: trio.say(moved, FREE, "b"))
    assert [trio[name].doors.of("n1") for name in "abc"] == ["b", "b", "b"]


def test_an_agent_that_is_gone_while_there_is_no_nats_is_called_silent() -> None:
    trio = Trio()
    session, old = trio.connect("n1", "a")
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    cut(trio, is_connected=False)
    trio["a"].service.reception.leave(session, old)
    trio.step(60)
    assert trio.now - trio["a"].service.engine.fleet.nodes["n1"].heard_at >= 60


def used(trio: Trio, name: str, seconds: int) -> list[int | None]:
    """The highest that a server knows of each ten seconds of the last so many, in GiB."""
    peaks = trio[name].service.engine.fleet.nodes["n1"].gpus["0"].used_peaks
    first = trio.now - trio.now % 10 - seconds
    found = [peaks.peak(first + at, first + at) for at in range(0, seconds, 10)]
    return [None if one is None else round(one / GIB) for one in found]


def test_what_was_missed_without_nats_is_read_and_windows_are_whole_again() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(10, lambda: trio.say(session, 10, "a"))
    cut(trio, is_connected=False)
    trio.step(30, lambda: trio.say(session, 40, "a"))
    assert None in used(trio, "b", 30)
    cut(trio, is_connected=True)
    trio.step(6, lambda: trio.say(session, 20, "a"))
    assert used(trio, "b", 40) == used(trio, "c", 40) == used(trio, "a", 40)
    assert trio["b"].service.engine.fleet.nodes["n1"].gpus["0"].used_bytes == 20 * GIB
    assert trio.now - trio["b"].service.engine.fleet.nodes["n1"].heard_at <= 1


def test_steps_that_were_missed_without_nats_are_known_and_no_new_start_of_the_run() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")

    def step(number: int) -> None:
        trio.seqs["s1n1"] += 1
        body = wire.Step(step=number, step_seconds=5)
        trio["a"].service.reception.take(session, wire.Event(seq=trio.seqs["s1n1"], at=trio.now, run="r", body=body))

    for number in range(1, 4):
        trio.step(4, lambda: trio.say(session, FREE, "a"))
        step(number)
    cut(trio, is_connected=False)
    for number in range(4, 7):
        trio.step(4, lambda: trio.say(session, FREE, "a"))
        step(number)
    cut(trio, is_connected=True)
    trio.step(1, lambda: trio.say(session, FREE, "a"))
    step(7)
    trio.step(6, lambda: trio.say(session, FREE, "a"))
    steps = [(one.step.step, one.segment) for one in trio["b"].service.engine.fleet.runs["r"].steps]
    assert steps == [(number, 0) for number in range(1, 8)]


def test_where_the_database_cannot_be_read_what_was_held_is_taken_all_the_same() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(10, lambda: trio.say(session, 10, "a"))
    cut(trio, is_connected=False)
    trio.step(30, lambda: trio.say(session, 40, "a"))
    cut(trio, is_connected=True)
    trio.truth.is_unread = True
    trio.step(6, lambda: trio.say(session, 20, "a"))
    assert trio["b"].service.engine.fleet.nodes["n1"].gpus["0"].used_bytes == 20 * GIB


def test_a_server_that_comes_later_learns_who_is_where() -> None:
    trio = Trio("ab")
    session, _ = trio.connect("n1", "a")
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    late = Trio("c")
    trio.servers["c"] = late["c"]
    late["c"].truth = trio.truth
    trio.step(3, lambda: trio.say(session, FREE, "a"))
    assert trio["c"].doors.of("n1") == "a"
    with pytest.raises(RefusalError):
        trio["c"].service.reception.admit(hello("n1", session="x", sent_at=trio.now), Agent(), 0)


def test_the_rules_of_one_that_lacks_a_rule_do_not_take_an_alert_away() -> None:
    """During a rollout of a new rule file."""
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    trio["b"].service.replace_rules(FULL_AFTER_A_WHILE)
    trio.step(4, lambda: trio.say(session, FULL, "a"))
    assert list(trio["b"].firing()) == ["n1"]
    assert trio.stored() == [("n1", "firing")]


def test_a_server_that_stops_is_not_waited_for() -> None:
    trio = Trio()
    session, _ = trio.connect("n1", "a")
    trio.step(4, lambda: trio.say(session, FREE, "a"))
    trio.say(session, FULL, "a")
    asyncio.run(trio["a"].replica.say_goodbye())
    trio.arrive()
    trio.kill("a")
    trio.step(4)
    assert trio.stored() == [("n1", "firing")]
    assert trio.leader() in ("b", "c")
