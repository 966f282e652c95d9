"""The catalogue of sentences is whole: both languages, the same placeholders, every key that the server uses."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest

import oomwatch
import oomwatch_frontend
from oomwatch import wire
from oomwatch.catalogue import entries, placeholders, say

_KEY = re.compile(r"""["'](notify\.[a-z_]+)["']""")


def test_every_sentence_is_there_in_every_language() -> None:
    for key, sentences in entries().items():
        assert set(sentences) == set(wire.LANGUAGES), key
        assert all(sentence.strip() for sentence in sentences.values()), key


def test_no_key_stands_twice() -> None:
    """The later one would win without a word."""
    text = (Path(oomwatch_frontend.__file__).parent / "catalogue.json").read_text(encoding="utf-8")
    keys = json.loads(text, object_pairs_hook=lambda pairs: [key for key, _ in pairs])
    assert sorted(set(keys)) == sorted(keys)


def test_the_languages_of_a_sentence_have_the_same_placeholders() -> None:
    for key, sentences in entries().items():
        assert len({placeholders(sentence) for sentence in sentences.values()}) == 1, key


def test_every_key_that_notifications_use_is_known_and_none_is_left_over() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (Path(oomwatch.__file__).parent / "notify").rglob("*.py")]
    used = {key for source in sources for key in _KEY.findall(source)}
    used |= {f"notify.severity_{severity}" for severity in wire.SEVERITIES}
    used |= {f"notify.muted_{kind}" for kind in get_args(wire.MuteKind)}
    assert used == {key for key in entries() if key.startswith("notify.")}


def test_every_reason_of_an_alerts_end_has_its_words_and_none_is_left_over() -> None:
    """One family of keys serves the page and the notifications."""
    known = {key.removeprefix("reason.") for key in entries() if key.startswith("reason.")}
    assert known == {reason.replace(" ", "_") for reason in wire.TRANSITION_REASONS}


def test_an_unknown_key_and_a_missing_value_are_errors() -> None:
    with pytest.raises(KeyError, match="unheard_of"):
        say("unheard_of", "en")
    with pytest.raises(KeyError, match="count"):
        say("notify.gpus", "en")


def test_braces_in_a_value_are_left_alone() -> None:
    assert say("notify.run", "en", run="{count} {0} {run}") == "run {count} {0} {run}"
