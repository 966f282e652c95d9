"""A translation has the skeleton of its English page, so that one that has fallen behind in what matters is noticed.

Words may be mended in English without a word of Chinese: the site then says at the top of the translation that the
English text is newer, and `make docs-stale` lists such pages. Commands, files, links and the order must be the same.
"""

import re
from pathlib import Path

import pytest
from scripts import site_hooks, translations
from tests.site.conftest import ROOT

TRANSLATIONS = sorted(ROOT.glob("docs/**/*.zh.md"))
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"\]\(([^)\s]+)\)")


def english_of(page: Path) -> str:
    return page.with_name(page.name.removesuffix(".zh.md") + ".md").read_text(encoding="utf-8")


def body(text: str) -> str:
    """The page without the head that names what it was translated from."""
    return re.sub(r"\A---\n.*?\n---\n+", "", text, flags=re.DOTALL)


def code(text: str) -> list[str]:
    """What stands in blocks of code, without the comments, which are translated."""
    blocks = (block for _, _, block in _FENCED.findall(text))
    fenced = [re.sub(r"(^|\s+)#.*$", "", block, flags=re.MULTILINE).strip() for block in blocks]
    indented = [line.strip() for line in _FENCED.sub("", text).splitlines() if line.startswith("    ")]
    return fenced + [re.split(r"\s+#|\s{2,}", line)[0] for line in indented]


def rows(text: str) -> int:
    return len(re.findall(r"^\|", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_a_translation_has_the_skeleton_of_its_english_page(page: Path) -> None:
    english, chinese = english_of(page), body(page.read_text(encoding="utf-8"))
    assert [level for *_, level in site_hooks.headings(chinese)] == [
        level for *_, level in site_hooks.headings(english)
    ]
    assert code(chinese) == code(english)
    assert sorted(_TARGET.findall(chinese)) == sorted(_TARGET.findall(english))
    assert rows(chinese) == rows(english)


def test_a_translation_is_older_once_the_english_text_changes(tmp_path: Path) -> None:
    english, chinese = tmp_path / "page.md", tmp_path / "page.zh.md"
    english.write_text("# One\n", encoding="utf-8")
    chinese.write_text("# 一\n", encoding="utf-8")
    assert translations.is_older(chinese)
    translations.note(chinese)
    assert not translations.is_older(chinese)
    assert body(chinese.read_text(encoding="utf-8")) == "# 一\n"
    english.write_text("# One and two\n", encoding="utf-8")
    assert translations.is_older(chinese)


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
