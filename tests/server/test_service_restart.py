"""A server that starts again, on a real database: none forgotten, none raised twice."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.server.house import FULL_AT_ONCE, GIB, START, House, hello, sample

from oomwatch import wire
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import parse_rules
from oomwatch.store.store import Batch, Entry, Store
from oomwatch.web.restart import restore

SILENCE = parse_rules(
    """
rules:
  - alert: agent_silent
    severity: critical
    when: {kind: threshold, metric: agent_silent_seconds, above: 30s}
    keep_firing_for: 10s
    summary: "{node} is silent"
"""
).rules


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{tmp_path / 'oomwatch.db'}")
    yield store
    store.close()


def remember(store: Store, *messages: wire.AgentMessage, at: float = START, node: str = "gpu-07") -> None:
    """What an earlier life of the server stored."""
    store.record(
        Batch(entries=tuple(Entry(node=node, session="s1", received_at=at, message=message) for message in messages))
    )


def alert_of_before(store: Store, rules: RuleSet = FULL_AT_ONCE) -> wire.Transition:
    """A full GPU, noticed before the server was stopped."""
    house = House(rules)
    session, _ = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.flush()
    (firing,) = house.channels.offered
    store.append([firing])
    remember(store, hello(), sample(1, 79))
    return firing


def started_again(store: Store, at: float, rules: RuleSet = FULL_AT_ONCE) -> House:
    house = House(rules, now=at)
    restore(house.service, store)
    house.flush()
    return house


def test_an_open_alert_goes_on_under_its_id_and_nobody_is_told_again(store: Store) -> None:
    firing = alert_of_before(store)
    house = started_again(store, START + 5)
    session, _ = house.connect(hello(sent_at=house.now), stored_seq=1)
    house.service.reception.take(session, sample(2, 79, at=house.now))
    house.flush()
    assert house.channels.offered == []
    assert [(alert.id, alert.started_at) for alert in house.service.open_alerts()] == [(firing.id, START)]


def test_an_alert_whose_cause_went_away_meanwhile_ends(store: Store) -> None:
    firing = alert_of_before(store)
    house = started_again(store, START + 60)
    session, _ = house.connect(hello(sent_at=house.now), stored_seq=1)
    for second in range(1, 15):
        house.now += 1
        house.service.reception.take(session, sample(second + 1, 10, at=house.now))
        house.service.beat()
    house.flush()
    assert [(one.id, one.state, one.reason) for one in house.channels.offered] == [(firing.id, "resolved", "recovered")]
    (ended,) = house.service.board.ended()
    assert ended.fired_at == START


def test_an_alert_whose_rule_is_gone_ends_at_the_start(store: Store) -> None:
    alert_of_before(store)
    house = started_again(store, START + 60, SILENCE)
    assert [(one.state, one.reason) for one in house.channels.offered] == [("resolved", "rule removed")]


def test_what_was_read_before_is_shown_and_counts(store: Store) -> None:
    remember(
        store, hello(run="qwen7b"), sample(1, 40), wire.Event(seq=2, at=START, run="qwen7b", body=wire.Step(step=7))
    )
    snapshot = started_again(store, START + 60).service.snapshot()
    assert snapshot.nodes[0].sample is not None
    assert snapshot.nodes[0].sample.gpus[0].used_bytes == 40 * 2**30
    assert [point.step.step for point in snapshot.runs[0].steps] == [7]


def test_a_long_stop_of_the_server_is_no_silence_of_its_agents(store: Store) -> None:
    remember(store, hello(), sample(1, 40))
    house = started_again(store, START + 86_400, SILENCE)
    house.wait(29)
    assert house.channels.offered == []
    house.wait(5)
    assert [one.alert for one in house.channels.offered] == ["agent_silent"]


def test_a_node_that_was_silent_before_stays_so_and_nobody_is_told_again(store: Store) -> None:
    remember(store, hello("gpu-07"), sample(1, 40))
    remember(store, hello("gpu-08"), sample(1, 40), node="gpu-08")
    house = House(SILENCE)
    house.connect(hello("gpu-07"))
    house.wait(40)
    (silent,) = house.channels.offered
    store.append([silent])
    remember(store, sample(2, 40, START + 40), at=START + 40, node="gpu-08")

    again = started_again(store, START + 600, SILENCE)
    again.wait(25)
    assert again.channels.offered == []
    assert [alert.id for alert in again.service.open_alerts()] == [silent.id]


def test_what_was_stored_while_the_clock_was_ahead_hides_nothing_that_is_read_now(store: Store) -> None:
    """The server's clock was a day ahead, or it took an agent's word for the time."""
    ahead = START + 86_400
    step = wire.Step(step=7, step_seconds=60.0)
    remember(store, hello(run="r"), sample(1, 79, ahead), at=ahead)
    remember(store, wire.Event(seq=2, at=ahead, run="r", body=step), at=ahead)
    remember(store, hello("gpu-08"), at=START, node="gpu-08")
    store.append([msgspec.structs.replace(alert_of_before(store), at=ahead, started_at=ahead, id="f")])

    house = started_again(store, START + 60)
    node = house.service.engine.fleet.nodes["gpu-07"]
    assert node.heard_at <= house.now
    assert node.gpus["0"].at <= house.now
    assert all(alert.started_at <= house.now for alert in house.service.open_alerts())
    session, _ = house.connect(hello(sent_at=house.now), stored_seq=2)
    for seq in range(3, 18):
        house.service.reception.take(session, sample(seq, 10, at=house.now))
        house.wait(1)
    assert node.gpus["0"].used_bytes == 10 * GIB
    assert {one.state for one in house.channels.offered} == {"resolved"}


def test_a_node_that_had_said_goodbye_is_still_stopped(store: Store) -> None:
    remember(store, hello(), sample(1, 40), wire.Bye(seq=2, at=START))
    house = started_again(store, START + 60, SILENCE)
    house.wait(60)
    assert house.service.snapshot().nodes[0].state == "stopped"
    assert house.channels.offered == []


def test_alerts_that_ended_lately_are_shown_again(store: Store) -> None:
    firing = alert_of_before(store)
    house = started_again(store, START + 60, SILENCE)
    store.append(house.shelf.transitions)
    (ended,) = started_again(store, START + 120, SILENCE).service.snapshot().alerts
    assert (ended.id, ended.state, ended.fired_at) == (firing.id, "resolved", START)


def test_the_phases_of_before_are_those_that_were_told(store: Store) -> None:
    """Marks and step lines tell them in turn: read one after the other they would give each step twice."""
    marks = [
        (0, wire.EngineWake()),
        (30, wire.EngineSleep()),
        (80, wire.Step(step=1, step_seconds=80, phase_seconds={"rollout": 30, "update_actor": 50})),
        (80, wire.EngineWake()),
        (110, wire.EngineSleep()),
        (160, wire.Step(step=2, step_seconds=80, phase_seconds={"rollout": 30, "update_actor": 50})),
    ]
    house = House()
    session, _ = house.connect(hello(run="r"))
    said: list[wire.Event] = []
    for seq, (seconds, body) in enumerate(marks, start=1):
        assert isinstance(body, wire.EngineWake | wire.EngineSleep | wire.Step)
        house.pass_until(START + seconds)
        said.append(wire.Event(seq=seq, at=START + seconds, run="r", body=body))
        house.service.reception.take(session, said[-1])
    remember(store, hello(run="r"), *said)
    again = started_again(store, START + 170)
    ((before,), (after,)) = (one.service.snapshot().runs for one in (house, again))
    assert after.phases == before.phases
    assert [span.phase for span in after.phases] == ["rollout", "update_actor"] * 2


def test_what_probes_said_before_is_remembered_and_shown_as_no_process(store: Store) -> None:
    """A trend looks back over it; who held the memory then is not kept, and whoever does now will say so."""
    probes = tuple(wire.TorchSample(pid=pid, gpu="0", reserved_bytes=20 * GIB) for pid in (11, 12))
    told = [msgspec.structs.replace(sample(seq, 50, START + seq), torch=probes) for seq in (1, 2)]
    remember(store, hello(), *told)
    again = started_again(store, START + 3)
    gpu = again.service.engine.fleet.nodes["gpu-07"].gpus["0"]
    latest = gpu.torch_reserved.latest()
    assert latest is not None
    assert latest.value == pytest.approx(40 / 80)
    (node,) = again.service.snapshot().nodes
    assert node.sample is not None
    assert node.sample.torch == ()


def test_a_configuration_that_was_printed_hours_ago_is_remembered(store: Store) -> None:
    config = wire.Config(values={"actor_rollout_ref.rollout.n": 5})
    remember(store, hello(run="r"), wire.Event(seq=1, at=START, run="r", body=config))
    (run,) = started_again(store, START + 20_000).service.snapshot().runs
    assert run.config == {"actor_rollout_ref.rollout.n": 5}


def test_what_a_job_is_called_is_remembered_for_hours(store: Store) -> None:
    named = wire.RunNamed(provisional="job 1")
    remember(store, hello(), wire.Event(seq=1, at=START, run="demo/qwen", body=named))
    again = started_again(store, START + 20_000)
    assert again.service.engine.fleet.names.of("job 1") == "demo/qwen"
