"""Writes the pages that are made from the code."""

from scripts.reference.pages import PAGES, written

if __name__ == "__main__":
    for place, text in PAGES.items():
        place.write_text(written(text), encoding="utf-8")
