"""What the fuzzer once found worth keeping is read as it should be, in every run and without the fuzzer."""

import random
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.fuzz.odd_json import with_another_value
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parent / "corpus"
MAKEFILE = Path(__file__).resolve().parent.parent.parent / "Makefile"
BYTES_MAX = 300 * 1024
CASES_PER_SEED = 3
# What goes on for ever, where something may begin or end. The fuzzer's inputs are short: they show what takes
# exponential time, and not what takes the square of a length.
REPEATED = [*(bytes([one]) for one in b'1./ -_[({"\\a'), b"a,", b"a:", b"a=", b"1.", b"- a\n"]
REPEATED_BYTES = 60_000
PLACES_OF_BYTES = 4_000  # of seeds: all places of a short one, a few of a long one
PLACES_LEAST = 2  # and of those that are read as YAML, which takes a tenth of a second each
YAML = {"agent_settings", "configuration", "rule_file"}
LIMIT_SECONDS = 3.0  # of CPU; a tenth of a second is usual, and a thousandth
_EDGE = re.compile(rb"[\"'=:\[({ ,\n]|^|$")


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


@pytest.mark.parametrize("name", TARGETS)
def test_what_goes_on_for_ever_is_read_or_refused_in_time(name: str) -> None:
    slow = []
    for place, content in _endless(name):
        before = time.process_time()
        TARGETS[name].attempt(content)
        if time.process_time() - before > LIMIT_SECONDS:
            slow.append(place)
    assert slow == []


def _endless(name: str) -> Iterator[tuple[str, bytes]]:
    dice, seeds = random.Random(zlib.crc32(name.encode())), list(TARGETS[name].seeds())
    for text in REPEATED:
        seed = dice.choice(seeds)
        most = PLACES_LEAST if name in YAML else max(PLACES_LEAST, PLACES_OF_BYTES // len(seed))
        places = sorted({at for found in _EDGE.finditer(seed) for at in found.span()})
        for at in dice.sample(places, min(len(places), most)):
            endless = text * (REPEATED_BYTES // len(text))
            yield f"{text!r} after {seed[max(0, at - 40) : at]!r}", seed[:at] + endless + seed[at:]


def test_the_corpus_stays_small_and_is_of_these_targets() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*")) < BYTES_MAX


def test_another_value_is_put_into_a_line_that_stays_json() -> None:
    dice, line = random.Random(1), b'{"a":{"b":[1,2]},"c":null}'
    changed = [one for _ in range(50) if (one := with_another_value(line, dice)) is not None]
    assert len({*changed}) > 10
    assert all(msgspec.json.decode(one) is not None for one in changed if b"\\ud800" not in one)
    assert with_another_value(b"no JSON", dice) is None
