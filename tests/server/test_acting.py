"""Before it dies: who is asked for what, and that what was done stays with the alert."""

from pathlib import Path

import msgspec
import pytest
from tests.server.house import GIB, START, Agent, House, hello, sample

from oomwatch import wire
from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import RuleFileError, parse_rules
from oomwatch.service.sessions import Session
from oomwatch.store.store import Store

RULES = """
rules:
  - alert: full
    severity: critical
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    keep_firing_for: 10s
    before_it_dies: [memory_snapshot, hook]
    summary: "GPU {gpu} of {node} is {value} full"
  - alert: tight
    severity: critical
    when: {kind: threshold, metric: gpu_used_ratio, above: 50%}
    keep_firing_for: 10s
    summary: "GPU {gpu} of {node} is {value} full"
  - alert: host_full
    severity: critical
    when: {kind: threshold, metric: host_memory_ratio, above: 85%}
    before_it_dies: [stacks]
    summary: "{node} is {value} full"
  - alert: slow
    severity: critical
    when: {kind: threshold, metric: step_seconds, above: 1s}
    before_it_dies: [stacks]
    summary: "{run} is slow"
"""


def rules(text: str = RULES) -> RuleSet:
    return parse_rules(text).rules


def fire(house: House, session: Session, *, seq: int = 1) -> str:
    """A GPU is full, and people were told; the alert's id."""
    house.service.reception.take(session, sample(seq, 79, at=house.now))
    house.flush()
    return next(one.id for one in house.channels.offered if one.alert == "full")


def done(act: str = "memory_snapshot", *, seq: int, alert: str, at: float = START, ok: bool = True) -> wire.Event:
    body = wire.ActDone(id=alert, act=act, ok=ok, detail="91 s of history", path="/srv/acts/x", seconds=93.5)
    return wire.Event(seq=seq, at=at, body=body, run="qwen")


def shown(house: House, alert: str) -> wire.Alert:
    return [one.alert for one in house.browsers.of(wire.AlertChanged) if one.alert.id == alert][-1]


# ---------------------------------------------------------------- who is asked


def test_the_agent_of_the_gpu_is_asked_once_the_alert_is_stored_and_told() -> None:
    house = House(rules())
    session, agent = house.connect(hello(gpus=1))
    _, other = house.connect(hello("gpu-08"))
    house.service.reception.take(session, sample(1, 79))
    assert agent.asked == [], "nobody acts on what could be lost"
    house.flush()
    (request,) = agent.asked
    assert (request.gpu, request.acts, request.step_seconds) == ("0", ("memory_snapshot", "hook"), None)
    assert (request.id, request.alert.alert, request.alert.state) == (request.alert.id, "full", "firing")
    assert request.alert.texts["en"].summary.startswith("GPU 0 of gpu-07 is 99")
    house.wait(5)
    assert len(agent.asked) == 1
    assert other.asked == []


def test_a_rule_that_wants_nothing_done_has_nothing_done() -> None:
    house = House(rules())
    session, agent = house.connect()
    house.service.reception.take(session, sample(1, 60))
    house.flush()
    assert [one.alert for one in house.channels.offered] == ["tight"]
    assert agent.asked == []


def test_an_alert_of_a_host_names_no_gpu() -> None:
    house = House(rules())
    session, agent = house.connect()
    host = wire.HostSample(memory_used_bytes=950 * GIB)
    house.service.reception.take(session, msgspec.structs.replace(sample(1, 10), host=host))
    house.flush()
    assert [(one.gpu, one.acts) for one in agent.asked] == [(None, ("stacks",))]


def test_an_alert_of_a_run_is_asked_of_every_node_of_it_with_the_time_that_a_step_takes() -> None:
    house = House(rules())
    agents: list[Agent] = []
    for node in ("gpu-07", "gpu-08"):
        session, agent = house.connect(hello(node, run="qwen"))
        house.service.reception.take(session, sample(1, 10))
        agents.append(agent)
    for number in range(1, 5):
        house.now += 30
        step = wire.Step(step=number, step_seconds=30.0 if number == 4 else 0.5)
        house.service.reception.take(session, wire.Event(seq=1 + number, at=house.now, body=step, run="qwen"))
        house.flush()
    for agent in agents:
        (request,) = agent.asked
        assert (request.alert.labels, request.gpu) == ({"run": "qwen"}, None)
        assert request.step_seconds is not None


def test_a_node_whose_agent_is_away_is_said_to_be_so() -> None:
    house = House(rules())
    session, agent = house.connect()
    house.service.reception.take(session, sample(1, 79))
    house.service.reception.leave(session, agent)
    house.flush()
    house.flush()
    assert agent.asked == []
    alert = next(one.id for one in house.channels.offered if one.alert == "full")
    assert [(act.act, act.ok, act.detail) for act in shown(house, alert).acts] == [
        ("memory_snapshot", False, "the agent of this node is not connected"),
        ("hook", False, "the agent of this node is not connected"),
    ]


def test_what_fired_before_a_restart_is_not_asked_for_again() -> None:
    house = House(rules())
    session, _ = house.connect()
    fire(house, session)
    told = house.shelf.transitions
    house = House(rules())
    house.service.recall([("gpu-07", hello())], {})
    house.service.restore(told, [])
    house.flush()
    _, agent = house.connect()
    house.wait(3)
    assert agent.asked == []


# ---------------------------------------------------------------- what is told


def test_what_was_done_is_stored_and_shown_with_the_alert_and_sent_to_nobody_by_itself() -> None:
    house = House(rules())
    session, _ = house.connect()
    alert = fire(house, session)
    house.now += 95
    house.service.reception.take(session, done(seq=2, alert=alert, at=house.now))
    house.flush()
    (act,) = shown(house, alert).acts
    assert act == wire.Act(
        act="memory_snapshot", at=house.now, node="gpu-07", ok=True,
        detail="91 s of history", path="/srv/acts/x", seconds=93.5,
    )  # fmt: skip
    stored = house.shelf.transitions[-1]
    assert (stored.change, stored.state, stored.acts) == ("acts", "firing", (act,))
    assert shown(house, alert).texts == shown(house, alert).texts | stored.texts


def test_several_acts_of_one_moment_are_all_kept(tmp_path: Path) -> None:
    house = House(rules())
    session, _ = house.connect()
    alert = fire(house, session)
    for seq, act in enumerate(("memory_snapshot", "stacks", "hook"), start=2):
        house.service.reception.take(session, done(act, seq=seq, alert=alert, ok=act != "hook"))
    house.flush()
    store = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    store.append(house.shelf.transitions)
    kept = store.alert(alert)
    store.close()
    assert kept is not None
    assert [(act.act, act.ok) for act in kept.acts] == [("memory_snapshot", True), ("stacks", True), ("hook", False)]
    assert shown(house, alert).acts == kept.acts


def test_the_end_of_an_alert_tells_what_was_done() -> None:
    house = House(rules())
    session, _ = house.connect()
    alert = fire(house, session)
    house.service.reception.take(session, done(seq=2, alert=alert))
    house.flush()
    seq = iter(range(3, 100))
    house.wait(20, lambda: house.service.reception.take(session, sample(next(seq), 10, at=house.now)))
    ended = next(one for one in house.channels.offered if one.id == alert and one.state == "resolved")
    assert [act.act for act in ended.acts] == ["memory_snapshot"]
    assert [act.act for act in shown(house, alert).acts] == ["memory_snapshot"]


def test_an_act_that_ends_after_its_alert_is_added_to_it() -> None:
    house = House(rules())
    session, _ = house.connect()
    alert = fire(house, session)
    seq = iter(range(2, 100))
    house.wait(20, lambda: house.service.reception.take(session, sample(next(seq), 10, at=house.now)))
    assert shown(house, alert).state == "resolved"
    ended_at = shown(house, alert).ended_at
    house.service.reception.take(session, done(seq=next(seq), alert=alert, at=house.now))
    house.flush()
    assert (shown(house, alert).state, shown(house, alert).ended_at) == ("resolved", ended_at)
    assert len(shown(house, alert).acts) == 1


@pytest.mark.parametrize("node", ["gpu-07", "gpu-08"])
def test_a_node_tells_of_its_own_alerts_only(node: str, caplog: pytest.LogCaptureFixture) -> None:
    house = House(rules())
    session, _ = house.connect()
    other, _ = house.connect(hello("gpu-08"))
    alert = fire(house, session) if node == "gpu-08" else "of nobody"
    before = len(house.shelf.transitions)
    house.service.reception.take(other if node == "gpu-08" else session, done(seq=2, alert=alert))
    house.flush()
    assert len(house.shelf.transitions) == before
    assert "which is not known (any more)" in caplog.text


# ---------------------------------------------------------------- what a rule may say


@pytest.mark.parametrize(
    ("old", "new", "mistake"),
    [
        (
            "[memory_snapshot, hook]",
            "[reboot]",
            'alerts.yaml:7:22: expected one of memory_snapshot, stacks, hook, got "reboot"',
        ),
        (
            "severity: critical",
            "severity: warning",
            "alerts.yaml:3:5: before_it_dies is for rules of severity critical",
        ),
    ],
)
def test_what_a_rule_cannot_want_is_a_mistake_with_its_place(old: str, new: str, mistake: str) -> None:
    with pytest.raises(RuleFileError) as found:
        rules(RULES.replace(old, new, 1))
    assert mistake in str(found.value)


def test_a_rule_may_want_it_on_some_nodes_only() -> None:
    text = RULES.replace("    before_it_dies: [memory_snapshot, hook]\n", "") + (
        "overrides:\n  - {alert: full, match: {node: gpu-07}, set: {before_it_dies: [stacks]}}\n"
    )
    house = House(rules(text))
    here, agent = house.connect()
    there, other = house.connect(hello("gpu-08"))
    for session in (here, there):
        house.service.reception.take(session, sample(1, 79))
    house.flush()
    assert [one.acts for one in agent.asked] == [("stacks",)]
    assert other.asked == []
