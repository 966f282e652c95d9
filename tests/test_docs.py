"""What the documents point to exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BENCH_PAGES = ("performance.md", "warnings-bench.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_navigation_of_the_site_leads_to_every_page() -> None:
    led_to = set(re.findall(r"[\w/.-]+\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE))
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md") if ".zh" not in page.suffixes}
    assert pages - led_to == set()


def test_every_make_target_that_the_documents_name_exists() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"(?:`|^ {4})make ([a-z-]+)", text, flags=re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert {"run", "test"} <= named
    assert named - targets == set()


def test_every_benchmark_stands_on_a_page_of_figures() -> None:
    pages = [(ROOT / "docs/reference" / name).read_text(encoding="utf-8") for name in BENCH_PAGES]
    programs = {path.stem for path in (ROOT / "bench").glob("[a-z]*.py")}
    programs |= {path.parent.name for path in (ROOT / "bench").glob("*/__main__.py")}
    assert programs == {name for page in pages for name in re.findall(r"python -m bench\.([a-z_]+)", page)}
