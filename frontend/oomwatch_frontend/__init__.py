"""The page: static files, served as they lie here. There is no build step."""

from pathlib import Path

STATIC = Path(__file__).parent
"""Folder to serve under /static/. Its index.html is the page at /."""

CATALOGUE = STATIC / "catalogue.json"
"""Every sentence of the page and of the notifications: {"key": {"en": "...", "zh": "..."}}, placeholders as {name}."""
