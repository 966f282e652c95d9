"""An address that names no page, and the wall screen's word that it shows a demo."""

import time
from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import expect
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser


def test_an_address_that_names_no_page_says_so_with_the_pages_that_there_are(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/nonsense/x")
    expect(page.locator(".absent")).to_contain_text("There is no page #/nonsense/x.")
    page.locator(".absent").get_by_role("link", name="Runs").click()
    expect(page.locator("h1")).to_have_text("Runs")


@pytest.mark.parametrize("address", ["#/fleet?kiosk=1&every=999", f"#/run/{scenes.RUN}?kiosk=1&every=999"])
def test_the_wall_screen_says_of_a_demo_that_it_is_one_and_shows_no_controls(
    address: str, staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    snapshot = scenes.troubled(time.time())
    nodes = tuple(msgspec.structs.replace(node, simulated=True) for node in snapshot.nodes)
    page = reader.open(staged(msgspec.structs.replace(snapshot, nodes=nodes)), address)
    expect(page.locator("#headline .demo")).to_be_visible()
    expect(page.locator("main > *").first).to_be_visible()
    expect(page.locator("button:visible, select:visible, .run-choice:visible")).to_have_count(0)
    page.goto(page.url.replace("kiosk=1", "kiosk=0"))
    expect(page.locator("#headline .demo")).to_be_hidden()
    expect(page.locator("header .demo")).to_be_visible()
