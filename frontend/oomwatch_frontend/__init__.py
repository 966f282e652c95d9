"""The page: static files, without a build step; the server puts its scripts together (oomwatch.web.bundle)."""

from pathlib import Path

STATIC = Path(__file__).parent
"""Folder to serve under /static/. Its index.html is the page at /."""

CATALOGUE = STATIC / "catalogue.json"
"""Every sentence of the page and of the notifications: {"key": {"en": "...", "zh": "..."}}, placeholders as {name}."""
