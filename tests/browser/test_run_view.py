"""The view of a run in a real browser: one cursor through all rows, alerts on it, a table, another run beside it."""

import re
import time
from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser import scenes
from tests.browser.conftest import Reader, fits
from tests.browser.stage import Stage

from oomwatch import wire
from oomwatch.incident.report import Entry

pytestmark = pytest.mark.browser
replace = msgspec.structs.replace
RUN = f"#/run/{scenes.RUN}"
OTHER = "llama8b_ppo"
STEPS = 60
# Phases of each step, peaks, rollout, torch, reshard, host: as many charts.
ROWS = ["phases", "peaks", "rollout", "torch", "reshard", "host"]


def _row(page: Page, key: str) -> Locator:
    return page.locator(f'[data-row="{key}"]')


def _holding(text: str) -> "re.Pattern[str]":
    return re.compile(f".*{re.escape(text)}.*")


def _drawn(page: Page) -> None:
    """plotly is a large script, and on a busy machine it takes its time."""
    expect(page.locator(".step-rows .main-svg").first).to_be_visible(timeout=30_000)


def _with_phases(snapshot: wire.Snapshot) -> wire.Snapshot:
    run, *others = snapshot.runs
    points = tuple(replace(one, step=replace(one.step, phase_seconds=scenes.PHASES)) for one in run.steps)
    return replace(snapshot, runs=(replace(run, steps=points), *others))


def _forecast(at: float) -> wire.Alert:
    alert = scenes.alert(
        at,
        key="f1",
        severity="critical",
        labels={"node": "gpu-01", "gpu": "3", "run": scenes.RUN},
        english="GPU 3 of gpu-01 will be full in about 16 min (10 steps), in rollout",
        chinese="gpu-01 的 GPU 3：显存约 16 分钟后（10 步）耗尽（rollout）",
    )
    facts: dict[str, wire.Fact] = {
        "phase": "rollout",
        "eta_steps": 10,
        "eta_seconds": 940.0,
        "eta_low_seconds": 470.0,
        "eta_high_seconds": 1880.0,
        "level_bytes": 73 * scenes.GIB,
        "usable_bytes": 79 * scenes.GIB,
    }
    return replace(alert, alert="memory_forecast", facts=facts, value=940.0, limit=1800.0, unit="seconds")


@pytest.fixture
def foretold(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    at = time.time()
    snapshot = _with_phases(scenes.healthy(at))
    return staged(replace(snapshot, alerts=(_forecast(at),)))


def test_a_run_is_drawn_row_by_row_with_the_numbers_of_its_last_step(foretold: Stage, reader: Reader) -> None:
    page = reader.open(foretold, RUN)
    _drawn(page)
    assert page.locator(".step-row").evaluate_all("rows => rows.map((row) => row.dataset.row)") == ROWS
    expect(page.locator(".step-readout")).to_contain_text("Step 60 · ")
    expect(_row(page, "phases").locator("li")).to_contain_text(["rollout", "reward", "old log-prob"])
    expect(_row(page, "peaks")).to_contain_text("72.8 GiB (gpu-01:5)")  # the last step of the stand-in: 61 + 59 * 0.2
    expect(_row(page, "reshard")).to_contain_text("(1 cycle)")


def test_one_cursor_shows_the_same_step_in_all_rows(foretold: Stage, reader: Reader) -> None:
    page = reader.open(foretold, RUN)
    _drawn(page)
    expect(_row(page, "peaks")).to_contain_text("Known from step 37 on")  # all is there: nothing moves any more
    plot = _row(page, "rollout").locator(".plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    before = [_row(page, key).locator("b").first.inner_text() for key in ("phases", "rollout", "torch")]
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + 40)
    expect(page.locator(".step-readout")).not_to_contain_text("Step 60")
    after = [_row(page, key).locator("b").first.inner_text() for key in ("phases", "rollout", "torch")]
    assert before[1:] != after[1:]
    line = page.locator(".step-line").bounding_box()
    assert line is not None
    assert abs(line["x"] - (box["x"] + box["width"] / 3)) < box["width"] / STEPS
    page.mouse.move(0, 0)
    expect(page.locator(".step-readout")).to_contain_text("Step 60")


def test_a_stretch_that_is_dragged_across_is_shown_in_all_rows_and_let_go_again(
    foretold: Stage, reader: Reader
) -> None:
    page = reader.open(foretold, RUN)
    _drawn(page)
    drag = _row(page, "rollout").locator(".nsewdrag").first
    expect(drag).to_be_visible(timeout=30_000)
    box = drag.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 42, steps=5)
    page.mouse.up()
    everything = page.get_by_role("button", name="All steps")
    expect(everything).to_have_attribute("aria-pressed", "false")
    page.locator(".step-readout").focus()
    page.keyboard.press("Home")
    expect(page.locator(".step-readout")).to_contain_text(re.compile("Step (19|20|21) "))
    everything.click()
    page.locator(".step-readout").focus()
    page.keyboard.press("Home")
    expect(page.locator(".step-readout")).to_contain_text("Step 1 ")


def test_the_cursor_goes_by_keys_and_says_its_numbers(foretold: Stage, reader: Reader) -> None:
    page = reader.open(foretold, RUN)
    _drawn(page)
    cursor = page.get_by_role("slider", name="Step that is shown")
    cursor.focus()
    page.keyboard.press("Home")
    expect(cursor).to_contain_text("Step 1 ·")
    page.keyboard.press("ArrowRight")
    expect(cursor).to_have_attribute("aria-valuenow", "2")
    said = cursor.get_attribute("aria-valuetext") or ""
    assert "Rollout time" in said
    page.keyboard.press("End")
    expect(cursor).to_contain_text("Step 80 · foretold")  # ten steps, twenty at the latest
    expect(_row(page, "peaks")).to_contain_text("79.0 GiB (gpu-01:3)")


def test_what_is_foretold_is_a_fan_and_what_is_not_remembered_is_said(foretold: Stage, reader: Reader) -> None:
    page = reader.open(foretold, RUN)
    _drawn(page)
    peaks = _row(page, "peaks")
    expect(peaks).to_contain_text("rollout, foretold")
    expect(peaks).to_contain_text("Known from step 37 on")
    expect(peaks).to_contain_text("usable 79.1 GiB")
    ends = peaks.locator(".plot").evaluate(
        "plot => plot.data.at(-1).x.filter((x, i) => plot.data.at(-1).y[i] !== null)"
    )
    assert (min(ends), max(ends)) == (60, 80)


def test_an_alert_is_a_flag_that_leads_to_it(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, RUN)
    _drawn(page)
    flags = page.locator(".flag")
    expect(flags.first).to_be_visible()
    worst = page.locator(".flag-critical")
    expect(worst).to_have_attribute("aria-label", _holding("GPU 3 of gpu-02"))
    worst.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(_holding("#/alerts"))
    expect(page.locator(".alert[open]").first).to_contain_text("GPU 3 of gpu-02")


def test_every_number_is_in_a_table_too(foretold: Stage, reader: Reader) -> None:
    page = reader.open(foretold, RUN)
    _drawn(page)
    button = page.get_by_role("button", name="Table")
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    table = page.locator(".step-table table")
    expect(table.locator("tbody tr")).to_have_count(80)
    expect(table.locator("th").nth(2)).to_have_text("rollout (s)")
    sixtieth = table.locator("tbody tr").nth(20)
    expect(sixtieth).to_contain_text("72.8 (gpu-01:5)")
    expect(page.locator(".step-rows")).to_be_hidden()
    button.click()
    expect(page.locator(".step-rows")).to_be_visible()


def test_a_new_step_is_drawn_and_its_peak_is_asked_for(foretold: Stage, reader: Reader) -> None:
    page = reader.open(foretold, RUN)
    _drawn(page)
    run = foretold.snapshot.runs[0]
    step = wire.StepPoint(at=time.time(), step=wire.Step(step=61, step_seconds=99.0, rollout_seconds=41.0))
    foretold.snapshot = replace(foretold.snapshot, runs=(replace(run, steps=(*run.steps, step)),))
    foretold.send(wire.RunChanged(run=replace(run, steps=(step,))))
    expect(page.locator(".step-readout")).to_contain_text("Step 61")
    expect(_row(page, "rollout")).to_contain_text("41 s")
    expect(_row(page, "peaks")).to_contain_text("73.0 GiB (gpu-01:3)")


def test_a_run_is_compared_with_another_that_is_chosen_from_a_list(troubled: Stage, reader: Reader) -> None:
    first, second = troubled.snapshot.runs
    settings = {**scenes.CONFIG, "actor_rollout_ref.rollout.gpu_memory_utilization": 0.5}
    troubled.snapshot = replace(troubled.snapshot, runs=(first, replace(second, config=settings)))
    page = reader.open(troubled, RUN)
    _drawn(page)
    page.get_by_label("Compare with").select_option(OTHER)
    expect(page).to_have_url(_holding(f"?with={OTHER}"))
    expect(_row(page, "rollout")).to_contain_text(f"Rollout time of {OTHER}")
    differences = page.locator("section", has=page.get_by_role("heading", name="Where the settings differ"))
    expect(differences.locator("tbody tr")).to_have_count(1)
    expect(differences.locator("tbody tr")).to_contain_text("gpu_memory_utilization")
    page.get_by_label("Compare with").select_option("")
    expect(_row(page, "rollout")).not_to_contain_text(OTHER)


def test_incidents_can_be_read_and_downloaded_and_verdicts_are_told(troubled: Stage, reader: Reader) -> None:
    at = time.time()
    summary = {"en": "Out of memory on GPU 3 of gpu-02", "zh": "gpu-02 的 GPU 3 内存耗尽"}
    incident = Entry(
        id="20261129T095326Z-9f3c0a1b",
        at=at - 600,
        node=None,
        run=scenes.RUN,
        simulated=False,
        summary=summary,
        alerts=(),
    )
    other = replace(incident, id="20261129T095326Z-00000000", run=OTHER)
    troubled.past.incidents = (incident, other)
    outcome = wire.Outcome(verdict="happened", at=at - 600, lead_seconds=840.0, lead_steps=6)
    judged = tuple(replace(one, outcome=outcome) if one.id in ("a1", "a7") else one for one in troubled.snapshot.alerts)
    troubled.snapshot = replace(troubled.snapshot, alerts=judged)
    page = reader.open(troubled, RUN)
    link = page.get_by_role("link", name="Download")
    expect(link).to_have_count(1)
    expect(link).to_have_attribute("href", f"api/v1/incidents/{incident.id}.html?lang=en")
    expect(link).to_have_attribute("download", f"{incident.id}.html")
    verdicts = page.locator("section", has=page.get_by_role("heading", name="How the warnings turned out"))
    expect(verdicts.locator("li").first).to_contain_text("it happened, 14 min after the alert")


def test_ten_thousand_steps_are_quick_to_draw_and_to_look_into(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    at = time.time()
    points = scenes.steps(10_000, at)
    snapshot = scenes.healthy(at)
    run = replace(snapshot.runs[0], steps=points[-500:])
    stage = staged(replace(snapshot, runs=(run,)))
    stage.past.older = points[:-500]
    page = reader.open(stage, RUN)
    _drawn(page)
    page.get_by_role("button", name="All steps").click()
    page.locator(".step-readout").focus()
    page.keyboard.press("Home")
    expect(page.locator(".step-readout")).to_contain_text("Steps 1 to 63")
    page.get_by_role("button", name="Last 50").click()
    page.keyboard.press("Home")
    expect(page.locator(".step-readout")).to_contain_text("Step 9,950")
    count = page.locator(".step-rows").evaluate("rows => rows.querySelectorAll('*').length")
    assert count < 6000


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_of_a_run_is_cut_off(language: str, foretold: Stage, reader: Reader) -> None:
    page = reader.open(foretold, RUN, language=language, width=2560, dark=language == "zh")
    _drawn(page)
    fits(page, 2560, 1440, 390)
