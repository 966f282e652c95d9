"""What the page shows of a run beside its steps, in a real browser: phases, probes, engines, coverage, settings."""

import time
from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import Page, expect
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
replace = msgspec.structs.replace


PATIENCE_MS = 60_000
LOOKS = ("dots", "rows", "columns", "slash", "backslash", "crosses", "grid")


def _lane(page: Page) -> set[str]:
    """The patterns in the lane of phases; "plain" for one without."""
    expect(page.locator(".chart-frame").first).to_have_attribute("aria-busy", "false", timeout=PATIENCE_MS)
    kinds: list[str] = page.locator(".plot .stretch .phase").evaluate_all("lanes => lanes.map(lane => lane.className)")
    return {next((look for look in LOOKS if look in kind.split()), "plain") for kind in kinds}


def _with_run(stage: Stage, **changes: object) -> None:
    run, *others = stage.snapshot.runs
    stage.snapshot = replace(stage.snapshot, runs=(replace(run, **changes), *others))


def _with_node(stage: Stage, sample: wire.Sample) -> None:
    (view,) = stage.snapshot.nodes
    stage.snapshot = replace(stage.snapshot, nodes=(replace(view, sample=sample),))


def _sample(stage: Stage) -> wire.Sample:
    sample = stage.snapshot.nodes[0].sample
    assert sample is not None
    return sample


def test_a_gpus_chart_has_the_phases_of_its_run_each_with_a_look_and_a_name(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/gpu/gpu-01/3?span=300")
    legend = page.locator(".phases li")
    expect(legend).to_have_text(["rollout", "reward", "old log-prob", "reference", "actor update", "weight sync"])
    assert _lane(page) == {"plain", "dots", "rows", "columns", "slash", "backslash"}
    expect(page.locator(".plot .stretch", has_text="actor update").first).to_be_visible(timeout=PATIENCE_MS)


def test_the_phases_stand_where_their_times_are_on_the_axis(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/gpu/gpu-01/3?span=300")
    _lane(page)
    plot, *bands = page.evaluate(
        """() => [".plot .nsewdrag", ".plot .stretch"]
             .flatMap((one) => [...document.querySelectorAll(one)])
             .map((one) => one.getBoundingClientRect())
             .map(({ left, right }) => [left, right])"""
    )
    second = (plot[1] - plot[0]) / 300
    lasted = [(right - left) / second for left, right in bands]
    assert bands[-1][1] == pytest.approx(plot[1], abs=2)  # a rollout that has only begun
    assert lasted[-7:-1] == pytest.approx(list(scenes.PHASES.values()), abs=2 / second)
    assert bands[0][0] == pytest.approx(plot[0], abs=2)


def test_pointing_at_a_phase_says_its_step_and_how_it_is_known(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/gpu/gpu-01/3?span=300")
    _lane(page)
    said: list[str] = page.evaluate(
        """() => {
             const told = document.querySelector(".plot").data.find((trace) => trace.text);
             return told.text.filter((one) => one !== null);
           }"""
    )
    assert "actor update (step 60): laid out from the step line, good to 1.5 s" in said
    assert "rollout (step 60): exact, a log line marked it" in said
    plot = page.locator(".plot .nsewdrag").first.bounding_box()
    assert plot is not None
    page.mouse.move(plot["x"] + plot["width"] / 2, plot["y"] + 100)
    expect(page.locator(".plot .hoverlayer")).to_contain_text("(step 59):")


def test_a_phase_that_begins_is_drawn_and_the_run_says_it_is_in_it(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, f"#/run/{scenes.RUN}")
    facts = page.locator("dl").first
    expect(facts).to_contain_text("rollout for")
    at = time.time()
    begun = wire.PhaseSpan(start_at=at - 2, phase="update_critic", known_by="mark")
    run = replace(healthy.snapshot.runs[0], steps=(), phases=(begun,))
    healthy.send(wire.RunChanged(run=run))
    expect(facts).to_contain_text("critic update for")
    page.goto(healthy.url + "#/gpu/gpu-01/3?span=300")
    expect(page.locator(".phases")).to_contain_text("critic update")
    assert "crosses" in _lane(page)


def test_a_phase_known_only_afterwards_is_not_said_to_be_the_current_one(healthy: Stage, reader: Reader) -> None:
    _with_run(healthy, phases=healthy.snapshot.runs[0].phases[:-1])
    page = reader.open(healthy, f"#/run/{scenes.RUN}")
    expect(page.locator("dl").first).to_contain_text("last known: weight sync, ended")


def test_without_phases_there_is_no_lane_and_no_legend(healthy: Stage, reader: Reader) -> None:
    _with_run(healthy, phases=())
    page = reader.open(healthy, "#/gpu/gpu-01/3")
    assert _lane(page) == set()
    expect(page.locator(".phases li")).to_have_count(0)


def test_more_phases_than_can_be_seen_are_left_out_and_that_is_said(healthy: Stage, reader: Reader) -> None:
    at = time.time()
    short = tuple(
        wire.PhaseSpan(start_at=at - 802 + 2 * n, end_at=at - 800 + 2 * n, phase="rollout", known_by="mark")
        for n in range(401)
    )
    _with_run(healthy, phases=short)
    page = reader.open(healthy, "#/gpu/gpu-01/3?span=900")
    expect(page.locator("main")).to_contain_text("Phases are too short to be drawn over so long a time")
    assert _lane(page) == set()


def test_probes_are_listed_by_rank_and_a_gpu_without_one_says_how_to_get_it(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/gpu/gpu-01/3")
    expect(page.get_by_role("row", name="25523").last).to_contain_text("actor")
    expect(page.locator(".legend.lines")).to_contain_text("Reserved by torch, unused")
    page.goto(healthy.url + "#/gpu/gpu-01/7")
    expect(page.locator("main")).to_contain_text("start the training with oomwatch-agent run")


def test_what_a_probe_says_each_second_is_drawn(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/gpu/gpu-01/3")
    _lane(page)
    at = time.time() + 5  # a point of its own
    reserved = (None, None, None, 1024 * 33, None, None, None, None)
    reading = wire.NodeTick(node="gpu-01", at=at, used_mib=(40_000,) * 8, torch_reserved_mib=reserved)
    healthy.send(wire.Tick(at=at, nodes=(reading,)))
    page.wait_for_function(
        "() => document.querySelector('.plot').data"
        ".some((one) => one.name === 'Reserved by torch, unused' && one.y.includes(33))"
    )


def test_no_process_is_told_apart_from_not_read(healthy: Stage, reader: Reader) -> None:
    sample = _sample(healthy)
    gpus = (replace(sample.gpus[0], processes=()), replace(sample.gpus[1], processes=None), *sample.gpus[2:])
    _with_node(healthy, replace(sample, gpus=gpus))
    page = reader.open(healthy, "#/gpu/gpu-01/0")
    expect(page.locator("main")).to_contain_text("No process holds memory on this GPU.")
    page.goto(healthy.url + "#/gpu/gpu-01/1")
    expect(page.locator("main")).to_contain_text("The process table was not read.")


def test_what_ticks_leave_out_is_asked_for_while_it_is_shown(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/gpu/gpu-01/3")
    expect(page.get_by_role("row", name="VLLM::EngineCore_DP0")).to_be_visible()
    sample = _sample(healthy)
    gone = tuple(replace(gpu, processes=()) for gpu in sample.gpus)
    _with_node(healthy, replace(sample, gpus=gone))
    expect(page.locator("main")).to_contain_text("No process holds memory on this GPU.", timeout=10_000)


def test_a_node_shows_its_engines_and_its_host_memory_over_time(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/node/gpu-01")
    engine = page.get_by_role("row", name="10.0.0.11:8000")
    for text in ("vllm (Qwen2.5-7B-Instruct)", "93 %", "240", "12", "41"):
        expect(engine).to_contain_text(text)
    expect(page.get_by_role("row", name="10.0.0.11:30000").locator("td").nth(5)).to_have_text("–")
    expect(page.locator(".plot")).to_contain_text("limit 1,024 GiB")
    expect(page.locator(".plot .lines path.js-line").first).to_be_visible()


def _drawn_gib(page: Page) -> list[float]:
    drawn = "document.querySelector('.plot').data ?? []"
    told: list[float] = page.evaluate(f"({drawn}).flatMap(line => [...line.y]).filter(Number.isFinite)")
    return told


def test_a_hosts_chart_changes_to_the_machine_when_that_is_nearer_to_its_limit(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/node/gpu-01")
    expect(page.locator(".plot")).to_contain_text("limit 1,024 GiB")
    for later, machine, container, line, drawn in (
        (1, 1900, 500, "total 2,016", 1900),
        (2, 1000, 900, "limit 1,024", 900),
    ):
        at = time.time() + later
        reading = wire.NodeTick(node="gpu-01", at=at, host_used_mib=machine * 1024, cgroup_used_mib=container * 1024)
        healthy.send(wire.Tick(at=at, nodes=(reading,)))
        expect(page.locator(".plot")).to_contain_text(f"{line} GiB")
        deadline = time.monotonic() + 5
        while drawn not in _drawn_gib(page) and time.monotonic() < deadline:
            page.wait_for_timeout(50)
        assert drawn in _drawn_gib(page)


def test_a_node_without_engines_says_so(healthy: Stage, reader: Reader) -> None:
    _with_node(healthy, replace(_sample(healthy), engines=()))
    page = reader.open(healthy, "#/node/gpu-01")
    expect(page.locator("main")).to_contain_text("No rollout engine on this node told its metrics.")


def test_a_run_says_which_signals_it_has_and_how_to_get_the_others(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, f"#/run/{scenes.RUN}")
    coverage = page.locator(".coverage")
    expect(coverage.get_by_role("row", name="Step lines")).to_contain_text("worker-f1.out")
    expect(coverage.get_by_role("row", name="Response length")).to_contain_text("missing since step 42")
    missing = coverage.get_by_role("row", name="Reshard cycles")
    expect(missing.locator("td").nth(1)).to_have_text("–")
    expect(missing.locator("code")).to_have_text("VERL_LOGGING_LEVEL=DEBUG")
    config = page.locator(".config")
    expect(config.get_by_role("row", name="free_cache_engine")).to_contain_text("True")
    expect(config.get_by_role("row", name="gpu_memory_utilization")).to_contain_text("0.6")


def test_signals_phases_and_engines_are_in_chinese_where_the_reader_is(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    stage = staged(scenes.healthy(time.time()))
    page = reader.open(stage, f"#/run/{scenes.RUN}", language="zh-CN")
    expect(page.locator(".coverage")).to_contain_text("自第 42 步起缺失")
    page.goto(stage.url + "#/gpu/gpu-01/3")
    expect(page.locator(".phases")).to_contain_text("权重同步")
    page.goto(stage.url + "#/node/gpu-01")
    expect(page.locator("main")).to_contain_text("KV 缓存占用")


def test_a_run_whose_gpus_are_not_known_says_so(healthy: Stage, reader: Reader) -> None:
    (view,) = healthy.snapshot.nodes
    healthy.snapshot = replace(healthy.snapshot, nodes=(replace(view, gpu_runs=(None,) * 8),))
    page = reader.open(healthy, f"#/run/{scenes.RUN}")
    expect(page.locator(".where-list")).to_contain_text("which of its GPUs is not known")
