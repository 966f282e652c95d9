"""The documentation builds as a site, and nothing in it is loaded from elsewhere, also not by a real browser.

All that needs the site is in this file: tests of one file run in one worker, and so it is built once.
"""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from scripts.site_hooks import is_older
from tests.browser.conftest import chromium
from tests.site.conftest import ROOT

__all__ = ["chromium"]  # the fixture

TRANSLATIONS = sorted(ROOT.glob("docs/**/*.zh.md"))
PATIENCE_MS = 60_000
# What a browser loads by itself, as a link that is clicked is not: scripts, images, frames, style sheets, icons, fonts.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^>]*>"
    r"|<link\b(?![^>]*rel=[\"']?(?:canonical|alternate))[^>]*href=[\"']?(?:https?:)?//[^>]*>"
)
_LOADED_BY_STYLE = re.compile(r"(?:url\(|@import )[\"']?(?:https?:)?//")


def test_every_page_is_built_in_both_languages(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs") for page in ROOT.glob("docs/**/*.md") if ".zh" not in page.suffixes}
    folders = {page.parent if page.name == "index.md" else page.with_suffix("") for page in pages}
    missing = [one for one in folders for tree in (site, site / "zh") if not (tree / one / "index.html").is_file()]
    assert missing == []


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = {page: _LOADED.findall(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    styles = {style: _LOADED_BY_STYLE.findall(style.read_text(encoding="utf-8")) for style in site.rglob("*.css")}
    assert {page: found for page, found in {**pages, **styles}.items() if found} == {}


def test_a_page_without_a_translation_says_so_in_chinese_alone(site: Path) -> None:
    page = "CONTRIBUTING/index.html"
    assert "此页尚无中文翻译" in (site / "zh" / page).read_text(encoding="utf-8")
    assert "此页尚无中文翻译" not in (site / page).read_text(encoding="utf-8")


def shown(site: Path, page: Path) -> str:
    """What the site shows of a page of docs/, in its own language."""
    name = page.relative_to(ROOT / "docs").with_name(page.name.removesuffix(".md"))
    tree, plain = (site / "zh", name.with_suffix("")) if name.suffix == ".zh" else (site, name)
    folder = plain.parent if plain.name == "index" else plain
    return (tree / folder / "index.html").read_text(encoding="utf-8")


def test_a_translation_is_called_older_only_where_it_is(site: Path) -> None:
    called = [page for page in TRANSLATIONS if "英文原文在翻译之后有改动" in shown(site, page)]
    assert called == [page for page in TRANSLATIONS if is_older(page)]


def test_a_page_is_named_by_its_heading(site: Path) -> None:
    for page in (ROOT / "docs/reference/options.zh.md", ROOT / "docs/reference/rule-file.zh.md"):
        (heading,) = re.findall(r"^# (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert f"<title>{heading} - oomwatch</title>" in shown(site, page)
    untranslated = (site / "zh/CONTRIBUTING/index.html").read_text(encoding="utf-8")
    assert "<title>Contributing - oomwatch</title>" in untranslated


def test_the_anchors_of_a_translation_are_those_of_the_english_page(site: Path) -> None:
    heading = re.compile(r"<h[2-6] id=\"?([^\" >]+)")
    page = "tutorial/index.html"
    english, chinese = (heading.findall((tree / page).read_text(encoding="utf-8")) for tree in (site, site / "zh"))
    assert chinese == english != []


def test_a_file_that_a_page_leads_to_is_on_the_site(site: Path) -> None:
    assert "class Hello" in re.sub(
        r"<[^>]+>", "", (site / "source/backend/oomwatch/wire-py/index.html").read_text(encoding="utf-8")
    )


@pytest.mark.browser
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
