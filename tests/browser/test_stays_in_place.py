"""What a person has selected, focused or scrolled to stays, while the page goes on and where they come back to it."""

import re
import time

import msgspec
import pytest
from playwright.sync_api import Page, Route, expect
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000
FAILED = (
    wire.ChannelState(name="boss", kind="slack_webhook", health="failed", last_error="Slack answered 404: no_service"),
)


def _select(page: Page, selector: str) -> str:
    """Selects the text of the first such element, and remembers the element."""
    selected = page.evaluate(
        """(selector) => {
          window.held = document.querySelector(selector);
          getSelection().selectAllChildren(window.held);
          return String(getSelection());
        }""",
        selector,
    )
    assert isinstance(selected, str)
    assert selected != ""
    return selected


def test_a_tick_leaves_what_is_selected_and_focused_on_a_nodes_page(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/node/gpu-02")
    link = page.locator('a[href="#/gpu/gpu-02/3"]').first
    link.focus(timeout=PATIENCE_MS)
    cell = page.locator("tr", has=link).locator("td").nth(1)
    before = cell.inner_text()
    selected = _select(page, "tr[data-key='4242'] td:nth-child(2)")
    at = time.time() + 5
    troubled.send(wire.Tick(at=at, nodes=(wire.NodeTick(node="gpu-02", at=at, used_mib=(12345,) * 8),)))
    expect(cell).not_to_have_text(before, timeout=PATIENCE_MS)
    expect(cell).to_contain_text("12.1 / 79.1 GiB")
    assert page.evaluate("() => window.held.isConnected && String(getSelection())") == selected
    expect(link).to_be_focused()


@pytest.mark.parametrize("address", ["#/runs", f"#/run/{scenes.RUN}"])
def test_a_step_leaves_what_is_selected_on_the_pages_of_runs(address: str, troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, address)
    expect(page.locator("main")).to_contain_text(scenes.RUN, timeout=PATIENCE_MS)
    selected = _select(page, f"tr[data-key='{scenes.RUN}'] .name a" if address == "#/runs" else ".narrow dl dt")
    run = next(run for run in troubled.snapshot.runs if run.run == scenes.RUN)
    step = wire.StepPoint(at=time.time(), step=wire.Step(step=61, step_seconds=99.0, rollout_seconds=41.0))
    troubled.send(wire.RunChanged(run=msgspec.structs.replace(run, steps=(step,))))
    expect(page.locator("main")).to_contain_text("99 s", timeout=PATIENCE_MS)
    assert page.evaluate("() => window.held.isConnected && String(getSelection())") == selected


@pytest.mark.parametrize("address", ["#/gpu/gpu-02/3", "#/node/gpu-02"])
def test_a_chart_asks_for_all_its_figures_at_once(address: str, troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/v1/history?" in request.url else None)
    page.goto(troubled.url + address)
    expect(page.locator(".chart-frame").first).to_have_attribute("aria-busy", "false", timeout=PATIENCE_MS)
    charts = [url for url in asked if url.count("series=") > 1]
    assert 1 <= len(charts) <= 2  # once more where the plot got its width only then
    assert charts[0].count("series=") >= 9
    sparks = [url for url in asked if url.count("series=") == 1]
    assert len(sparks) == (0 if "gpu/" in address else 8)


def test_back_shows_a_page_where_it_was_left_and_a_link_one_from_its_top(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts", width=390)
    expect(page.locator(".alert").first).to_be_visible(timeout=PATIENCE_MS)
    page.evaluate("() => scrollTo(0, 400)")
    page.wait_for_function("() => scrollY === 400")
    page.evaluate("() => { location.hash = '#/node/gpu-02'; }")
    expect(page.locator("h1")).to_contain_text("gpu-02", timeout=PATIENCE_MS)
    page.wait_for_function("() => scrollY === 0")
    page.evaluate("() => scrollTo(0, 300)")
    page.wait_for_function("() => scrollY === 300")
    page.go_back()
    expect(page.locator(".alert").first).to_be_visible(timeout=PATIENCE_MS)
    page.wait_for_function("() => scrollY === 400")
    page.go_forward()
    page.wait_for_function("() => location.hash === '#/node/gpu-02' && scrollY === 300")
    page.reload()
    page.wait_for_function("() => scrollY === 300")


def test_a_phones_first_screen_shows_the_map_below_the_headline_and_the_notices(
    troubled: Stage, reader: Reader
) -> None:
    page = reader.open(troubled, width=390)
    canvas = page.locator(".fleet-map canvas").first
    expect(canvas).to_be_visible(timeout=PATIENCE_MS)
    box = canvas.bounding_box()
    assert box is not None
    assert box["y"] <= 844 * 0.4  # of a phone of today
    broken = msgspec.structs.replace(scenes.SERVER, rules_error="\n".join(f"alerts.yaml:{n}:5: no" for n in range(9)))
    troubled.send(wire.RulesChanged(server=broken, rules=scenes.RULES))
    troubled.send(wire.ChannelsChanged(channels=FAILED))
    expect(page.locator(".notice")).to_have_count(2, timeout=PATIENCE_MS)
    box = canvas.bounding_box()
    assert box is not None
    assert box["y"] <= 844 * 0.6
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_what_the_server_says_in_english_is_framed_in_chinese(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, language="zh-CN")
    broken = msgspec.structs.replace(scenes.SERVER, rules_error="alerts.yaml:3:5: unknown metric")
    troubled.send(wire.RulesChanged(server=broken, rules=scenes.RULES))
    notice = page.locator(".notice", has_text="alerts.yaml")
    expect(notice).to_contain_text("请改正下列各行", timeout=PATIENCE_MS)
    expect(notice).to_contain_text("服务器拒绝了该文件，原文（英文）：alerts.yaml:3:5: unknown metric")
    expect(notice.locator("[lang=en]")).to_have_text("alerts.yaml:3:5: unknown metric")
    page.goto(troubled.url + "#/channels")
    troubled.send(wire.ChannelsChanged(channels=FAILED))
    expect(page.locator(".channel-error code").first).to_contain_text("接收方或网络的原文：Slack", timeout=PATIENCE_MS)


LINE_PX = 24  # names of lines that find no room beside the title


@pytest.mark.parametrize("steps", [60, 8], ids=["whose first peaks nobody remembers", "whose peaks are all known"])
def test_the_peaks_of_a_run_come_into_a_place_that_is_kept_for_them(
    steps: int, troubled: Stage, reader: Reader
) -> None:
    runs = (msgspec.structs.replace(run, steps=run.steps[-steps:]) for run in troubled.snapshot.runs)
    troubled.snapshot = msgspec.structs.replace(troubled.snapshot, runs=tuple(runs))
    page = reader.open(troubled)
    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)

    page.route("**/peaks", hold)
    page.goto(f"{troubled.url}#/run/{scenes.RUN}")
    row = page.locator("[data-row=peaks]")
    expect(row.locator(".note")).to_contain_text("are being asked for", timeout=PATIENCE_MS)
    places = (
        "() => Object.fromEntries([...document.querySelectorAll('.step-row')].map(r => [r.dataset.row, r.offsetTop]))"
    )
    before = page.evaluate(places)
    _held(asked, page).continue_()
    expect(row.locator(".legend")).to_contain_text("GiB", timeout=PATIENCE_MS)
    expect(row.locator(".note")).to_have_text("" if steps == 8 else re.compile("Known from step"))
    after = page.evaluate(places)
    assert after.keys() == before.keys()
    assert max(abs(after[row] - top) for row, top in before.items()) <= LINE_PX


def _held(asked: list[Route], page: Page) -> Route:
    """The request that is held: the page says that it asks a moment before the browser tells of it."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not asked:
        assert time.monotonic() < deadline, "the page asked for no peaks"
        page.evaluate("0")  # Playwright hands events over while it waits for an answer
    return asked.pop()
