"""An agent that lies: it fills neither the memory, nor the database, nor Prometheus, and speaks for nobody else."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.server.house import GIB, START, House, hello, sample
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire
from oomwatch.service.allowance import (
    BYTES_PER_SECOND,
    BYTES_SAVED,
    FRAMES_PER_SECOND,
    FRAMES_SAVED,
    Bucket,
)
from oomwatch.service.sessions import MAX_NODES, RefusalError, Roster, Session
from oomwatch.service.timepiece import steady_clock
from oomwatch.service.vocabulary import (
    DAY_SECONDS,
    ENGINES_MAX,
    GPUS_MAX,
    RUNS_MAX,
    RUNS_OF_ALL_MAX,
    RUNS_SURE,
    Runs,
    Vocabulary,
)
from oomwatch.web.ingest import MALFORMED_MAX


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path)) as server:
        yield server


def session_of(server: RunningServer, node: str) -> Session:
    session = server.call(lambda: server.parts.service.roster.find(node))
    assert session is not None
    return session


def event(seq: int, body: wire.EventBody, run: str | None = None) -> wire.Event:
    return wire.Event(seq=seq, at=time.time(), body=body, run=run)


def series_of(server: RunningServer, node: str) -> set[str]:
    """What a scrape tells of a node: every series by its name and labels."""
    told = text_string_to_metric_families(server.get("/metrics").text)
    return {
        f"{one.name} {sorted(one.labels.items())}"
        for family in told
        for one in family.samples
        if one.labels.get("node") == node
    }


# ---------------------------------------------------------------- how much


def test_a_flood_is_heard_slowly_and_costs_nobody_else_anything(server: RunningServer) -> None:
    padded = wire.encode(sample(1, 40, time.time())).decode().replace("{", f'{{"pad":"{"x" * (7 * 2**20)}",', 1)
    with AgentClient(server) as liar, AgentClient(server) as honest:
        liar.greet(hello("liar", sent_at=time.time()))
        honest.greet(hello("honest", sent_at=time.time()))
        for _ in range(8):
            liar.connection.send(padded)
        session = session_of(server, "liar")
        paced = session.allowance
        assert paced is not None
        until("the flood to be noticed", lambda: paced.owed_seconds(steady_clock()) > 0)
        honest.say(sample(1, 40, time.time()))
        honest.hear_ack_of(1)
    assert server.parts.store.progress("honest", "s1") == 1


def test_who_says_too_much_is_not_heard_sooner_by_connecting_anew() -> None:
    house = House()
    session, _ = house.connect()
    house.service.roster.charge(session, BYTES_SAVED + int(10 * BYTES_PER_SECOND))
    for again in ("s1", "s2"):
        house.now += 4
        session.peer = None
        with pytest.raises(RefusalError, match="says too much") as caught:
            house.connect(hello(session=again, sent_at=house.now))
        assert (caught.value.refused.reason, caught.value.refused.retry) == (wire.RefusedReason.OVERLOADED, True)
    house.now += 4
    house.connect(hello(session="s2", sent_at=house.now))


def test_what_an_honest_agent_saved_up_is_taken_at_once_and_more_is_not() -> None:
    frames, bytes_ = Bucket(FRAMES_SAVED, FRAMES_PER_SECOND), Bucket(BYTES_SAVED, BYTES_PER_SECOND)
    assert max(frames.take(1, START) for _ in range(100_000)) == pytest.approx(0, abs=0.01)  # the outbox' bounds
    assert bytes_.take(32 * 2**20, START) == 0
    assert frames.take(100, START) == pytest.approx(1.0, abs=0.01)
    assert frames.owed_seconds(START + 2) == 0
    assert bytes_.take(17 * 2**20, START) == pytest.approx(2.0, abs=0.01)


def test_what_waits_for_the_database_is_bounded_in_bytes() -> None:
    house = House(bytes_max=1_000_000)
    session, agent = house.connect()
    house.shelf.is_full = True
    for seq in range(1, 101):
        house.service.reception.take(session, sample(seq, 40), 50_000)
    assert house.journal.waiting()[0] < 22
    assert session.has_gap
    assert house.journal.refused_total == 1  # what follows waits with it
    house.shelf.is_full = False
    house.flush()
    assert agent.acknowledged[-1] == session.queued_seq
    assert agent.dismissed == [None]  # it comes again, and sends what found no room
    house.service.reception.take(session, sample(session.queued_seq + 1, 40), 50_000)
    assert session.has_gap


# ---------------------------------------------------------------- names


def test_made_up_runs_are_refused_and_an_honest_run_is_not(server: RunningServer) -> None:
    made_up = RUNS_MAX + 200
    with AgentClient(server) as liar, AgentClient(server) as honest:
        liar.greet(hello("liar", sent_at=time.time()))
        liar.say(*(event(seq, wire.Reshard(marker="x"), f"run-{seq}") for seq in range(1, made_up + 1)))
        liar.hear_ack_of(made_up)
        honest.greet(hello("honest", sent_at=time.time()))
        honest.say(event(1, wire.Step(step=1, step_seconds=60.0), "real"))
        honest.hear_ack_of(1)
    runs = server.call(lambda: set(server.parts.service.engine.fleet.runs))
    assert len(runs) == RUNS_MAX + 1
    assert "real" in runs
    assert session_of(server, "liar").refused_total == 200
    assert len(server.parts.store.runs()) == RUNS_MAX + 1


def with_runs(seq: int, used_gib: float, names: range) -> wire.Sample:
    """A card on which a process of each of these runs works."""
    processes = tuple(wire.GpuProcess(pid=number + 1, run=f"run-{number}", used_bytes=1) for number in names)
    told = sample(seq, used_gib)
    return msgspec.structs.replace(told, gpus=(msgspec.structs.replace(told.gpus[0], processes=processes),))


def test_a_card_whose_processes_are_of_too_many_runs_is_judged_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    house = House()
    session, agent = house.connect()
    for seq in (1, 2):
        house.service.reception.take(session, with_runs(seq, 79, range(RUNS_MAX + 5)))
    house.flush()
    assert house.log == ["stored firing", "shown firing", "sent firing"]
    stored = [one for one in house.shelf.messages if isinstance(one, wire.Sample)]
    assert [len(one.gpus[0].processes or ()) for one in stored] == [RUNS_MAX + 5] * 2
    named = [{process.run for process in one.gpus[0].processes or ()} - {None} for one in stored]
    assert len(named[0]) == RUNS_MAX
    assert named[0] == named[1]
    assert (session.refused_total, session.nameless_total, agent.acknowledged) == (0, 2, [2])
    assert caplog.text.count("names more runs or engines than there is room for") == 1


def test_a_card_beside_more_engines_than_there_is_room_for_is_judged_all_the_same() -> None:
    """Engines that come up on other ports all day, as random ports are."""
    house = House()
    session, agent = house.connect()
    for seq in (1, 2, 3):
        names = range(seq * 1000, seq * 1000 + 1000)
        engines = tuple(wire.EngineSample(engine="vllm", address=f"127.0.0.1:{port}") for port in names)
        house.service.reception.take(session, msgspec.structs.replace(sample(seq, 79), engines=engines))
    house.flush()
    stored = [one for one in house.shelf.messages if isinstance(one, wire.Sample)]
    assert [len(one.engines) for one in stored] == [1000, 1000, ENGINES_MAX - 2000]
    assert [one.gpus[0].used_bytes for one in stored] == [79 * GIB] * 3
    assert (session.refused_total, session.nameless_total, agent.acknowledged) == (0, 1, [3])


def test_samples_that_arrive_in_one_moment_have_a_millisecond_each() -> None:
    """Of a clock that is ahead by less than what counts as skew, all are of now: one would stand for all."""
    house = House()
    session, _ = house.connect()
    now = house.now
    for seq in range(1, 5):
        house.service.reception.take(session, sample(seq, 79, now + 1.0 + seq / 10))
    house.service.reception.take(session, sample(5, 79, now - 0.5))
    house.flush()
    stored = [round(1000 * (one.at - now)) for one in house.shelf.messages if isinstance(one, wire.Sample)]
    assert stored == [0, 1, 2, 3, 4]


def test_a_sample_of_a_clock_that_was_set_back_keeps_its_time() -> None:
    house = House()
    session, _ = house.connect()
    now = house.now
    for seq, ago in ((1, 10.0), (2, 60.0), (3, 59.0)):
        house.service.reception.take(session, sample(seq, 79, now - ago))
    house.flush()
    stored = [round(now - one.at) for one in house.shelf.messages if isinstance(one, wire.Sample)]
    assert stored == [10, 60, 59]


def test_an_agent_that_names_one_run_too_many_may_come_back_without_it() -> None:
    house = House()
    session, _ = house.connect()
    house.service.reception.take(session, with_runs(1, 10, range(RUNS_MAX)))
    session.peer = None
    house.connect(hello(run="one-too-many", sent_at=house.now))
    assert house.service.engine.fleet.nodes["gpu-07"].hello.run is None


def test_liars_who_use_up_all_runs_take_no_honest_nodes_own() -> None:
    of_all = Vocabulary(RUNS_OF_ALL_MAX)
    liars = [Runs(of_all) for _ in range(RUNS_OF_ALL_MAX // RUNS_MAX)]
    for liar, runs in enumerate(liars):
        assert runs.surplus([f"{liar} {number}" for number in range(RUNS_MAX)], START) == []
    honest = Runs(of_all)
    of_today = [f"job {number:02}" for number in range(RUNS_SURE)]
    assert honest.surplus([*of_today, "job 99"], START + 1) == ["job 99"]
    assert honest.surplus(of_today, START + 2) == []
    assert honest.surplus(["0 0"], START + 2) == []  # everybody knows it already
    assert liars[0].surplus(["another"], START + 2) == ["another"]
    assert honest.surplus(["job 99"], START + DAY_SECONDS + 3) == []


def test_all_nodes_together_can_make_up_so_many_runs() -> None:
    vocabulary = Vocabulary(3)
    assert vocabulary.takes({"a", "b"}, START)
    assert vocabulary.takes({"b", "c"}, START + 10)
    assert not vocabulary.takes({"d"}, START + 10)
    assert vocabulary.takes({"a"}, START + 20)
    assert vocabulary.takes({"d"}, START + 10 + DAY_SECONDS)
    assert len(vocabulary) == 2  # a is a second older than a day, b and c as well


def test_other_gpus_each_second_end_at_a_limit_and_prometheus_keeps_its_series(server: RunningServer) -> None:
    seen: set[str] = set()
    with AgentClient(server) as liar:
        liar.greet(hello("liar", sent_at=time.time()))
        for second in range(40):
            cards = tuple(
                wire.GpuFacts(gpu=f"{second}-{number}", uuid=f"GPU-{second}-{number}", name="x", total_bytes=80 * GIB)
                for number in range(100)
            )
            facts = wire.NodeFacts(gpus=cards)
            liar.say(msgspec.structs.replace(hello("liar", sent_at=time.time()), facts=facts))
            readings = tuple(wire.GpuSample(gpu=card.gpu, used_bytes=GIB) for card in cards)
            liar.say(wire.Sample(seq=second + 1, at=time.time(), gpus=readings))
            if second % 10 == 9:
                liar.hear_ack_of(second + 1)
                seen |= series_of(server, "liar")
    assert len({one for one in seen if one.startswith("oomwatch_gpu_info")}) <= GPUS_MAX
    assert session_of(server, "liar").refused_total >= 2 * (40 - 21)
    assert len(server.parts.store.gpus(node="liar")) <= GPUS_MAX


def test_the_largest_node_that_there_can_be_has_so_many_series(server: RunningServer) -> None:
    cards = tuple(
        wire.GpuFacts(gpu=str(number), uuid=f"GPU-{number}", name="x", total_bytes=80 * GIB)
        for number in range(wire.GPUS_MAX)
    )
    lies = wire.Sample(
        seq=1,
        at=time.time(),
        gpus=tuple(wire.GpuSample(gpu=card.gpu, used_bytes=GIB) for card in cards),
        torch=tuple(
            wire.TorchSample(pid=number, gpu=str(number % 8), role=f"role-{number}", reserved_bytes=GIB)
            for number in range(wire.TORCH_MAX)
        ),
        engines=tuple(
            wire.EngineSample(engine="vllm", address=f"h:{number}", kv_used_ratio=0.5)
            for number in range(wire.ENGINES_MAX)
        ),
    )
    with AgentClient(server) as liar:
        liar.greet(msgspec.structs.replace(hello("liar", sent_at=time.time()), facts=wire.NodeFacts(gpus=cards)))
        liar.say(lies)
        liar.hear_ack_of(1)
        told = series_of(server, "liar")
    assert len(told) < 20 * wire.GPUS_MAX + 4 * wire.ENGINES_MAX
    assert not any("role-" in one for one in told)


def test_more_nodes_than_there_can_be_are_refused() -> None:
    roster = Roster(lambda: START)

    class Peer:
        def acknowledge(self, seq: int) -> None: ...
        def ask(self, request: wire.ActRequest) -> None: ...
        def dismiss(self, refused: wire.Refused | None) -> None: ...

    for number in range(MAX_NODES):
        roster.admit(hello(f"n{number}", gpus=0), Peer(), 0, START)
    with pytest.raises(RefusalError, match="nodes already"):
        roster.admit(hello("one more", gpus=0), Peer(), 0, START)
    assert len(list(roster)) == MAX_NODES


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("name", hello("n" * 254)),
        ("version", msgspec.structs.replace(hello(), agent_version="v" * 254)),
        ("kernel", msgspec.structs.replace(
            hello(), facts=wire.NodeFacts(host=wire.HostFacts(memory_total_bytes=1, kernel="k" * 2001)))),
        ("protocol", msgspec.structs.replace(hello(), protocol=2**60)),
    ],
)  # fmt: skip
def test_a_hello_that_is_too_much_is_none(server: RunningServer, what: str, told: wire.Hello) -> None:
    with AgentClient(server) as liar:
        liar.say(told)
        refused = liar.hear_refusal()
    assert refused.reason is wire.RefusedReason.MALFORMED, what
    assert "no hello" in refused.detail


# ---------------------------------------------------------------- figures and times

ODD_FRAMES = [
    '{"type":"sample","seq":1,"at":NaN}',
    '{"type":"sample","seq":1,"at":Infinity}',
    '{"type":"sample","seq":1,"at":1e400}',
    '{"type":"sample","seq":-1,"at":1}',
    f'{{"type":"sample","seq":{2**70},"at":1}}',
    '{"type":"sample","seq":1,"at":-1}',
    '{"type":"sample","seq":1,"at":1,"gpus":[{"gpu":"0","used_bytes":-5}]}',
    '{"type":"sample","seq":1,"at":1,"gpus":[{"gpu":"0","utilization_ratio":1e300}]}',
    '{"type":"sample","seq":1,"at":1,"gpus":[{"gpu":"0","temperature_celsius":-1e9}]}',
    '{"type":"event","seq":1,"at":1,"body":{"kind":"step","step":1,"tokens_total":1e300}}',
    '{"type":"event","seq":1,"at":1,"body":{"kind":"config","values":{"a":1' + "0" * 400 + "}}}",
    '{"type":"event","seq":1,"at":1,"body":{"kind":"step","step":1,"phase_seconds":{'
    + ",".join(f'"p{number}":1' for number in range(101))
    + "}}}",
    '{"type":"event","seq":1,"at":1,"body":{"kind":"engine_wake","tags":[' + ",".join(['"t"'] * 101) + "]}}",
    "\u0000",
    '"' * 1000,
    "[" * 100_000,
]


@pytest.mark.parametrize("frame", ODD_FRAMES, ids=range(len(ODD_FRAMES)))
def test_odd_figures_are_malformed_where_they_are_read(frame: str) -> None:
    with pytest.raises(wire.MalformedMessageError):
        wire.decode_agent(frame)


def test_odd_frames_are_counted_skipped_and_end_the_connection_at_last(server: RunningServer) -> None:
    with AgentClient(server) as liar:
        liar.greet(hello("liar", sent_at=time.time()))
        for number in range(MALFORMED_MAX):
            liar.connection.send(ODD_FRAMES[number % len(ODD_FRAMES)])
        assert liar.hear_refusal().reason is wire.RefusedReason.MALFORMED
    assert session_of(server, "liar").malformed_total == MALFORMED_MAX


def test_times_far_away_and_backwards_raise_nothing_and_hide_nothing(server: RunningServer) -> None:
    now = time.time()
    with AgentClient(server) as liar:
        liar.greet(hello("liar", sent_at=now))
        for number, at in enumerate((0.0, 1e12, now - 1e9, now + 1e6, now - 3600, 5.0)):
            liar.say(sample(2 * number + 1, 40, at))
            liar.say(event(2 * number + 2, wire.Step(step=1000 - number, step_seconds=1.0), "r"))
        liar.hear_ack_of(12)  # what was dated ahead counts as of when it came
        liar.say(sample(13, 79, time.time()))
        until("the alert of now", lambda: server.get("/api/v1/alerts?state=firing").json())
        liar.hear_ack_of(13)
    told = server.get("/api/v1/nodes/liar").json()
    assert told["sample"]["at"] <= time.time()
    server.call(server.parts.service.beat)
    assert server.parts.service.defects.total == 0


# ---------------------------------------------------------------- in another's name


def test_nobody_speaks_for_a_node_that_is_connected(server: RunningServer) -> None:
    with AgentClient(server) as honest, AgentClient(server) as liar, AgentClient(server) as other:
        honest.greet(hello("honest", sent_at=time.time()))
        liar.say(hello("honest", session="mine", sent_at=time.time()))
        assert liar.hear_refusal().reason is wire.RefusedReason.NODE_TAKEN
        other.greet(hello("other", session="mine", sent_at=time.time()))
        other.say(hello("honest", session="mine", sent_at=time.time()))
        assert other.hear_refusal().reason is wire.RefusedReason.MALFORMED
        honest.say(sample(1, 40, time.time()))
        honest.hear_ack_of(1)


def test_nobody_gives_another_run_his_own_name(server: RunningServer) -> None:
    with AgentClient(server) as honest, AgentClient(server) as liar:
        honest.greet(hello("honest", sent_at=time.time()))
        liar.greet(hello("liar", sent_at=time.time()))
        honest.say(event(1, wire.Step(step=1, step_seconds=60.0), "real"))
        honest.hear_ack_of(1)
        liar.say(event(1, wire.RunNamed(provisional="real"), "mine"))
        liar.hear_ack_of(1)
        honest.say(event(2, wire.Step(step=2, step_seconds=60.0), "real"))
        honest.hear_ack_of(2)
    assert [point.step.step for point in server.parts.store.steps("real", 10)] == [1, 2]
    assert session_of(server, "liar").refused_total == 1


def test_nobody_tells_what_was_done_for_anothers_alert(server: RunningServer) -> None:
    with AgentClient(server) as honest, AgentClient(server) as liar:
        honest.greet(hello("honest", sent_at=time.time()))
        liar.greet(hello("liar", sent_at=time.time()))
        honest.say(sample(1, 79, time.time()))
        (alert,) = until("an alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        liar.say(event(1, wire.ActDone(id=alert["id"], act="stacks", ok=True, detail="all is well"), None))
        liar.hear_ack_of(1)
    assert "all is well" not in server.get(f"/api/v1/alerts/{alert['id']}").text
