"""Alerts over time on the page: a timeline and a table of any stretch, by the filters of the list, up to a thousand."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser import on_call, scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
HOUR = 3600.0
PATIENCE_MS = 30_000


def ended(key: str, ago: float, lasted: float, **changes: object) -> wire.Alert:
    """One that is over, and that the page knows of only because the server remembers it."""
    at = time.time()
    made = scenes.alert(
        at,
        key=key,
        severity="warning",
        labels={"node": "gpu-01", "gpu": "0", "run": scenes.RUN},
        english=f"{key}: 88 % of its memory is in use",
        chinese=f"{key}：显存已用 88 %",
    )
    times = {"started_at": at - ago, "fired_at": at - ago + 30, "ended_at": at - ago + lasted}
    return on_call.replace(made, state="resolved", reason="recovered", **times, **changes)


@pytest.fixture
def stage(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    stage = staged(on_call.mixed(time.time()))
    stage.ended = (
        ended("morning", 6 * HOUR, 1200, outcome=wire.Outcome(verdict="avoided", at=time.time() - 5 * HOUR)),
        ended("night", 12 * HOUR, 600, severity="critical"),
        ended("last week", 100 * HOUR, 1800),
    )
    return stage


def opened(reader: Reader, stage: Stage, query: str = "", **options: object) -> Page:
    page = reader.open(stage, f"#/alerts?show=timeline{query}", **options)  # type: ignore[arg-type]
    expect(page.locator(".alertline[aria-busy=false] .alert-bar").first).to_be_visible()
    return page


def _bar(page: Page, name: str) -> Locator:
    return page.locator(f'.alert-bar[aria-label*="{name}"]')


def test_the_list_leads_to_the_timeline_of_a_day_with_what_is_open_and_what_is_over(
    stage: Stage, reader: Reader
) -> None:
    page = reader.open(stage, "#/alerts")
    page.get_by_role("link", name="Timeline", exact=True).click()
    expect(page).to_have_url(re.compile(r"show=timeline"))
    expect(page.locator(".time-bar [aria-current]")).to_have_text("24 h")
    expect(_bar(page, "night: 88 %")).to_be_visible()
    expect(_bar(page, "morning: 88 %")).to_have_class(re.compile("alert-bar-ended"))
    expect(_bar(page, "GPU 3 of gpu-02: 97 %")).to_have_class(re.compile("alert-bar-firing"))
    expect(_bar(page, "last week")).to_have_count(0)
    expect(page.locator(".alertline-lane").first.locator("h2")).to_contain_text(scenes.RUN)


def test_it_opens_at_the_time_since_the_first_alert_and_keeps_what_someone_chose(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    at = time.time()
    labels = {"node": "gpu-02", "gpu": "3"}
    early = scenes.alert(at, key="early", severity="critical", labels=labels, english="early", chinese="早")
    early = on_call.replace(early, started_at=at - 60, fired_at=at - 30)
    stage = staged(on_call.replace(scenes.healthy(at), alerts=(early,)))
    page = opened(reader, stage)
    expect(page.locator(".time-bar [aria-current]")).to_have_text("10 min")
    assert "span=" not in page.url
    page.get_by_role("link", name="By node").click()
    expect(page.locator(".time-bar [aria-current]")).to_have_text("10 min")
    page.get_by_role("link", name="24 h").click()
    page.get_by_role("link", name="By run").click()
    expect(page.locator(".time-bar [aria-current]")).to_have_text("24 h")
    expect(page).to_have_url(re.compile("span=86400"))


def test_state_and_severity_are_told_by_shape_and_not_by_colour_alone(stage: Stage, reader: Reader) -> None:
    page = opened(reader, stage)
    expect(_bar(page, "night: 88 %").locator(".mark-critical")).to_be_visible()
    expect(_bar(page, "GPU 1 of gpu-07").locator(".sign")).to_be_visible()
    expect(_bar(page, "GPU 1 of gpu-07")).to_have_class(re.compile("alert-bar-muted"))
    expect(_bar(page, "gpu-03: 90 %")).to_have_class(re.compile("alert-bar-acknowledged"))
    inside = _bar(page, "morning").locator(".alert-bar-inside")
    open_one = _bar(page, "GPU 3 of gpu-02: 97 %").locator(".alert-bar-inside")
    width = "one => getComputedStyle(one).borderRightWidth"
    assert (inside.evaluate(width), open_one.evaluate(width)) == ("3px", "0px")


def test_pointing_and_the_focus_tell_the_numbers_and_move_nothing(stage: Stage, reader: Reader) -> None:
    page = opened(reader, stage)
    before = page.locator(".alertline-lanes").bounding_box()
    _bar(page, "morning: 88 %").hover()
    told = page.locator(".alertline-told")
    expect(told).to_contain_text("morning: 88 % of its memory is in use")
    expect(told).to_contain_text("lasts 20 min")
    expect(told).to_contain_text("avoided")
    _bar(page, "night: 88 %").focus()
    expect(told).to_contain_text("Critical: night")
    assert page.locator(".alertline-lanes").bounding_box() == before


def test_by_keyboard_the_timeline_is_one_stop_and_arrows_go_from_bar_to_bar(stage: Stage, reader: Reader) -> None:
    page = opened(reader, stage)
    assert page.locator('.alert-bar[tabindex="0"]').count() == 1
    _bar(page, "night").focus()  # those that are over are asked for, and come later
    focused = page.locator(".alert-bar:focus")
    expect(focused).to_have_attribute("aria-label", re.compile("^Critical: night"))
    page.keyboard.press("ArrowRight")
    expect(focused).to_have_attribute("aria-label", re.compile("^Critical: GPU 3 of gpu-02"))
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_attribute("aria-label", re.compile("Warning: "))
    page.keyboard.press("ArrowUp")
    expect(focused).to_have_attribute("aria-label", re.compile("^Critical: "))
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("span=43200"))
    expect(page.locator(".time-bar .choice [aria-current]")).to_have_count(0)
    _bar(page, "morning").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#alert-morning")).to_have_attribute("open", "")


def test_a_bar_leads_to_its_alert_though_the_page_knows_it_no_more_and_back_leads_to_the_timeline(
    stage: Stage, reader: Reader
) -> None:
    page = opened(reader, stage, "&span=604800")
    _bar(page, "last week: 88 %").click()
    card = page.locator("#alert-last\\ week")
    expect(card).to_have_attribute("open", "")
    expect(card).to_contain_text("Device memory has been above 95 %")
    page.go_back()
    expect(page.locator(".alertline")).to_be_visible()
    expect(page.locator(".time-bar [aria-current]")).to_have_text("7 d")


def test_filters_and_range_are_in_the_address_and_the_list_has_the_same(stage: Stage, reader: Reader) -> None:
    page = opened(reader, stage)
    page.get_by_role("combobox", name="Every severity").select_option("critical")
    expect(page).to_have_url(re.compile("severity=critical"))
    expect(page.locator(".alert-bar")).to_have_count(2)
    page.get_by_role("link", name="6 h").click()
    expect(page.locator(".alert-bar")).to_have_count(1)
    page.get_by_role("link", name="List", exact=True).click()
    expect(page.get_by_role("combobox", name="Every severity")).to_have_value("critical")
    expect(page.locator(".alert")).to_have_count(1)
    expect(page).to_have_url(re.compile("span=21600"))
    page.get_by_role("link", name="Ended").click()
    page.get_by_role("link", name="Timeline", exact=True).click()
    expect(page.get_by_text("No alert in this time matches the filters")).to_be_visible()
    asked = stage.past.timelines[-1]
    assert float(asked["to"]) - float(asked["from"]) == pytest.approx(6 * HOUR, abs=3)


def test_alerts_are_grouped_by_run_or_by_node(stage: Stage, reader: Reader) -> None:
    page = opened(reader, stage)
    page.get_by_role("link", name="By node").click()
    expect(page).to_have_url(re.compile("by=node"))
    lanes = page.locator(".alertline-lane h2 a")
    expect(lanes.first).to_have_text("gpu-02")
    expect(lanes.first).to_have_attribute("href", "#/node/gpu-02")


def test_the_table_holds_the_numbers_of_the_timeline(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, "#/alerts?show=table")
    row = page.locator("tbody tr", has_text="20 min")
    expect(row).to_contain_text("avoided")
    expect(row).to_contain_text("gpu-01 · GPU 0 · qwen7b_grpo")
    expect(row).to_contain_text("ended")
    row.get_by_role("link").click()
    expect(page.locator("#alert-morning")).to_have_attribute("open", "")


def test_what_happens_meanwhile_is_drawn_without_asking_again(stage: Stage, reader: Reader) -> None:
    page = opened(reader, stage)
    expect(page.locator(".note")).to_contain_text("alerts")
    count = len(stage.past.timelines)
    fresh = scenes.alert(
        time.time(), key="fresh", severity="critical", labels={"node": "gpu-06"}, english="brand new", chinese="新"
    )
    fresh = on_call.replace(fresh, started_at=time.time() - 1, fired_at=time.time() - 1)
    stage.send(wire.AlertChanged(alert=fresh))
    expect(_bar(page, "brand new")).to_be_visible()
    stage.send(wire.AlertChanged(alert=on_call.replace(fresh, state="resolved", ended_at=time.time())))
    expect(_bar(page, "brand new")).to_have_class(re.compile("alert-bar-ended"))
    assert len(stage.past.timelines) == count


def test_dragging_across_shows_that_stretch(stage: Stage, reader: Reader) -> None:
    page = opened(reader, stage)
    box = page.locator(".alertline-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40, steps=3)
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 40, steps=3)
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
    start, end = map(int, re.findall(r"(?:from|to)=(\d+)", page.url))
    assert end - start == pytest.approx(0.2 * 24 * HOUR, rel=0.02)
    expect(page.locator(".standing")).to_contain_text("stands still")


def test_where_the_server_does_not_answer_what_is_live_is_shown_and_the_reason(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, "#/alerts?show=timeline")
    page.route(re.compile("/api/v1/alerts/timeline"), lambda route: route.fulfill(status=503, json={"error": "locked"}))
    page.get_by_role("link", name="7 d").click()
    expect(page.locator(".note")).to_contain_text("could not be read (locked)")
    expect(_bar(page, "GPU 3 of gpu-02: 97 %")).to_be_visible()
    reader.forgive(re.compile("Failed to load resource"))


def test_a_fleet_without_alerts_says_what_will_be_here(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    page = reader.open(staged(scenes.healthy(time.time())), "#/alerts?show=timeline")
    expect(page.get_by_text("No alert in this time. Choose a longer one above")).to_be_visible()
    expect(page.locator(".alertline")).to_be_hidden()


def test_a_thousand_alerts_are_drawn_at_once_and_more_are_said_to_be_more(stage: Stage, reader: Reader) -> None:
    stage.ended = tuple(
        ended(f"m{number}", HOUR + 70 * number, 60, labels={"node": f"gpu-{number % 128:03d}", "gpu": str(number % 8)})
        for number in range(1200)
    )
    page = opened(reader, stage, "&by=node")
    expect(page.locator(".note")).to_contain_text("there were more in this time", timeout=PATIENCE_MS)
    expect(page.locator(".alertline-lane")).not_to_have_count(0)
    took = page.evaluate(
        """async () => {
             const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
             await frame();
             const before = performance.now();
             document.querySelector('[data-focus="ArrowLeft"]').click();
             const took = performance.now() - before;
             await frame();
             return took;
           }"""
    )
    assert took < 1500, f"{took} ms to draw a thousand alerts anew"
    page.locator(".alert-bar").last.scroll_into_view_if_needed()
    page.locator(".alert-bar").last.focus()
    expect(page.locator(".alertline-told b")).not_to_be_empty()


@pytest.mark.parametrize("width", [390, 1440, 2560])
def test_no_width_is_too_narrow_in_either_language(stage: Stage, reader: Reader, width: int) -> None:
    page = opened(reader, stage, language="zh-CN", dark=True, width=width)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    expect(page.locator(".alertline-told")).to_contain_text("将指针移到条形上")
    box = page.locator(".alertline-body").bounding_box()
    assert box is not None
    for bar in page.locator(".alert-bar").all():
        place = bar.bounding_box()
        assert place is not None
        assert place["width"] >= 24
        assert place["x"] + place["width"] <= box["x"] + box["width"]
