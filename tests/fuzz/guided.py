"""Looks for bytes that break a target, guided by what of our code they reach.

    python -m tests.fuzz.guided TARGET --cases 1000000 --work FOLDER      # make fuzz does, of every target
    python -m tests.fuzz.guided TARGET --keep FOLDER --work FOLDER        # and keep the few that reach everything

It needs atheris (requirements-fuzz.txt), which has wheels for Python 3.11 to 3.13. What breaks a target is written to
FOLDER/TARGET/broken-*; the exit status is not 0 then.
"""

import argparse
import random
import sys
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["oomwatch", "oomwatch_agent"]):
    from tests.fuzz.odd_json import with_another_value
    from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).resolve().parent / "corpus"
HANGS_SECONDS = 20  # of one case, where other work keeps the machine busy
MEMORY_MIB = 2048
SEED_SHARE, JSON_SHARE = 0.3, 0.5
CHANGES_MAX = 5  # of values at once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument(
        "--work", type=Path, required=True, metavar="FOLDER", help="what is found on the way is kept here"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="reduce what was found, into this folder")
    options = parser.parse_args()
    target, work = TARGETS[options.target], options.work / options.target
    found, seeds, words = work / "found", work / "seeds", work / "words"
    for folder in (found, seeds):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (seeds / f"{number:03}").write_bytes(seed)
    words.write_text("".join(f"{_spelled(word)}\n" for word in target.words))
    known = [folder for folder in (CORPUS / options.target,) if folder.is_dir()]
    limits = [f"-max_len={target.longest_bytes}", f"-timeout={HANGS_SECONDS}", f"-rss_limit_mb={MEMORY_MIB}"]
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        told = ["-merge=1", *limits, str(options.keep), str(found), str(seeds)]
    else:
        told = [
            f"-runs={options.cases}", *limits, f"-dict={words}", f"-artifact_prefix={work}/broken-",
            "-print_final_stats=1", "-use_value_profile=1", str(found), str(seeds), *map(str, known),
        ]  # fmt: skip
    mutator = json_mutator(list(target.seeds())) if target.is_json else None
    atheris.Setup([sys.argv[0], *told], target.attempt, custom_mutator=mutator)
    atheris.Fuzz()


def json_mutator(seeds: list[bytes]) -> Callable[[bytes, int, int], bytes]:
    """Half of the time other values at places of lines, which are JSON; else what libFuzzer does.

    What msgspec decodes in C shows no coverage, so that what was found soon holds next to nothing: begin with a seed
    again now and then.
    """

    def mutated(content: bytes, longest: int, seed: int) -> bytes:
        dice = random.Random(seed)
        if dice.random() < SEED_SHARE:
            content = dice.choice(seeds)
        if dice.random() < JSON_SHARE:
            return bytes(atheris.Mutate(content, longest))
        lines = content.splitlines(keepends=True)
        for _ in range(dice.randrange(1, CHANGES_MAX)):
            if lines:
                at = dice.randrange(len(lines))
                lines[at] = with_another_value(lines[at], dice) or lines[at]
        return b"".join(lines)[:longest]

    return mutated


def _spelled(word: str) -> str:
    """As libFuzzer's dictionaries are written."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word.encode("latin-1")) + '"'


if __name__ == "__main__":
    main()
