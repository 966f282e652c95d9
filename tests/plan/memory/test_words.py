"""Every part, moment and trouble that an estimate may name has words, and no others are there."""

import re
from pathlib import Path

import oomwatch.plan.memory
from oomwatch import catalogue

SOURCES = sorted(Path(oomwatch.plan.memory.__file__).parent.glob("*.py"))


def _named(pattern: str) -> set[str]:
    return {name for path in SOURCES for name in re.findall(pattern, path.read_text(encoding="utf-8"))}


def _words(family: str) -> set[str]:
    return {key.removeprefix(family) for key in catalogue.entries() if key.startswith(family)}


def test_parts_have_words() -> None:
    assert _named(r'Part\(\s*name="([a-z_]+)"') == _words("plan.part.")


def test_moments_have_words() -> None:
    moments = _named(r'Moment\(name="([a-z_]+)"') | _named(r'estimated\(\s*"[a-z_]+", "([a-z_]+)"')
    assert moments == _words("plan.moment.")


def test_troubles_and_assumptions_have_words() -> None:
    assert _named(r'"(no_cache|cache_too_small)"') == _words("plan.trouble.")
    assert _named(r'"(longest_batch|known_lengths|no_reward_model|no_images)"') == _words("plan.assumed.")
