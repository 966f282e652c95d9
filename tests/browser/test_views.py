"""The views in a real browser: the map under hand and key, a GPU, a run, a node and the alerts."""

import re
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
GIB = 2**30


def _tick(stage: Stage) -> None:
    stage.send(scenes.tick(stage.snapshot.nodes, time.time(), scenes.LEVELS))


def test_the_map_is_walked_with_the_arrow_keys_and_enter_opens_a_gpu(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled)
    expect(page.locator(".full li").first).to_be_visible()
    page.get_by_role("button", name="Wall screen").focus()
    page.keyboard.press("Tab")
    expect(page.locator(".tip")).to_contain_text("gpu-01 · GPU 0")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".tip")).to_contain_text("gpu-01 · GPU 2")
    expect(page.locator(".fleet-map [role=status]")).to_contain_text("gpu-01 · GPU 2, NVIDIA H100 80GB HBM3")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("GPU 2")
    assert page.url.endswith("#/gpu/gpu-01/2")


def test_pointing_at_a_square_shows_its_numbers_and_a_click_opens_it(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator(".full li").first).to_be_visible()
    box = page.locator(".fleet-map canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 40, box["y"] + 60)
    expect(page.locator(".tip")).to_contain_text("gpu-01 · GPU 0")
    expect(page.locator(".tip")).to_contain_text("/ 79.1 GiB")
    page.mouse.click(box["x"] + 40, box["y"] + 60)
    expect(page.locator("h1")).to_contain_text("GPU 0")


def test_a_node_with_two_runs_is_on_the_map_of_each_with_the_gpus_of_each(healthy: Stage, reader: Reader) -> None:
    at = time.time()
    view = healthy.snapshot.nodes[0]
    assert view.sample is not None
    other = tuple(
        msgspec.structs.replace(sample, processes=(wire.GpuProcess(pid=1, run="llama8b_ppo"),))
        for sample in view.sample.gpus[4:]
    )
    shared = msgspec.structs.replace(view.sample, gpus=view.sample.gpus[:4] + other)
    runs = (scenes.RUN,) * 4 + ("llama8b_ppo",) * 4
    healthy.snapshot = msgspec.structs.replace(
        healthy.snapshot,
        nodes=(msgspec.structs.replace(view, run=None, gpu_runs=runs, sample=shared),),
        runs=(*healthy.snapshot.runs, scenes.run(at, ("gpu-01",), name="llama8b_ppo")),
    )
    page = reader.open(healthy, "#/run/llama8b_ppo")
    expect(page.locator(".cards a")).to_have_text(["4", "5", "6", "7"])
    page.goto(healthy.url + "#/fleet?by=run")
    healthy.send(scenes.tick(healthy.snapshot.nodes, time.time(), scenes.LEVELS))
    expect(page.locator(".full li", has_text="GPU 5")).to_contain_text("llama8b_ppo")
    expect(page.locator(".full li", has_text="GPU 3")).to_contain_text(scenes.RUN)


def test_what_has_no_data_is_said_to_have_none_and_is_never_a_number(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled)
    rows = page.locator(".nodes-side tbody tr")
    expect(rows.filter(has_text="gpu-05")).to_contain_text("silent for 2 min")
    expect(rows.filter(has_text="gpu-05").locator("td").nth(4)).to_have_text("–")
    expect(rows.filter(has_text="gpu-06")).to_contain_text("agent stopped 1 h ago")
    expect(rows.filter(has_text="gpu-03")).to_contain_text("nvml: does not answer")
    page.goto(troubled.url + "#/gpu/gpu-03/7")
    expect(page.locator(".figures")).to_contain_text("GPU lost")
    page.goto(troubled.url + "#/gpu/gpu-03/2")
    expect(page.locator(".figures")).to_contain_text("No data")


def test_a_node_that_stops_ticking_is_stale_within_seconds(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("headroom")
    expect(page.locator("#headline")).to_contain_text("Node gpu-01 sends no data", timeout=10_000)
    expect(page.locator(".full")).to_contain_text("No GPU has current data.")
    _tick(healthy)
    expect(page.locator("#headline")).to_contain_text("headroom")


def test_the_list_of_the_fullest_has_ten_rows_at_most_fullest_first(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled)
    rows = page.locator(".full li")
    expect(rows).to_have_count(10)
    quiet = rows.filter(has_not=page.get_by_role("img", name=re.compile("Warning|Critical")))
    shares = [float(text.removesuffix("%").strip()) for text in quiet.locator(".percent").all_inner_texts()]
    assert len(shares) == 7  # three have an alert and stand above them
    assert shares == sorted(shares, reverse=True)
    expect(rows.first).to_contain_text(scenes.RUN)


def test_a_gpu_shows_its_history_its_limits_processes_and_sources(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/gpu/gpu-02/3")
    expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=20_000)
    expect(page.locator(".plot")).to_contain_text("Warning 85 %")
    expect(page.locator(".plot")).to_contain_text("Critical 95 %")
    expect(page.locator(".plot")).to_contain_text("usable 79.1 GiB")
    cells = page.get_by_role("row", name="VLLM::EngineCore_DP0").get_by_role("cell")
    expect(cells).to_have_text(["25877", "VLLM::EngineCore_DP0", scenes.RUN, "–", "rollout", re.compile("GiB$")])
    trainer = page.get_by_role("row", name="ray::WorkerDict.actor_rollout_update_actor").get_by_role("cell")
    expect(trainer.nth(3)).to_have_text("11")
    expect(trainer.nth(4)).to_have_text("actor")
    expect(page.locator(".sources")).to_contain_text("17 files of session_2026-11-29_09-12-44")


def _last_point(page: Page, trace: str) -> float:
    value = page.evaluate(
        "name => document.querySelector('.plot').data?.findLast((one) => one.name === name)?.y.at(-1) ?? -1", trace
    )
    return float(value)


def test_a_gpus_chart_goes_on_with_what_arrives(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/gpu/gpu-02/3")
    expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=20_000)
    at = time.time() + 5  # a point of its own
    reading = wire.NodeTick(node="gpu-02", at=at, used_mib=(0, 0, 0, 12345, 0, 0, 0, 0))
    troubled.send(wire.Tick(at=at, nodes=(reading,)))
    expect(page.locator(".figures")).to_contain_text("12.1 / 79.1 GiB")
    deadline = time.monotonic() + 5
    while abs(_last_point(page, "Device memory used") - 12345 / 1024) > 0.01 and time.monotonic() < deadline:
        page.wait_for_timeout(50)
    assert _last_point(page, "Device memory used") == pytest.approx(12345 / 1024)


def test_without_history_the_chart_says_so_and_begins_now(troubled: Stage, reader: Reader) -> None:
    troubled.has_history = False
    page = reader.open(troubled, "#/gpu/gpu-02/3")
    expect(page.locator(".note")).to_contain_text("HTTP 503")
    _tick(troubled)
    expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=20_000)
    reader.forgive(re.compile("503"))  # the browser itself reports it on its console


def test_a_run_shows_its_steps_and_a_new_step_is_drawn(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, f"#/run/{scenes.RUN}")
    rows = page.locator(".step-rows")
    for title in (
        "Rollout time (s; right: tokens)",
        "Step time (s)",
        "Reshard time (s; right: %)",
        "Host memory (GiB)",
        "Mean response length",
    ):
        expect(rows).to_contain_text(title)
    expect(page.locator("main")).to_contain_text(
        "60 cycles from training to rollout, counted by the marker resume_kv_cache"
    )
    run = next(run for run in troubled.snapshot.runs if run.run == scenes.RUN)
    step = wire.StepPoint(at=time.time(), step=wire.Step(step=61, step_seconds=99.0, rollout_seconds=41.0))
    troubled.send(wire.RunChanged(run=msgspec.structs.replace(run, steps=(step,), reshard_cycles_total=61)))
    expect(page.locator("main")).to_contain_text("61 cycles")
    expect(page.locator("dl", has_text="First seen")).to_contain_text("41 s")


def test_a_run_without_a_reshard_marker_is_told_how_to_get_one_and_not_0(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/run/llama8b_ppo")
    expect(page.locator("main")).to_contain_text("VERL_LOGGING_LEVEL=DEBUG")
    expect(page.locator("main")).not_to_contain_text("0 cycles")


def test_alerts_say_what_where_how_much_why_and_what_to_do(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts")
    first = page.locator(".alert").first
    for text in ("Critical", "GPU 3 of gpu-02", "for 5 min", "97 %", "95 %", "over the peaks of the training steps"):
        expect(first).to_contain_text(text)
    expect(first.locator("ol li")).to_have_count(3)
    expect(first.locator("code", has_text="free_cache_engine=True")).to_be_visible()
    expect(page.locator(".alert", has_text="gpu-05").locator("summary")).to_contain_text("no data")
    expect(page.locator(".alert").last).not_to_have_attribute("open", "")


def test_an_alert_says_what_was_done_because_of_it_and_where_the_files_are(troubled: Stage, reader: Reader) -> None:
    acts = reader.open(troubled, "#/alerts").locator(".alert").first.locator(".acts li")
    expect(acts).to_have_count(2)
    expect(acts.first).to_contain_text("Memory snapshot: done on gpu-02")
    expect(acts.first.locator("code")).to_contain_text("memory_snapshot-25520")
    expect(acts.last).to_contain_text("Your hook: not done on gpu-02")
    expect(acts.last).to_contain_text("--allow-acts hook")


def test_an_alert_says_its_cause_and_gives_a_line_to_copy(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts?node=gpu-04")
    shown = page.locator(".alert", has_text="host memory")
    for text in (
        "Parameters and optimizer states offloaded to the host",
        "ray::WorkerDict holds 640.0 GiB of 1024.0 GiB",
        "Less likely: The driver process",
        "Costs: takes memory of the cards",
    ):
        expect(shown).to_contain_text(text)
    expect(shown.locator("ol li")).to_have_count(2)
    line = shown.locator(".override")
    expect(line).to_have_count(1)
    expect(line.locator("code")).to_have_text("actor_rollout_ref.actor.fsdp_config.optimizer_offload=False")
    line.get_by_role("button", name="Copy").click()
    expect(line.get_by_role("button")).to_have_text("Copied")


def test_a_line_can_be_copied_where_the_page_came_over_plain_http(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts?node=gpu-04")
    # What browsers take away from such a page, unless it came from the machine itself.
    page.evaluate("Object.defineProperty(Navigator.prototype, 'clipboard', {value: undefined})")
    line = page.locator(".alert", has_text="host memory").locator(".override")
    line.get_by_role("button", name="Copy").click()
    expect(line.get_by_role("button")).to_have_text("Copied")
    search = page.get_by_role("searchbox").or_(page.locator("input[type=search]")).first
    search.focus()
    page.keyboard.press("Control+V")
    expect(search).to_have_value("actor_rollout_ref.actor.fsdp_config.optimizer_offload=False")


def test_a_line_that_cannot_be_copied_says_how_to_do_it_by_hand(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts?node=gpu-04")
    page.evaluate("Object.defineProperty(Navigator.prototype, 'clipboard', {value: undefined})")
    page.evaluate("document.execCommand = () => false")
    button = page.locator(".alert", has_text="host memory").locator(".override").get_by_role("button")
    button.click()
    expect(button).to_have_text("Not copied: select the text and press Ctrl-C")


def test_a_forecast_says_how_much_time_and_how_many_steps_are_left(healthy: Stage, reader: Reader) -> None:
    warning = msgspec.structs.replace(
        scenes.alert(
            time.time(),
            key="w",
            severity="warning",
            labels={"node": "gpu-01", "gpu": "3"},
            english="GPU 3 of gpu-01 will be full in about 9 min (6 steps)",
            chinese="gpu-01 的 GPU 3 约 9 分钟后显存耗尽（6 步）",
        ),
        alert="memory_forecast",
        value=540.0,
        limit=1800.0,
        unit="seconds",
        facts={"eta_seconds": 540.0, "eta_steps": 6},
    )
    critical = msgspec.structs.replace(warning, id="c", severity="critical")
    page = reader.open(healthy, "#/alerts")
    for one in (warning, critical):
        healthy.send(wire.AlertChanged(alert=one))
    shown = page.locator(".alert")
    expect(shown).to_have_count(1)  # the warning says the same, and gives way
    expect(shown).to_contain_text("Critical")
    expect(shown.locator(".strip")).to_contain_text("Time left9 min (6 steps)")
    expect(page.locator("#nav .badge")).to_have_text("1")


def test_alerts_are_filtered_from_the_address_and_by_hand(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts?state=open&node=gpu-04")
    expect(page.locator(".alert")).to_have_count(1)
    expect(page.locator(".alert")).to_contain_text("gpu-04")
    page.get_by_role("combobox", name="Every node").select_option("gpu-06")
    expect(page.locator("main")).to_contain_text("No alert matches this filter.")
    assert "node=gpu-06" in page.url
    page.get_by_role("link", name="Ended").click()
    page.get_by_role("combobox", name="Every node").select_option("")
    expect(page.locator(".alert")).to_have_count(2)


def test_a_filter_chosen_before_the_page_is_redrawn_takes_nothing_else_back(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts?state=open&node=gpu-06")
    expect(page.locator("main")).to_contain_text("No alert matches this filter.")
    page.evaluate(
        """() => {
          [...document.querySelectorAll(".choice a")].find((link) => link.textContent === "Ended").click();
          const nodes = document.querySelector("select[data-focus=node]");
          nodes.value = "";
          nodes.dispatchEvent(new Event("change"));
        }"""
    )
    expect(page.locator(".alert")).to_have_count(2)
    assert page.url.endswith("#/alerts?state=ended")


def test_the_address_in_a_notification_opens_its_alert(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts?id=a7")
    expect(page.locator("#alert-a7")).to_have_attribute("open", "")
    expect(page.locator("#alert-a7")).to_contain_text("it recovered")


def test_an_alert_says_what_became_of_it_and_where_the_report_is(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts?id=a7")
    (ended,) = [one for one in troubled.snapshot.alerts if one.id == "a7"]
    outcome = wire.Outcome(verdict="happened", at=time.time(), lead_seconds=780.0)
    told = msgspec.structs.replace(ended, outcome=outcome, facts={"incident": "20261130T095326Z-232cd580"})
    troubled.send(wire.AlertChanged(alert=told))
    shown = page.locator("#alert-a7")
    expect(shown).to_contain_text("it happened, 13 min after the alert")
    link = shown.get_by_role("link", name="the last fifteen minutes")
    expect(link).to_have_attribute("href", "api/v1/incidents/20261130T095326Z-232cd580.html?lang=en")


@pytest.mark.parametrize(("nodes", "most_ms"), [(128, 150), (1250, 1000)])  # 8 and 50 ms measured; half a second a tick
def test_a_large_fleet_is_redrawn_well_within_a_second(
    nodes: int, most_ms: float, staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    stage = staged(scenes.crowded(time.time(), nodes))
    page = reader.open(stage)
    expect(page.locator(".totals")).to_contain_text(f"{nodes * 8:,} GPUs")
    page.evaluate(
        """() => {
          const original = window.requestAnimationFrame;
          window.spent = 0;
          window.requestAnimationFrame = (draw) => original((time) => {
            const begin = performance.now();
            draw(time);
            window.spent = Math.max(window.spent, performance.now() - begin);
          });
        }"""
    )
    before = page.locator(".totals").inner_text()
    stage.send(scenes.tick(stage.snapshot.nodes, time.time() + 20))
    expect(page.locator(".totals")).not_to_have_text(before)
    assert 0 < page.evaluate("() => window.spent") < most_ms


NARROW = {
    "#/": ".fleet-map",
    "#/gpu/gpu-02/3": ".plot .main-svg",
    "#/node/gpu-03": ".plot .main-svg",
    "#/runs": "table",
    f"#/run/{scenes.RUN}": ".step-rows .main-svg",
    "#/alerts": ".alert",
}


def test_nothing_is_cut_off_in_a_narrow_window(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, width=900)
    for address, shown in NARROW.items():
        page.goto(troubled.url + address)
        expect(page.locator(f"main {shown}").first, address).to_be_visible(timeout=60_000)
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), address
