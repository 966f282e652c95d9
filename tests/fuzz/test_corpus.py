"""What the fuzzer once found worth keeping is read as it should be, in every run and without the fuzzer."""

import random
import re
from pathlib import Path

import msgspec
import pytest
from tests.fuzz.odd_json import with_another_value
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parent / "corpus"
MAKEFILE = Path(__file__).resolve().parent.parent.parent / "Makefile"
BYTES_MAX = 300 * 1024
CASES_PER_SEED = 3


def test_the_long_run_takes_every_target() -> None:
    (listed,) = re.findall(r"^FUZZ_TARGETS = (.+)$", MAKEFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed.split()) == set(TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_kept_breaks_nothing(name: str) -> None:
    kept = sorted((CORPUS / name).iterdir())
    assert kept
    for path in kept:
        TARGETS[name].attempt(path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_a_seed_breaks_nothing_whatever_is_in_place_of_some_of_it(name: str) -> None:
    dice, target = random.Random(0), TARGETS[name]
    for seed in target.seeds():
        target.attempt(seed)
        for _ in range(CASES_PER_SEED):
            target.attempt(_damaged(seed, dice, is_json=target.is_json))


def _damaged(seed: bytes, dice: random.Random, *, is_json: bool) -> bytes:
    if is_json:
        lines = seed.splitlines(keepends=True)
        at = dice.randrange(len(lines))
        return b"".join([*lines[:at], with_another_value(lines[at], dice) or b"", *lines[at + 1 :]])
    at = dice.randrange(len(seed))
    return seed[:at] + bytes([dice.randrange(256)]) + seed[at + dice.randrange(3) :]


def test_the_corpus_stays_small_and_is_of_these_targets() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*")) < BYTES_MAX


def test_another_value_is_put_into_a_line_that_stays_json() -> None:
    dice, line = random.Random(1), b'{"a":{"b":[1,2]},"c":null}'
    changed = [one for _ in range(50) if (one := with_another_value(line, dice)) is not None]
    assert len({*changed}) > 10
    assert all(msgspec.json.decode(one) is not None for one in changed if b"\\ud800" not in one)
    assert with_another_value(b"no JSON", dice) is None
