"""Pages of docs/reference that are made from the code say what the code says, in both languages."""

import functools
import re
import typing

import pytest
from scripts import site_hooks, translations
from scripts.reference.pages import PAGES, place, written
from scripts.reference.words import TABLE, Words, chinese
from tests.site.conftest import ROOT

from oomwatch import wire
from oomwatch.web.guard import AGENT_PATH
from oomwatch.web.live import LIVE_PATH
from oomwatch.web.oidcdoor import OIDC_BACK
from oomwatch.web.signin import SIGN_IN, SIGN_OUT
from oomwatch.web.signinpage import OIDC_START

# Named in texts that say how variables are named, and by the tests of other programs.
_NO_VARIABLES = {"OOMWATCH_"}

_HAN = re.compile(r"[\u4e00-\u9fff]")
# What a translation leaves as it is: code, {placeholders}, targets of links, quoted words, --flags, paths, names with
# underscores or dots, names in capitals, and numbers with the unit that is written to them.
_SAME = re.compile(
    r"`[^`]+`|\{\w+\}|\]\([^)]+\)|\"[^\"]+\"|--[a-z][a-z-]+|(?<![\w:])/[\w/]+"
    r"|\b\w{2,}(?:[._:]\w+)+|\b[A-Z][A-Z0-9_]{2,}(?=s?\b)|\d+(?:\.\d+)?[a-zA-Z%]*|\b(?:KiB|MiB|GiB|MB|GB)\b",
    re.ASCII,
)


def kept(sentence: str) -> set[str]:
    return set(_SAME.findall(sentence))


@functools.cache
def made(name: str, language: wire.Language) -> tuple[str, Words]:
    """The page as the code says it now, and what it asked for."""
    say = Words(language)
    return written(name, say), say


@pytest.mark.parametrize("language", typing.get_args(wire.Language))
@pytest.mark.parametrize("name", PAGES)
def test_a_page_that_is_made_from_the_code_is_up_to_date(name: str, language: wire.Language) -> None:
    page = place(name, language)
    assert translations.without_head(page) == made(name, language)[0], "run: make docs-reference"


@pytest.mark.parametrize("name", PAGES)
def test_the_chinese_page_is_noted_as_that_of_the_english_one(name: str) -> None:
    assert not site_hooks.is_older(place(name, "zh")), "run: make docs-reference"


def test_every_sentence_of_the_code_has_its_chinese() -> None:
    missing = [sentence for name in PAGES for sentence in made(name, "zh")[1].missing()]
    assert missing == [], f"say these in {TABLE.relative_to(ROOT)}, then: make docs-reference"


def test_every_chinese_sentence_is_that_of_a_sentence_of_the_code() -> None:
    asked = {sentence for name in PAGES for sentence in made(name, "zh")[1].asked}
    assert sorted(chinese().keys() - asked) == [], f"remove these from {TABLE.relative_to(ROOT)}"


def test_no_sentence_is_translated_twice() -> None:
    lines = re.findall(r'^"', TABLE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(lines) == len(chinese())


def test_code_names_and_numbers_are_the_same_in_both_languages() -> None:
    differing = {english: said for english, said in chinese().items() if kept(english) != kept(said)}
    assert differing == {}


def test_what_is_more_than_names_is_said_in_chinese() -> None:
    words = {english: said for english, said in chinese().items() if re.search("[a-z]", _SAME.sub("", english))}
    assert {english for english, said in words.items() if not _HAN.search(said)} == set()


@pytest.mark.parametrize("name", PAGES)
def test_a_chinese_page_names_the_same_code_as_the_english_one(name: str) -> None:
    code = re.compile(r"`[^`]+`")
    english, translation = (code.findall(made(name, language)[0]) for language in typing.get_args(wire.Language))
    assert sorted(translation) == sorted(english) != []


def test_every_variable_that_the_code_reads_is_documented() -> None:
    sources = [*ROOT.glob("backend/**/*.py"), *ROOT.glob("agent/**/*.py")]
    named = {name for one in sources for name in re.findall(r"\bOOMWATCH_[A-Z_]*", one.read_text(encoding="utf-8"))}
    told = set(re.findall(r"\bOOMWATCH_[A-Z_0-9]*", (ROOT / "docs/reference/options.md").read_text(encoding="utf-8")))
    assert named - told - _NO_VARIABLES == set()


def test_every_route_beside_the_interface_is_documented() -> None:
    sources = [one.read_text(encoding="utf-8") for one in (ROOT / "backend/oomwatch/web").glob("*.py")]
    paths = {path for text in sources for path in re.findall(r'Route\("(/[a-z]+)"', text)}
    paths |= {SIGN_IN, SIGN_OUT, OIDC_START, OIDC_BACK, LIVE_PATH, AGENT_PATH}
    told = (ROOT / "docs/reference/routes.md").read_text(encoding="utf-8")
    assert paths
    assert [path for path in paths if path not in told] == []
