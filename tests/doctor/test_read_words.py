"""Every complaint of the reading has its words, and no words are left over."""

import re
from pathlib import Path

import pytest

import oomwatch.doctor.read
from oomwatch.catalogue import entries, placeholders
from oomwatch.doctor.read import ReadingError, Source, read
from oomwatch.doctor.read.words import words_of

FOLDER = Path(oomwatch.doctor.read.__file__).parent
CODE = "\n".join(path.read_text(encoding="utf-8") for path in sorted(FOLDER.rglob("*.py")))
WHATS = {key.removeprefix("doctor.read.") for key in entries() if re.fullmatch(r"doctor\.read\.[a-z_]+", key)}


def test_there_are_words() -> None:
    assert len(WHATS) > 30


@pytest.mark.parametrize("what", sorted(WHATS))
def test_words_are_used_and_come_with_a_remedy(what: str) -> None:
    assert f'"{what.removeprefix("perhaps_")}"' in CODE
    sentence, remedy = entries()[f"doctor.read.{what}"], entries()[f"doctor.read.{what}.remedy"]
    assert placeholders(remedy["en"]) <= placeholders(sentence["en"])


def test_every_complaint_that_the_code_makes_has_words() -> None:
    made = set(re.findall(r'(?:ReadingError|UnresolvedError|_complain)\(\s*"([a-z_]+)"', CODE))
    made |= set(re.findall(r'what="([a-z_]+)"', CODE)) | {
        "lost_by_comment",
        "lost_by_blank",
        "lost",
        "perhaps_must_be_told",
    }
    stops = set(re.findall(r'_stops\("([a-z_]+)"', CODE))
    assert made | stops | {f"perhaps_{what}" for what in stops} == WHATS


def test_an_error_says_where_what_and_what_to_do() -> None:
    with pytest.raises(ReadingError) as caught:
        read([Source("train.sh", "python -m verl.trainer.main_ppo 'data.train_batch_size=60")])
    assert caught.value.place == "train.sh:1"
    assert words_of(caught.value, "en") == ("The ' that stands here is never closed.", "Close it.")
    assert words_of(caught.value, "zh").remedy == "请将其闭合。"
