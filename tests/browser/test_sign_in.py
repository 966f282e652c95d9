"""A person signs in with a token, in a real browser, over a real server."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.test_accessible import axe, found
from tests.server.running_server import RunningServer, settings_in

from oomwatch.settings import Settings

__all__ = ["axe"]  # a fixture


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_person_signs_in_and_sees_the_page(
    chromium: Browser, served: Callable[[Settings], RunningServer], axe: str, tmp_path: Path, scheme: str
) -> None:
    server = served(settings_in(tmp_path, reader_token="look"))
    context = chromium.new_context(color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    page.goto(server.url)
    expect(page.get_by_label("Token")).to_be_focused()
    assert list(found(page, axe)) == []
    page.get_by_label("Token").fill("guess")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not known")
    assert list(found(page, axe)) == []
    page.get_by_label("Token").fill("look")
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator(".welcome")).to_be_visible()
    context.close()
