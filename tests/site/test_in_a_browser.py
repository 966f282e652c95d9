"""The documentation's site in a real browser."""

import pytest
from playwright.sync_api import Browser, expect
from tests.browser.conftest import chromium

__all__ = ["chromium"]  # the fixture

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000


@pytest.mark.parametrize(("page", "words", "found"), [("", "acknowledge", "acknowledge"), ("zh/", "告警", "告")])
def test_search_finds_words_of_either_language_and_nobody_else_is_asked(
    chromium: Browser, address: str, page: str, words: str, found: str
) -> None:
    reader = chromium.new_page()
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    reader.goto(address + page)
    reader.locator("[data-md-component=search-query]").fill(words)
    result = reader.locator(".md-search-result__item mark", has_text=found).first
    expect(result).to_be_attached(timeout=PATIENCE_MS)
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    reader.close()
