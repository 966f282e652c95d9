"""Which pages are made from the code, and by what."""

from collections.abc import Callable
from pathlib import Path

from scripts.reference import messages, options, routes, rulefile

REFERENCE = Path(__file__).resolve().parent.parent.parent / "docs/reference"
PAGES: dict[Path, Callable[[], str]] = {
    REFERENCE / "options.md": options.page,
    REFERENCE / "messages.md": messages.page,
    REFERENCE / "routes.md": routes.page,
    REFERENCE / "rule-file.md": rulefile.page,
}


def written(page: Callable[[], str]) -> str:
    """The page, with a word on where it comes from."""
    head, rest = page().split("\n", 1)
    return f"{head}\n\n<!-- Made from the code: make docs-reference writes it anew. -->\n{rest}"
