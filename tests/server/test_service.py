"""The order of judging, storing, telling and acknowledging."""

import asyncio

import msgspec
import pytest
from tests.server.house import FULL_AFTER_A_WHILE, FULL_AT_ONCE, GIB, START, Broken, House, hello, sample

from oomwatch import wire
from oomwatch.core.rule import Rule, RuleSet
from oomwatch.rulefile import parse_rules
from oomwatch.service.journal import NEWS_AT_ONCE

OOM_AT_ONCE = parse_rules("""
rules:
  - alert: out_of_memory
    severity: critical
    when: {kind: event, of: [device_oom], within: 10m}
    summary: "it failed"
""").rules


def test_a_message_is_judged_when_it_arrives() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    assert [episode.rule.alert for episode in house.service.engine.episodes()] == ["full"]


def test_nobody_is_told_before_the_transition_is_stored() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    assert house.log == []
    house.flush()
    assert house.log == ["stored firing", "shown firing", "sent firing"]


def test_a_transition_is_told_in_words_of_every_language() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.flush()
    (told,) = house.channels.offered
    assert set(told.texts) == set(wire.LANGUAGES)
    assert told.texts["en"].summary.startswith("GPU 0 of gpu-07 is 99")


def test_an_alert_of_a_simulated_node_says_so() -> None:
    house = House()
    session, _ = house.connect(hello(simulated=True))
    house.service.reception.take(session, sample(1, 79))
    house.flush()
    assert house.channels.offered[0].simulated


def test_where_the_database_fails_people_are_told_all_the_same_and_nothing_is_lost() -> None:
    house = House()
    session, agent = house.connect()
    house.shelf.is_full = True
    house.service.reception.take(session, sample(1, 79))
    house.flush()
    assert house.log == ["shown firing", "sent firing"]
    assert _problem(house) == "the disk is full"
    assert agent.acknowledged == []

    house.shelf.is_full = False
    house.flush()
    assert [transition.state for transition in house.shelf.transitions] == ["firing"]
    assert _problem(house) is None
    assert agent.acknowledged == [1]
    assert len(house.channels.offered) == 1


def _problem(house: House) -> str | None:
    return house.journal.problem


def test_a_message_is_acknowledged_when_it_is_stored_and_not_before() -> None:
    house = House()
    session, agent = house.connect()
    for seq in (1, 2, 3):
        house.service.reception.take(session, sample(seq, 10))
    assert agent.acknowledged == []
    house.flush()
    assert agent.acknowledged == [3]
    assert [type(message) for message in house.shelf.messages] == [wire.Hello, *[wire.Sample] * 3]


def test_a_transition_that_could_not_be_stored_is_tried_again_without_further_news() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.shelf.is_full = True
    house.flush()
    house.shelf.is_full = False
    house.flush()
    assert [transition.state for transition in house.shelf.transitions] == ["firing"]


def test_what_another_server_could_not_store_is_stored_here_whenever_it_comes() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.shelf.is_full = True
    house.flush()
    house.shelf.is_full = False
    (told,) = house.channels.offered

    async def story() -> None:
        writing = asyncio.create_task(house.journal.flush())
        await asyncio.sleep(0)  # it has begun to write, and waits
        house.journal.adopt([msgspec.structs.replace(told, id="another's")])
        await writing

    asyncio.run(story())
    house.flush()
    assert [transition.id for transition in house.shelf.transitions] == [told.id, "another's"]


def test_what_is_told_while_the_database_takes_nothing_is_bounded_counted_and_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    house = House(unstored_max=3)
    session, _ = house.connect(hello(sent_at=house.now, gpus=3))
    house.shelf.is_full = True
    house.service.reception.take(session, sample(1, 79, gpus=3))
    house.flush()
    house.journal.adopt([msgspec.structs.replace(house.channels.offered[0], id="another's")])
    house.flush()
    assert house.journal.waiting() == (2, 3)
    assert house.journal.dropped_total == 1
    assert "1 change(s) of alerts were told and will be missing" in caplog.text
    house.shelf.is_full = False
    house.flush()
    one, two, adopted = (transition.id for transition in house.shelf.transitions)
    assert (one, two, adopted) == (house.channels.offered[1].id, house.channels.offered[2].id, "another's")


def test_of_very_many_transitions_the_first_are_told_before_the_last_are_stored() -> None:
    house, gpus = House(), NEWS_AT_ONCE + 1
    session, _ = house.connect(hello(sent_at=house.now, gpus=gpus))
    house.service.reception.take(session, sample(1, 79, gpus=gpus))
    house.flush()
    assert house.log.index("sent firing") == 2 * NEWS_AT_ONCE
    assert house.log.count("sent firing") == gpus


def test_a_flush_beside_the_running_task_tells_nobody_twice() -> None:
    house = House()
    session, _ = house.connect()

    async def story() -> None:
        running = asyncio.create_task(house.journal.run())
        house.service.reception.take(session, sample(1, 79))
        await asyncio.sleep(0)  # the task wakes up and begins to write
        await asyncio.gather(house.journal.flush(), house.journal.flush())
        running.cancel()

    asyncio.run(story())
    assert house.log == ["stored firing", "shown firing", "sent firing"]


def test_a_message_waits_for_the_transitions_that_were_judged_before_it() -> None:
    house = House()
    session, agent = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.shelf.takes_no_transitions = True
    house.flush()
    assert house.shelf.messages == []
    assert agent.acknowledged == []
    house.shelf.takes_no_transitions = False
    house.flush()
    assert agent.acknowledged == [1]


def test_a_message_that_comes_twice_is_judged_and_stored_once() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.wait(12)
    again, _ = house.connect(hello(sent_at=house.now))
    assert again is session
    house.service.reception.take(again, sample(1, 79, at=house.now))
    house.flush()
    assert [transition.state for transition in house.channels.offered] == ["firing"]
    assert len([one for one in house.shelf.messages if isinstance(one, wire.Sample)]) == 1


def test_a_message_of_a_newer_type_is_counted_and_acknowledged_in_its_turn() -> None:
    house = House()
    session, agent = house.connect()
    house.service.reception.take(session, sample(1, 10))
    house.service.reception.skip(session, wire.Unknown(type="hologram", seq=2))
    house.flush()
    assert agent.acknowledged[-1] == 2
    assert house.service.reception.unknown_total == session.unknown_total == 1
    assert len(house.shelf.messages) == 2


def test_the_times_of_an_agent_whose_clock_is_ahead_are_put_right() -> None:
    house = House()
    session, _ = house.connect(hello(sent_at=START + 3600))
    house.service.reception.take(session, sample(1, 79, at=START + 3600))
    house.flush()
    assert house.shelf.messages[-1] == sample(1, 79, at=START)
    assert [transition.state for transition in house.channels.offered] == ["firing"]
    assert next(house.service.picture.nodes(START)).skew_seconds == 3600


def test_a_delay_of_a_second_is_no_skew() -> None:
    house = House()
    session, _ = house.connect(hello(sent_at=START - 1.5))
    assert session.skew_seconds == 0


def test_an_event_without_a_run_is_kept_under_the_run_that_its_agent_was_given() -> None:
    house = House()
    session, _ = house.connect(hello(run="qwen7b"))
    house.service.reception.take(session, wire.Event(seq=1, at=START, body=wire.Step(step=1, step_seconds=60)))
    house.flush()
    kept = house.shelf.messages[-1]
    assert isinstance(kept, wire.Event)
    assert kept.run == "qwen7b"


def test_what_finds_no_room_in_memory_is_asked_for_again_and_judged_once() -> None:
    house = House(entries_max=3)  # a hello and two samples
    session, agent = house.connect()
    house.shelf.is_full = True
    for seq in (1, 2, 3, 4):
        house.service.reception.take(session, sample(seq, 79, at=START + seq))
    house.flush()
    house.shelf.is_full = False
    house.flush()
    assert agent.acknowledged == [2]
    assert agent.dismissed == [None]

    again, successor = house.connect(hello(sent_at=house.now))
    assert again.stored_seq == 2
    for seq in (3, 4):
        house.service.reception.take(again, sample(seq, 79, at=START + seq))
    house.flush()
    assert successor.acknowledged == [4]
    stored = [one.seq for one in house.shelf.messages if isinstance(one, wire.Sample)]
    assert stored == [1, 2, 3, 4]
    assert [transition.state for transition in house.channels.offered] == ["firing"]


def test_a_rule_with_a_defect_is_counted_logged_once_and_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    house = House(RuleSet(rules=(*FULL_AT_ONCE.rules, Rule(alert="broken", severity="info", when=(Broken(),)))))  # type: ignore[arg-type]
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    other, _ = house.connect(hello("gpu-08"))
    house.service.reception.take(other, sample(1, 79))
    house.flush()
    assert house.service.defects.total == 2  # the hello and the sample of gpu-07
    assert [transition.labels["node"] for transition in house.channels.offered] == ["gpu-07", "gpu-08"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "the rule broken/info cannot be judged of gpu gpu-07 0; every other rule goes on"
    ]


def test_people_are_told_even_where_the_page_cannot_be() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.browsers.is_broken = True
    house.flush()
    assert [transition.state for transition in house.channels.offered] == ["firing"]
    assert house.service.defects.total == 1


def test_channels_that_cannot_take_news_stop_neither_the_page_nor_the_journal() -> None:
    house = House()
    session, _ = house.connect()
    house.channels.is_broken = True
    house.service.reception.take(session, sample(1, 79))
    house.flush()
    assert [told.alert.state for told in house.browsers.of(wire.AlertChanged)] == ["firing"]
    assert house.service.defects.unjudged() == ["telling people"]


# ---------------------------------------------------------------- what browsers are shown


def test_a_new_node_is_shown_before_its_first_reading() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 40))
    house.service.beat()
    kinds = [type(message) for message in house.browsers.shown]
    assert kinds == [wire.NodeChanged, wire.Tick]
    (tick,) = house.browsers.of(wire.Tick)
    assert tick.nodes[0].used_mib == (40 * 1024,)
    assert tick.nodes[0].utilization_percent == (50,)


def test_a_node_that_was_not_heard_is_not_in_the_tick() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 40))
    house.wait(2)
    first, second = house.browsers.of(wire.Tick)
    assert [len(first.nodes), len(second.nodes)] == [1, 0]


def test_a_node_falls_silent_and_comes_back() -> None:
    house = House()
    session, _ = house.connect()
    house.wait(8)
    house.service.reception.take(session, sample(1, 40, at=house.now))
    house.wait(1)
    assert [message.node.state for message in house.browsers.of(wire.NodeChanged)] == ["live", "silent", "live"]


def test_a_node_whose_agent_says_goodbye_is_stopped_and_not_silent() -> None:
    house = House()
    session, agent = house.connect()
    house.service.reception.take(session, wire.Bye(seq=1, at=START))
    house.wait(20)
    assert [message.node.state for message in house.browsers.of(wire.NodeChanged)] == ["stopped"]
    assert agent.acknowledged == [1]


def test_a_run_shows_each_new_step_once() -> None:
    house = House()
    session, _ = house.connect()
    for seq, step in ((1, 1), (2, 2), (3, 2)):  # the same line read twice is one step
        body = wire.Step(step=step, step_seconds=60.0)
        house.service.reception.take(session, wire.Event(seq=seq, at=START + step, run="qwen7b", body=body))
    house.wait(1)
    (changed,) = house.browsers.of(wire.RunChanged)
    assert [point.step.step for point in changed.run.steps] == [1, 2]


def test_a_snapshot_between_two_seconds_repeats_no_step() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, wire.Event(seq=1, at=START, run="qwen7b", body=wire.Step(step=1)))
    snapshot = house.service.snapshot()
    shown_before = len(house.browsers.of(wire.RunChanged))
    house.wait(1)
    assert [len(run.steps) for run in snapshot.runs] == [1]
    assert shown_before == len(house.browsers.of(wire.RunChanged)) == 1


def test_a_pending_alert_is_shown_and_taken_back_and_notifies_nobody() -> None:
    house = House(FULL_AFTER_A_WHILE)
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.wait(1)
    for seq in range(2, 20):
        house.now += 1
        house.service.reception.take(session, sample(seq, 10, at=house.now))
        house.service.beat()
    states = [message.alert.state for message in house.browsers.of(wire.AlertChanged)]
    assert states == ["pending", "resolved"]
    assert house.channels.offered == []
    assert house.service.snapshot().alerts == ()


def test_a_number_that_moves_is_told_again_every_five_seconds_at_most() -> None:
    house = House()
    session, _ = house.connect()
    for second in range(1, 13):
        house.now += 1
        house.service.reception.take(session, sample(second, 68 + second, at=house.now))
        house.flush()
        house.service.beat()
    told = [message.alert for message in house.browsers.of(wire.AlertChanged)]
    assert [alert.state for alert in told] == ["firing"] * 3
    assert [round((alert.value or 0) * 80) for alert in told] == [69, 74, 79]


def test_an_alert_whose_data_stops_stays_and_is_marked_stale() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.wait(60)
    (alert,) = house.service.open_alerts()
    assert alert.stale
    assert alert.state == "firing"


def test_an_alert_has_its_numbers_as_of_now_where_it_is_asked_for() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 70))
    house.flush()
    house.now += 1
    house.service.reception.take(session, sample(2, 78, at=house.now))
    (alert,) = house.service.open_alerts()
    assert alert.facts["used_bytes"] == 78 * GIB
    assert alert.fired_at == START


def test_an_alert_on_its_way_to_the_database_is_not_shown_as_firing() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.service.beat()
    assert house.service.open_alerts() == []
    assert house.browsers.of(wire.AlertChanged) == []
    house.flush()
    assert [alert.state for alert in house.service.open_alerts()] == ["firing"]


def test_other_rules_end_the_alerts_of_those_that_are_gone_in_their_own_words() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.flush()
    house.service.replace_rules(msgspec.structs.replace(FULL_AT_ONCE, rules=()))
    house.service.report_rules(None)
    house.flush()
    ended = house.channels.offered[-1]
    assert (ended.state, ended.reason) == ("resolved", "rule removed")
    assert ended.texts["en"].summary.startswith("GPU 0 of gpu-07 is 99")
    assert house.browsers.of(wire.RulesChanged)[-1].rules == ()


def test_a_worker_nodes_messages_bear_the_name_that_the_drivers_node_told() -> None:
    house = House()
    driver, _ = house.connect()
    worker, _ = house.connect(hello("gpu-08", session="s2"))
    named = wire.RunNamed(provisional="job 1")
    house.service.reception.take(driver, wire.Event(seq=1, at=START, run="demo/qwen", body=named))
    house.service.reception.take(worker, wire.Event(seq=1, at=START, run="job 1", body=wire.Step(step=1)))
    house.flush()
    stored = [message.run for message in house.shelf.messages if isinstance(message, wire.Event)]
    assert stored == ["demo/qwen", "demo/qwen"]
    assert list(house.service.engine.fleet.runs) == ["demo/qwen"]


def test_an_alert_is_told_with_its_causes_in_words_and_with_remedies_that_stay() -> None:
    """A failure in the rollout: what is told when it fires is told again, and the remedies are not sought anew."""
    house = House(OOM_AT_ONCE)
    session, _ = house.connect()
    config: dict[str, wire.ConfigValue] = {"actor_rollout_ref.rollout.gpu_memory_utilization": 0.7}
    house.service.reception.take(session, sample(1, 70))
    house.service.reception.take(session, _event(2, wire.Config(values=config, framework="verl", version="0.9.1")))
    failed = wire.DeviceOom(error="OutOfMemoryError", gpu="0", phase="rollout", tried_bytes=2 * 2**30)
    house.service.reception.take(session, _event(3, failed))
    house.flush()
    fired = house.channels.offered[-1]
    assert fired.causes[0].texts["en"] == "The rollout engine's share of the card"
    assert fired.causes[0].evidence[0].texts["en"] == "it failed in rollout"
    first = fired.remedies[0]
    assert first.override == f"actor_rollout_ref.rollout.gpu_memory_utilization={first.value_to}"
    house.service.reception.take(session, _event(4, wire.Config(values={"trainer.save_freq": 5}, framework="verl")))
    (shown,) = house.service.open_alerts()
    assert (shown.causes, shown.remedies) == (fired.causes, fired.remedies)


def _event(seq: int, body: wire.EventBody) -> wire.Event:
    return wire.Event(seq=seq, at=START, run="r", body=body)
