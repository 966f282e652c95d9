"""axe-core looks at every view, in both themes and languages, on a phone and on a desk: nothing may be found.

Of theme, language and width any two meet in every way: colours are of a theme and a width, names of a language, places
of a language and a width.
"""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser import on_call, scenes
from tests.browser.conftest import Reader
from tests.browser.look import STAGED
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
AXE = Path(__file__).resolve().parents[2] / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE_MS = 30_000  # to read plotly takes seconds on a machine under load
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def in_any_two_ways(narrow: int, wide: int) -> pytest.MarkDecorator:
    """Theme, language and width, each pair of their values once."""
    ways = [(False, "en", narrow), (True, "en", wide), (False, "zh-CN", wide), (True, "zh-CN", narrow)]
    names = [f"{'dark' if dark else 'light'}-{language}-{width}" for dark, language, width in ways]
    return pytest.mark.parametrize(("dark", "language", "width"), ways, ids=names)


@pytest.fixture(scope="module")
def axe() -> str:
    assert AXE.exists(), "make js-types installs what is missing"
    return AXE.read_text(encoding="utf-8")


@pytest.fixture
def stage(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    return staged(on_call.mixed(time.time()))


def found(page: Page, axe: str) -> Iterator[str]:
    """What axe says, a line for each element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)  # by the debugger, which no policy of the page forbids
    said: dict[str, Any] = page.evaluate("tags => axe.run({runOnly: tags, resultTypes: ['violations']})", RULES)
    for violation in said["violations"]:
        for node in violation["nodes"]:
            yield f"{violation['id']}: {node['html'][:160]} {node['failureSummary'][:300]}"


def _settled(page: Page, view: str) -> None:
    expect(page.locator("#view").locator("visible=true").first).to_be_visible()
    if view == "rules":
        expect(page.locator(".rule").first).to_be_visible()
        page.locator(".rule > summary").first.click()
        expect(page.locator(".rule-now").first).to_be_visible()
    if view == "doctor":
        expect(page.locator(".doctor-templates li").first).to_be_visible(timeout=PATIENCE_MS)
    if view == "doctor-template":
        expect(page.locator(".doctor-report:not(.outdated)")).to_be_visible(timeout=PATIENCE_MS)
    if view == "rule-file":
        expect(page.locator(".locked")).to_be_visible()
    if view == "alert-timeline":
        expect(page.locator(".alert-bar").first).to_be_visible()
    if view in ("gpu", "run", "node"):
        expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)


@in_any_two_ways(390, 1440)
def test_axe_finds_nothing_in_any_view(
    stage: Stage, reader: Reader, axe: str, dark: bool, language: str, width: int
) -> None:
    page = reader.open(stage, language=language, dark=dark, width=width)
    complaints: list[str] = []
    for view, address in STAGED.items():
        page.goto(stage.url + address)
        _settled(page, view)
        complaints += [f"{view}: {line}" for line in found(page, axe)]
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        complaints += [f"{view}: {wide} px too wide"] if wide > 0 else []
    assert not complaints, "\n".join(complaints)


def test_axe_finds_nothing_in_dialogs_and_in_what_is_unfolded(stage: Stage, reader: Reader, axe: str) -> None:
    page = reader.open(stage, "#/alerts")
    for name in ("Acknowledge", "Silence…"):
        page.locator(".alert").first.get_by_role("button", name=name).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert list(found(page, axe)) == []
        page.keyboard.press("Escape")
    for summary in page.locator("summary").all():
        if summary.is_visible() and not summary.evaluate("one => one.parentElement.open"):
            summary.click()
    assert list(found(page, axe)) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_while_the_server_is_away(stage: Stage, reader: Reader, axe: str, dark: bool) -> None:
    page = reader.open(stage, dark=dark)
    expect(page.locator("#tools .link")).to_have_text("live")
    stage.takes_browsers = False
    stage.drop()
    expect(page.locator("#tools .link")).to_have_text("reconnecting")
    assert list(found(page, axe)) == []


def test_axe_finds_nothing_where_there_is_nothing_yet(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader, axe: str
) -> None:
    stage = staged(wire.Snapshot(at=time.time(), server=scenes.SERVER))
    page = reader.open(stage)
    for view, address in STAGED.items():
        page.goto(stage.url + address)
        expect(page.locator("h1").first).to_be_attached()
        assert list(found(page, axe)) == [], view
    reader.forgive(re.compile("404"))  # of the node that is not there


def test_axe_looks_at_contrast_and_at_the_size_of_what_is_pressed(stage: Stage, reader: Reader, axe: str) -> None:
    """What it does not look at, it cannot find."""
    page = reader.open(stage, "#/alerts")
    expect(page.locator(".alert").first).to_be_visible()
    page.evaluate(axe)
    passed = page.evaluate("async tags => (await axe.run({runOnly: tags})).passes.map(one => one.id)", RULES)
    assert {"color-contrast", "target-size", "button-name", "heading-order"} <= set(passed)
