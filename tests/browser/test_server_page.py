"""The page of the server itself: what its database holds and how it grows, and what the server notices of itself."""

import msgspec
import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000


def test_the_state_of_the_connection_leads_to_the_server_and_its_database(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    page.locator("#tools .link").click(timeout=PATIENCE_MS)
    expect(page.locator("h1")).to_have_text("Server", timeout=PATIENCE_MS)
    figures = page.locator(".figures")
    expect(figures).to_contain_text("412.0 MiB", timeout=PATIENCE_MS)
    expect(figures).to_contain_text("38.4 MiB a day (by the last 6 h")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text("Every reading")
    expect(rows.first).to_contain_text("58 %")
    expect(rows.last).to_contain_text("61.0 MiB")
    expect(page.locator("main")).to_contain_text("Everything works.")


def test_what_the_server_notices_of_itself_is_said_in_its_own_words(healthy: Stage, reader: Reader) -> None:
    healthy.past.problems = ("the database cannot be written: the disk is full",)
    page = reader.open(healthy, "#/server", language="zh-CN")
    state = page.locator(".narrow")
    expect(state).to_contain_text("可以工作，但有以下问题", timeout=PATIENCE_MS)
    expect(state.locator("[lang=en]")).to_have_text("the database cannot be written: the disk is full")


def test_before_the_first_measurement_that_is_said_and_nothing_is_invented(healthy: Stage, reader: Reader) -> None:
    unknown = dict.fromkeys(msgspec.structs.asdict(healthy.past.storage))
    healthy.past.storage = msgspec.structs.replace(healthy.past.storage, **{**unknown, "history": ()})
    page = reader.open(healthy, "#/server")
    expect(page.locator(".figures")).to_contain_text("has not been measured yet", timeout=PATIENCE_MS)
    expect(page.locator("main")).not_to_contain_text("MiB")


def test_a_server_that_has_gone_is_not_said_to_work(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/server")
    expect(page.locator("main")).to_contain_text("Everything works.", timeout=PATIENCE_MS)
    healthy.takes_browsers = False
    healthy.drop()
    expect(page.locator("main")).to_contain_text("The server does not answer", timeout=PATIENCE_MS)
    expect(page.locator("main")).not_to_contain_text("Everything works.")
