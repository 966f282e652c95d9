"""What a person has selected, focused or scrolled to stays, while the page goes on and where they come back to it."""

import time

import msgspec
import pytest
from playwright.sync_api import Page, expect
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000


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
