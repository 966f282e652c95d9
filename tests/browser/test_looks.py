"""What a designer would look at: whether a screen's room is used, and what stands where, on a desk and on a wall."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from tests.browser import foresight, scenes
from tests.browser.conftest import Reader
from tests.browser.stage import SCENES, Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000
FAILED = (wire.ChannelState(name="boss", kind="webhook", health="failed", last_error="the receiver answered 404"),)
FITS = """() => {
  const canvas = document.querySelector(".fleet-map canvas").getBoundingClientRect();
  const legend = document.querySelector(".map-side .legend").getBoundingClientRect();
  return canvas.height > 100 && legend.bottom <= innerHeight;
}"""
Staged = Callable[[wire.Snapshot], Stage]


def _font_px(page: Page) -> str:
    return str(page.evaluate("() => getComputedStyle(document.body).fontSize"))


@pytest.mark.parametrize("scene", ["healthy", "mixed", "128", "1024", "10240"])
def test_on_a_wall_screen_map_and_legend_fit_whatever_comes_above_them(
    scene: str, staged: Staged, reader: Reader
) -> None:
    stage = staged(SCENES[scene](time.time()))
    page = reader.open(stage, "#/fleet?kiosk=1&every=9999&by=run")
    page.wait_for_function(FITS, timeout=PATIENCE_MS)
    expect(page.locator(".nodes-side")).to_be_hidden()
    stage.send(wire.ChannelsChanged(channels=FAILED))
    expect(page.locator(".notice")).to_have_count(1, timeout=PATIENCE_MS)
    page.wait_for_function(FITS, timeout=PATIENCE_MS)


def test_a_wall_screen_with_a_single_node_fills_its_height(staged: Staged, reader: Reader) -> None:
    now = time.time()
    stage = staged(wire.Snapshot(at=now, server=scenes.SERVER, nodes=(scenes.node(1, now),), rules=scenes.RULES))
    page = reader.open(stage, "#/fleet?kiosk=1&every=9999")
    page.wait_for_function(
        "() => document.querySelector('.fleet-map canvas')?.getBoundingClientRect().bottom > 0.55 * innerHeight",
        timeout=PATIENCE_MS,
    )
    page.wait_for_function(FITS, timeout=PATIENCE_MS)


def test_text_is_larger_on_a_wide_desk_and_a_wall_screen_is_enlarged_once(healthy: Stage, reader: Reader) -> None:
    assert _font_px(reader.open(healthy, width=1440)) == "13px"
    wide = reader.open(healthy, width=2560)
    assert _font_px(wide) == "15px"
    wide.goto(healthy.url + "#/fleet?kiosk=1&every=9999")
    wide.wait_for_function("() => document.body.classList.contains('kiosk')", timeout=PATIENCE_MS)
    assert _font_px(wide) == "13px"
    assert wide.evaluate("() => getComputedStyle(document.body).zoom") == "1.8"


@pytest.mark.parametrize(("width", "size"), [(1440, "12px"), (2560, "14px")])
def test_what_charts_write_is_as_large_as_other_small_text(
    width: int, size: str, healthy: Stage, reader: Reader
) -> None:
    page = reader.open(healthy, "#/gpu/gpu-01/3", width=width)
    for written in (".plot .xtick text", ".plot .ytick text"):
        shown = page.locator(written).first
        expect(shown).to_be_attached(timeout=PATIENCE_MS)
        assert shown.evaluate("text => getComputedStyle(text).fontSize") == size


def test_on_a_wide_desk_an_alert_says_why_what_to_change_and_what_was_before_side_by_side(
    troubled: Stage, reader: Reader
) -> None:
    page = reader.open(troubled, "#/alerts", width=2560)
    body = page.locator("#alert-a1 .alert-body")
    expect(body.locator(".beside")).to_be_visible(timeout=PATIENCE_MS)
    lefts = body.evaluate("body => [...body.children].slice(-3).map((part) => part.getBoundingClientRect().left)")
    assert lefts == sorted(set(lefts))
    narrow = reader.open(troubled, "#/alerts", width=390).locator("#alert-a1 .alert-body")
    expect(narrow.locator(".beside")).to_be_visible(timeout=PATIENCE_MS)
    lefts = narrow.evaluate("body => [...body.children].slice(-3).map((part) => part.getBoundingClientRect().left)")
    assert len(set(lefts)) == 1


def test_the_list_of_runs_says_which_card_is_fullest_and_when_it_runs_out(staged: Staged, reader: Reader) -> None:
    page = reader.open(staged(foresight.fleet(time.time())), "#/runs")
    line = page.locator(f"tr[data-key='{scenes.RUN}']")
    expect(line).to_contain_text("14 min", timeout=PATIENCE_MS)
    expect(line.locator("td").nth(1)).to_contain_text("gpu-02 GPU")
    line.get_by_role("link", name="14 min").click()
    expect(page).to_have_url(re.compile("id=f-gpu-01-2"), timeout=PATIENCE_MS)


def test_what_the_agent_says_is_framed_as_its_own_words_in_chinese(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts", language="zh-CN")
    act = page.locator("#alert-a1 .acts li").first
    expect(act).to_contain_text("代理原文（英文）：process 25520", timeout=PATIENCE_MS)
    expect(act.locator("[lang=en]")).to_have_text("process 25520: 94 s of history, 38.4 MiB")
