"""Which translations are older than their English page: `python -m scripts.translations`.

With names of translations it notes that they are up to date: to be called once they have been read against the English
text. The site says at the top of an older one that the English text is newer.
"""

# ruff: noqa: T201 - it tells its caller

import sys
from pathlib import Path

from scripts.site_hooks import DOCS, HEAD, digest, english_of, is_older


def note(translation: Path) -> None:
    """Writes into the translation's head which English text it is of."""
    text = without_head(translation)
    translation.write_text(f"---\ntranslates: {digest(english_of(translation))}\n---\n\n{text}", encoding="utf-8")


def without_head(page: Path) -> str:
    """The page's own text."""
    return HEAD.sub("", page.read_text(encoding="utf-8"))


def main(names: list[str]) -> None:
    """Notes those that are named, or lists those that are older."""
    for name in names:
        note(Path(name))
    for page in sorted(DOCS.rglob("*.zh.md")):
        if is_older(page):
            print(page.relative_to(DOCS.parent))


if __name__ == "__main__":
    main(sys.argv[1:])
