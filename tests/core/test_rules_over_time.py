"""The shipped rules, each over time: what raises it, what does not, and what ends it."""

import pytest
from tests.core.story import GIB, Story, rules_of, shipped

from oomwatch import wire

# ---------------------------------------------------------------- torch_reserved_high


def torch(story: Story, gib: float, *, device_gib: float | None = None, gpu: str | None = "0") -> None:
    used = None if device_gib is None else int(device_gib * GIB)
    story.event(
        wire.TorchMemory(reserved_bytes=int(gib * GIB), device_used_bytes=used, device_total_bytes=80 * GIB, gpu=gpu)
    )


def reserved(*gibs: float, every: int = 20, device_gib: float | None = 79.0) -> Story:
    story = Story(shipped("torch_reserved_high"))
    for gib in gibs:
        torch(story, gib, device_gib=device_gib)
        story.wait(every)
    return story


@pytest.mark.parametrize(
    ("gibs", "fires"),
    [
        ((60, 66, 70, 74), True),  # rises past 90 %
        ((74, 74, 74, 74, 74, 74), False),  # high and steady
        ((50, 55, 60, 65), False),  # rising, but far from full
        ((78, 76, 74, 73), False),  # high and falling
        ((4, 73, 4, 73, 4, 73, 4, 73, 4), False),  # a steady sawtooth
        ((4, 66, 4, 69, 4, 72, 4, 75, 4), True),  # a sawtooth whose peaks rise
        ((4, 73, 73.1, 73, 73.1, 73), False),  # one rise is a warm-up
        ((70, 75), False),  # two points are no trend
        ((50, 50, 66, 76), True),  # steady until it rises steeply
    ],
)
def test_torch_reserved_fires_when_its_peaks_rise_above_the_bound(gibs: tuple[float, ...], *, fires: bool) -> None:
    assert ("firing" in reserved(*gibs).states) is fires


def test_torch_reserved_names_the_gpu_of_the_process_and_its_run() -> None:
    assert reserved(60, 66, 70, 74).heard[0].labels == {"node": "n", "gpu": "0", "run": "r"}


def test_torch_reserved_of_an_unknown_gpu_is_the_runs() -> None:
    story = Story(shipped("torch_reserved_high"))
    for gib in (60, 66, 70, 74):
        torch(story, gib, device_gib=79, gpu=None)
        story.wait(20)
    assert story.heard[0].labels == {"run": "r"}


def test_the_device_is_believed_where_torch_counts_a_sleeping_pool() -> None:
    """torch's counter can exceed the memory in use: the pages of a sleeping engine are gone and stay counted."""
    assert reserved(60, 66, 70, 74, device_gib=40).heard == []


def test_a_counter_beyond_the_card_is_not_believed_at_all() -> None:
    assert reserved(85, 90, 95, 99, device_gib=None).heard == []


def test_torch_reserved_resolves_when_it_stops_rising() -> None:
    story = reserved(60, 66, 70, 74)
    for _ in range(40):
        torch(story, 74, device_gib=79)
        story.wait(30)
    assert story.states == ["firing", "resolved"]


def test_the_peak_of_the_step_line_counts_for_the_gpu_that_prints_memory_lines() -> None:
    story = Story(shipped("torch_reserved_high"))
    torch(story, 40, device_gib=79)
    for number, gib in enumerate((64, 68, 72, 76), start=4):
        story.wait(30, lambda s: s.used(78))
        story.step(number, 10.0, torch_reserved_peak_bytes=int(gib * GIB), step_seconds=30.0)
    assert [one.labels for one in story.heard] == [{"node": "n", "gpu": "0", "run": "r"}]


def test_the_peak_of_the_step_line_is_measured_against_the_device_peak_of_that_step() -> None:
    story = Story(shipped("torch_reserved_high"))
    torch(story, 40, device_gib=79)
    for number, gib in enumerate((64, 68, 72, 76), start=4):
        story.wait(30, lambda s: s.used(30))
        story.step(number, 10.0, torch_reserved_peak_bytes=int(gib * GIB), step_seconds=30.0)
    assert story.heard == []


def probed(story: Story, gib: float, *, gpu: str = "0", pids: tuple[int, ...] = (7,)) -> None:
    readings = tuple(wire.TorchSample(pid=pid, gpu=gpu, reserved_bytes=int(gib * GIB / len(pids))) for pid in pids)
    story.sample(wire.GpuSample(gpu=gpu, used_bytes=79 * GIB), torch=readings)


@pytest.mark.parametrize("pids", [(7,), (7, 8)])
def test_the_probes_readings_fire_like_the_logs_and_processes_of_one_gpu_add_up(pids: tuple[int, ...]) -> None:
    story = Story(shipped("torch_reserved_high"), run="r")
    for second in range(300):
        story.wait(1, lambda s, second=second: probed(s, 60 + second / 16, pids=pids))  # type: ignore[misc]
    assert [one.labels for one in story.heard] == [{"node": "n", "gpu": "0", "run": "r"}]


def test_while_the_probe_tells_log_lines_are_not_mixed_in() -> None:
    story = Story(shipped("torch_reserved_high"), run="r")
    for gib in (60, 66, 70, 74):
        story.wait(10, lambda s: probed(s, 30))
        torch(story, gib, device_gib=79)
    assert story.heard == []


# ---------------------------------------------------------------- rollout_time_jump


def rollouts(*seconds: float) -> Story:
    story = Story(shipped("rollout_time_jump"))
    for number, value in enumerate(seconds, start=1):
        story.wait(5).step(number, value)
    return story


@pytest.mark.parametrize(
    ("seconds", "fires"),
    [
        ((30, 30, 30, 31, 31, 31, 95), True),  # more than three times the usual
        ((30, 30, 30, 31, 31, 31, 92), False),  # not quite +200 %
        ((30, 30, 30, 31, 104), True),  # one usual step is enough when all others agree
        ((120, 35, 30, 30, 100), False),  # few usual steps, and the warm-up was slower than this
        ((30, 30, 120), False),  # steps 1 to 3 are not judged
        ((30, 30, 30), False),
        ((90, 30, 30, 30, 30, 30, 30, 31), False),  # the first step compiles
    ],
)
def test_a_rollout_fires_when_it_takes_three_times_its_usual_time(seconds: tuple[float, ...], *, fires: bool) -> None:
    assert ("firing" in rollouts(*seconds).states) is fires


def test_a_rollout_alert_says_what_is_usual() -> None:
    (firing,) = rollouts(30, 30, 30, 30, 32, 34, 104).heard
    assert firing.labels == {"run": "r"}
    assert firing.value == 104
    assert firing.limit == pytest.approx(96)
    assert firing.facts["baseline_seconds"] == 32
    assert firing.facts["increase_ratio"] == pytest.approx(2.25)


def test_a_slow_rollout_resolves_with_the_next_usual_step() -> None:
    story = rollouts(30, 30, 30, 31, 31, 104, 100, 31).wait(60)
    assert story.states == ["firing", "resolved"]


def test_slow_steps_do_not_become_usual_at_once() -> None:
    assert rollouts(30, 30, 30, 31, *[104] * 15).states == ["firing"]


def test_a_level_that_has_lasted_twenty_steps_is_usual() -> None:
    assert rollouts(30, 30, 30, 31, *[104] * 22).wait(60).states == ["firing", "resolved"]


def test_validation_only_steps_are_no_baseline_and_are_not_judged() -> None:
    story = Story(shipped("rollout_time_jump"))
    story.event(wire.Step(step=0, rollout_seconds=900.0, validation_only=True))
    for number in range(1, 7):
        story.wait(5).step(number, 30.0)
    story.event(wire.Step(step=6, rollout_seconds=900.0, validation_only=True)).wait(30)
    assert story.heard == []


def test_the_first_step_after_a_resume_is_neither_baseline_nor_judged() -> None:
    story = rollouts(30, 30, 30, 31, 31, 31)
    story.wait(5).step(5, 300.0)  # a checkpoint was loaded: step 5 comes again, and compiles
    assert story.heard == []
    story.wait(5).step(6, 31.0).wait(5).step(7, 300.0)
    assert story.heard == []  # 300 s is what the segment has seen; with one usual step that is no jump
    story.wait(5).step(8, 310.0)
    assert story.states == ["firing"]


def test_a_step_line_read_twice_is_one_step() -> None:
    story = rollouts(30, 30, 30, 31, 31)
    story.step(5, 31.0)
    assert len(story.engine.fleet.runs["r"].steps) == 5


def test_old_steps_are_a_baseline_and_no_news() -> None:
    """What was in the log before the agent came: it says what is usual, and its own jump is nobody's alarm now."""
    story = Story(shipped("rollout_time_jump"))
    for number, seconds in enumerate((30, 30, 30, 31, 31, 31, 31, 31), start=1):
        story.event(wire.Step(step=number, rollout_seconds=float(seconds)), backlog=True)
    story.wait(5).step(9, 104.0)
    assert story.states == ["firing"]


# ---------------------------------------------------------------- reshard_storm


def cycles(per_minute: int, minutes: int = 3, marker: str = "resume_kv_cache", pids: tuple[int, ...] = (7,)) -> Story:
    story = Story(shipped("reshard_storm"))
    for _ in range(per_minute * minutes):
        story.wait(60 / per_minute)
        for pid in pids:
            story.event(wire.Reshard(marker=marker), pid=pid)
    return story


@pytest.mark.parametrize(("per_minute", "fires"), [(1, False), (6, False), (10, True), (30, True)])
def test_resharding_fires_when_it_is_more_frequent_than_the_limit(per_minute: int, *, fires: bool) -> None:
    story = cycles(per_minute)
    assert ("firing" in story.states) is fires
    assert not story.heard or story.heard[0].labels == {"run": "r"}


def test_one_cycle_is_counted_once_however_many_processes_print_it() -> None:
    assert cycles(2, marker="wake_up_weights", pids=tuple(range(8))).heard == []


def test_one_cycle_is_counted_once_however_many_markers_it_prints() -> None:
    story = Story(shipped("reshard_storm"))
    for _ in range(9):
        for marker in ("update_weights", "resume_kv_cache", "wake_up_weights"):
            story.wait(7).event(wire.Reshard(marker=marker), pid=7)
    run = story.engine.fleet.runs["r"]
    assert (run.cycle_marker(), run.cycles_total()) == ("resume_kv_cache", 9)
    assert story.heard == []


def test_resharding_fires_when_it_takes_too_much_of_a_step() -> None:
    story = Story(shipped("reshard_storm"))
    story.step(4, 10.0, step_seconds=60.0, reshard_seconds=9.0)
    assert story.heard == []
    story.wait(60).step(5, 10.0, step_seconds=60.0, reshard_seconds=20.0)
    (firing,) = story.heard
    assert firing.unit == "ratio"
    assert firing.value == pytest.approx(1 / 3)


def test_a_storm_resolves_when_it_calms_down() -> None:
    assert cycles(30).wait(180).states == ["firing", "resolved"]


def test_old_markers_are_no_storm() -> None:
    story = Story(shipped("reshard_storm"))
    for _ in range(50):
        story.event(wire.Reshard(marker="resume_kv_cache"), backlog=True)
    assert story.wait(5).heard == []


# ---------------------------------------------------------------- host_memory_high


def host(story: Story, used_gib: float, cgroup_gib: float | None = None) -> None:
    cgroup = None if cgroup_gib is None else int(cgroup_gib * GIB)
    processes = (wire.HostProcess(pid=9, name="ray::TaskRunner", rss_bytes=300 * GIB),)
    sample = wire.HostSample(memory_used_bytes=int(used_gib * GIB), cgroup_used_bytes=cgroup, processes=processes)
    story.sample(host=sample)


def test_a_host_that_fills_warns_and_then_says_critical() -> None:
    story = Story(shipped("host_memory_high"))
    story.wait(40, lambda s: host(s, 900)).wait(20, lambda s: host(s, 950))
    assert [(one.severity, one.state) for one in story.heard] == [("warning", "firing"), ("critical", "firing")]
    assert story.heard[0].facts["process"] == "ray::TaskRunner"


def test_the_containers_limit_counts_where_it_is_the_tighter() -> None:
    story = Story(shipped("host_memory_high", "warning"))
    story.hello("n", limit_bytes=100 * GIB)
    story.wait(40, lambda s: host(s, 300, cgroup_gib=90))
    assert story.heard[0].facts["limited_by"] == "container"
    assert story.heard[0].value == pytest.approx(0.9)


def test_a_host_without_readings_is_unknown() -> None:
    story = Story(shipped("host_memory_high"))
    assert story.wait(60, lambda s: s.sample(host=wire.HostSample())).heard == []


# ---------------------------------------------------------------- out_of_memory, gpu_lost, agent_silent

OOM = wire.DeviceOom(error="torch.OutOfMemoryError", tried_bytes=2 * GIB, phase="update_weights", gpu="0")


def test_an_out_of_memory_message_fires_at_once_and_names_process_and_phase() -> None:
    story = Story(shipped("out_of_memory")).wait(5).event(OOM, pid=25591)
    (firing,) = story.heard
    assert (firing.state, firing.severity, firing.labels) == (
        "firing",
        "critical",
        {"node": "n", "gpu": "0", "run": "r"},
    )
    assert firing.facts["pid"] == 25591
    assert firing.facts["phase"] == "update_weights"
    assert firing.facts["tried_bytes"] == 2 * GIB


def test_an_out_of_memory_message_that_was_already_there_is_no_news() -> None:
    assert Story(shipped("out_of_memory")).event(OOM, backlog=True).wait(60).heard == []


def test_messages_of_one_gpu_are_one_alert_which_ends_ten_minutes_after_the_last() -> None:
    story = Story(shipped("out_of_memory")).event(OOM).wait(300).event(OOM).wait(500)
    assert story.states == ["firing"]
    assert story.wait(200).states == ["firing", "resolved"]


def test_a_chatty_run_does_not_push_an_out_of_memory_out_of_sight() -> None:
    story = Story(shipped("out_of_memory")).event(OOM)
    for _ in range(300):
        torch(story.wait(1), 40)
    assert story.states == ["firing"]


def test_a_host_out_of_memory_is_the_nodes() -> None:
    story = Story(shipped("out_of_memory"))
    story.event(wire.HostOom(reporter="kernel", process="python", pid=4), run=None)
    assert story.heard[0].labels == {"node": "n"}
    assert story.heard[0].facts["process"] == "python"


def test_a_lost_gpu_fires_and_resolves_when_it_is_back() -> None:
    story = Story(shipped("gpu_lost"))
    story.wait(5, lambda s: s.used(10))
    story.wait(5, lambda s: s.sample(wire.GpuSample(gpu="0", status="lost")))
    assert story.states == ["firing"]
    story.wait(60, lambda s: s.used(10))
    assert story.states == ["firing", "resolved"]


def test_a_gpu_that_does_not_answer_is_not_lost() -> None:
    story = Story(shipped("gpu_lost"))
    assert story.wait(60, lambda s: s.sample(wire.GpuSample(gpu="0", status="no_data"))).heard == []


def test_an_agent_that_is_silent_fires_on_time_and_resolves_when_it_is_heard() -> None:
    story = Story(shipped("agent_silent")).wait(10, lambda s: s.used(10))
    story.wait(31)
    assert story.said == [(41.0, "agent_silent", "firing")]
    story.wait(5, lambda s: s.used(10))
    assert story.states == ["firing", "resolved"]


def test_an_agent_that_said_goodbye_is_not_missed() -> None:
    story = Story(shipped("agent_silent")).wait(10, lambda s: s.used(10))
    story.engine.observe(wire.Bye(seq=99, at=story.now), "n", story.now)
    assert story.wait(600).heard == []


# ---------------------------------------------------------------- runs


def test_alerts_of_a_run_end_when_its_nodes_have_gone_on_to_another() -> None:
    story = rollouts(30, 30, 30, 31, 31, 104)
    assert story.states == ["firing"]
    story.wait(1900).event(wire.Step(step=1, rollout_seconds=30.0), run="next").wait(5)
    assert story.states == ["firing", "resolved"]
    assert story.heard[1].reason == "run ended"


def test_two_runs_that_share_a_node_leave_each_others_alerts_alone() -> None:
    story = rollouts(30, 30, 30, 31, 31, 104)
    for number in range(1, 20):
        story.wait(60).event(wire.Step(step=number, rollout_seconds=5.0), run="other").step(100 + number, 104.0)
    assert story.states == ["firing"]


# ---------------------------------------------------------------- overrides

OVERRIDDEN = """
overrides:
  - alert: it
    match: {node: "lo*"}
    set: {when: {above: 99%}}
  - alert: it
    match: {run: "quiet_*"}
    set: {enabled: false}
"""
ANY_HIGH = "    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n"


def test_a_node_can_have_its_own_bound() -> None:
    story = Story(rules_of(ANY_HIGH + OVERRIDDEN))
    story.hello("lonely")
    story.used(75).used(75, node="lonely")
    assert [one.labels for one in story.heard] == [{"node": "n", "gpu": "0"}]
    story.used(79.9, node="lonely")
    assert story.heard[-1].labels["node"] == "lonely"


def test_a_rule_can_be_off_for_a_run() -> None:
    assert Story(rules_of(ANY_HIGH + OVERRIDDEN), run="quiet_one").used(75).heard == []
    assert Story(rules_of(ANY_HIGH + OVERRIDDEN), run="loud_one").used(75).states == ["firing"]
