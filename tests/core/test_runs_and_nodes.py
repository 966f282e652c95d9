"""A run over several nodes is one run, and what happens on a node is told of that node, whoever read it."""

from tests.core.story import GIB, Story, shipped

from oomwatch import wire
from oomwatch.core.names import RunNames
from oomwatch.core.runrecord import RunRecord

STAND_IN = "session_1 job 01000000"
NAME = "demo/qwen"
OOM = wire.DeviceOom(error="torch.OutOfMemoryError", local_index=0)


def _named(story: Story) -> Story:
    return story.event(wire.RunNamed(provisional=STAND_IN), run=NAME)


def _run(story: Story) -> RunRecord:
    (run,) = story.engine.fleet.runs.values()
    return run


def _two_nodes(*, addresses: bool = True) -> Story:
    story = Story(shipped("out_of_memory"), gpus=2, addresses=("10.0.0.1", "172.17.0.1") if addresses else ())
    story.hello("m", gpus=2, addresses=("10.0.0.2", "172.17.0.1") if addresses else ())
    return story


def _table(story: Story, *pids: int, node: str, run: str | None = None) -> Story:
    tables = (
        wire.GpuSample(gpu=str(index), used_bytes=GIB, processes=(wire.GpuProcess(pid=pid, run=run),))
        for index, pid in enumerate(pids)
    )
    return story.sample(*tables, node=node)


# ------------------------------------------------------------ one run


def test_what_went_by_the_jobs_name_is_the_run_that_the_driver_names() -> None:
    story = _two_nodes()
    story.event(wire.Reshard(marker="resume_kv_cache"), node="m", run=STAND_IN, pid=7)
    _named(story).event(wire.Step(step=1), run=NAME)
    story.event(wire.Reshard(marker="resume_kv_cache"), node="m", run=STAND_IN, pid=7)
    run = _run(story)
    assert (run.name, list(run.nodes), len(run.steps), run.cycles_total()) == (NAME, ["m", "n"], 1, 2)
    assert story.engine.fleet.nodes["m"].sole_run() == NAME


def test_a_run_that_was_known_by_its_job_alone_keeps_its_steps() -> None:
    story = _two_nodes()
    story.event(wire.Step(step=1, rollout_seconds=30.0), run=STAND_IN)
    assert len(_run(_named(story)).steps) == 1


def test_a_gpu_that_was_of_the_job_is_of_the_run() -> None:
    story = _two_nodes()
    _table(story, 11, 12, node="m", run=STAND_IN)
    _named(story)
    assert {gpu.run for gpu in story.engine.fleet.nodes["m"].gpus.values()} == {NAME}


def test_the_gpus_of_a_run_are_those_of_all_nodes_with_its_processes() -> None:
    story = _two_nodes().step(1)
    _table(story, 11, 12, node="m", run="r")
    run = _run(story)
    assert [gpu.subject.name for gpu in story.engine.fleet.gpus_of_run(run)] == ["n", "n", "m", "m"]
    assert story.engine.fleet.nodes["m"].sole_run() == "r", "so that the memory of that node's host is of the run too"


def test_processes_alone_make_no_run() -> None:
    assert not _table(_two_nodes(), 11, node="m", run="grpo-12").engine.fleet.runs


def test_an_alert_of_a_job_that_got_a_name_is_over() -> None:
    story = _two_nodes()
    story.event(OOM, run=STAND_IN, ip="10.9.9.9")
    assert story.states == ["firing"]
    _named(story).wait(2)
    assert story.states == ["firing", "resolved"]
    assert story.heard[-1].reason == "run ended"


def test_every_part_of_a_message_calls_the_run_by_its_name() -> None:
    names = RunNames()
    names.learn(STAND_IN, NAME)
    sample = wire.Sample(
        seq=1,
        at=1.0,
        gpus=(wire.GpuSample(gpu="0", processes=(wire.GpuProcess(pid=1, run=STAND_IN),)), wire.GpuSample(gpu="1")),
        host=wire.HostSample(processes=(wire.HostProcess(pid=1, name="ray", rss_bytes=1, run=STAND_IN),)),
        torch=(wire.TorchSample(pid=1, run=STAND_IN), wire.TorchSample(pid=2, run="another")),
        engines=(wire.EngineSample(engine="vllm", address="a:1", run=STAND_IN),),
    )
    text = wire.encode(names.apply(sample)).decode()
    assert text == wire.encode(sample).decode().replace(STAND_IN, NAME)
    event = wire.Event(seq=1, at=1.0, body=wire.Step(step=1), run=STAND_IN)
    assert names.apply(event) == wire.Event(seq=1, at=1.0, body=wire.Step(step=1), run=NAME)


def test_a_name_of_a_name_is_followed_and_a_run_is_no_stand_in_for_itself() -> None:
    names = RunNames()
    names.learn("b", "c")
    names.learn("a", "b")
    names.learn("c", "c")
    assert [names.of(run) for run in ("a", "b", "c", "d")] == ["c", "c", "c", "d"]
    assert "c" not in names


# ------------------------------------------------------------ where it happened


def test_another_nodes_line_is_about_that_node_and_the_gpu_of_its_process() -> None:
    story = _two_nodes()
    _table(story, 11, 12, node="m")
    story.event(OOM, pid=12, ip="10.0.0.2")
    assert [one.labels for one in story.heard] == [{"node": "m", "gpu": "1", "run": "r"}]


def test_another_nodes_line_of_an_unknown_process_is_about_that_node() -> None:
    story = _two_nodes().event(OOM, node="m", pid=5).event(OOM, pid=12, ip="10.0.0.2")
    assert [one.labels for one in story.heard] == [{"node": "m", "run": "r"}]


def test_what_happens_on_a_node_without_an_agent_is_told_of_the_run() -> None:
    story = _two_nodes().event(OOM, pid=12, ip="10.0.0.3")
    assert [(one.labels, one.facts["node"], one.state) for one in story.heard] == [({"run": "r"}, "10.0.0.3", "firing")]


def test_an_address_that_several_nodes_have_names_none_of_them() -> None:
    story = Story(shipped("out_of_memory"), addresses=("10.0.0.1",))
    for node in ("m", "k"):
        story.hello(node, addresses=("172.17.0.1",))
    story.event(OOM, pid=12, ip="172.17.0.1")
    assert [one.labels for one in story.heard] == [{"run": "r"}]


def test_a_nodes_own_address_is_itself() -> None:
    story = _two_nodes().event(OOM, pid=12, ip="10.0.0.1")
    assert [one.labels for one in story.heard] == [{"node": "n", "run": "r"}]


def test_an_agent_that_does_not_tell_its_addresses_is_taken_at_its_word() -> None:
    story = _two_nodes(addresses=False).event(OOM, pid=12, ip="10.0.0.2")
    assert [one.labels for one in story.heard] == [{"node": "n", "run": "r"}]
