"""Which pages are made from the code, and by what."""

from collections.abc import Callable
from pathlib import Path

from scripts import translations
from scripts.reference import messages, options, routes, rulefile
from scripts.reference.words import Words

from oomwatch import wire

REFERENCE = Path(__file__).resolve().parent.parent.parent / "docs/reference"
PAGES: dict[str, Callable[[Words], str]] = {
    "options": options.page,
    "messages": messages.page,
    "routes": routes.page,
    "rule-file": rulefile.page,
}
_ENDS: dict[wire.Language, str] = {"en": ".md", "zh": ".zh.md"}


def place(name: str, language: wire.Language) -> Path:
    """Where the page of that name stands."""
    return REFERENCE / f"{name}{_ENDS[language]}"


def written(name: str, say: Words) -> str:
    """The page, with a word on where it comes from."""
    head, rest = PAGES[name](say).split("\n", 1)
    return f"{head}\n\n<!-- Made from the code: make docs-reference writes it anew. -->\n{rest}"


def write() -> list[str]:
    """Writes all of them, and gives back the sentences that have no translation: they stand there in English."""
    chinese = Words("zh")
    for name in PAGES:
        place(name, "en").write_text(written(name, Words("en")), encoding="utf-8")
        place(name, "zh").write_text(written(name, chinese), encoding="utf-8")
        translations.note(place(name, "zh"))
    return chinese.missing()
