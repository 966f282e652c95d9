"""A translation that is up to date has the skeleton of its English page, and most are up to date.

Whoever changes an English page need not know Chinese: the site then says at the top of the translation that the English
text is newer, and `make docs-stale` lists such pages. One that is noted to be up to date must have the same headings,
tables, commands, files and links.
"""

import re
from itertools import count
from pathlib import Path

import pytest
from scripts import site_hooks, translations
from tests.site.conftest import ROOT

TRANSLATIONS = sorted(ROOT.glob("docs/**/*.zh.md"))
CURRENT = [page for page in TRANSLATIONS if not site_hooks.is_older(page)]
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"\]\(([^)\s]+)\)")


def body(text: str) -> str:
    """The page without the head that names what it was translated from."""
    return re.sub(r"\A---\n.*?\n---\n+", "", text, flags=re.DOTALL)


def code(text: str) -> list[str]:
    """What stands in blocks of code, without the comments, which are translated."""
    blocks = (block for _, _, block in _FENCED.findall(text))
    fenced = [re.sub(r"(^|\s+)#.*$", "", block, flags=re.MULTILINE).strip() for block in blocks]
    indented = [line.strip() for line in _FENCED.sub("", text).splitlines() if line.startswith("    ")]
    return fenced + [re.split(r"(?:^|\s+)#|\s{2,}", line)[0] for line in indented]


def rows(text: str) -> int:
    return len(re.findall(r"^\|", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_a_translation_that_is_up_to_date_has_the_skeleton_of_its_english_page(page: Path) -> None:
    english, chinese = site_hooks.english_of(page), body(page.read_text(encoding="utf-8"))
    assert [level for *_, level in site_hooks.headings(chinese)] == [
        level for *_, level in site_hooks.headings(english)
    ]
    assert code(chinese) == code(english)
    assert sorted(_TARGET.findall(chinese)) == sorted(_TARGET.findall(english))
    assert rows(chinese) == rows(english)


def test_at_least_half_of_the_translations_are_up_to_date() -> None:
    older = [str(page.relative_to(ROOT)) for page in TRANSLATIONS if page not in CURRENT]
    assert len(older) <= len(CURRENT), f"read them against the English pages (make docs-stale): {older}"


def test_a_translation_is_older_once_the_english_text_changes(tmp_path: Path) -> None:
    english, chinese = tmp_path / "page.md", tmp_path / "page.zh.md"
    english.write_text("# One\n", encoding="utf-8")
    chinese.write_text("# 一\n", encoding="utf-8")
    assert site_hooks.is_older(chinese)
    translations.note(chinese)
    assert not site_hooks.is_older(chinese)
    assert body(chinese.read_text(encoding="utf-8")) == "# 一\n"
    english.write_text("# One and two\n", encoding="utf-8")
    assert site_hooks.is_older(chinese)


def test_a_digest_of_digits_alone_is_no_number(tmp_path: Path) -> None:
    english, chinese = tmp_path / "page.md", tmp_path / "page.zh.md"
    texts = (f"# {number}\n" for number in count())
    english.write_text(next(text for text in texts if site_hooks.digest(text).isdecimal()), encoding="utf-8")
    chinese.write_text("# 一\n", encoding="utf-8")
    assert site_hooks.OUTDATED in site_hooks.translated("# 一\n", chinese)
    translations.note(chinese)
    assert site_hooks.OUTDATED not in site_hooks.translated("# 一\n", chinese)


def test_a_heading_that_a_translation_lacks_can_still_be_linked_to() -> None:
    marked = site_hooks.with_anchors("# 顶\n", "# Top\n\n## New\n")
    assert marked.splitlines()[0] == "# 顶 {#top}"
    assert '<a id="new"></a>' in marked


def test_headings_of_a_translation_have_the_english_anchors() -> None:
    english = "# Top\n\n## Try it\n\n```sh\n# no heading\n```\n\n## Try it\n"
    chinese = "# 顶\n\n## 试用\n\n## 再试\n"
    assert site_hooks.with_anchors(chinese, english).splitlines() == [
        "# 顶 {#top}",
        "",
        "## 试用 {#try-it}",
        "",
        "## 再试 {#try-it_1}",
    ]
