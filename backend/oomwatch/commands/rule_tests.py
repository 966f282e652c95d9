"""`oomwatch test rules`: run rule tests, and say what came out otherwise."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from oomwatch.options import SettingError
from oomwatch.rulefile import RuleFileError
from oomwatch.ruletest.run import run_tests
from oomwatch.ruletest.testfile import TestFileError, read_tests

FAILED = 1


def run(options: argparse.Namespace) -> int:
    """Run the tests of all files. Gives the exit status."""
    return max([_run(path) for name in options.files for path in _files(name)])


def _files(path: Path) -> Iterator[Path]:
    """The file, or those of the folder. Raises SettingError where there is none."""
    files = sorted(path.glob("*.y*ml")) if path.is_dir() else [path]
    if not files:
        raise SettingError(f"{path}: no .yaml file in this folder")
    yield from files


def _run(path: Path) -> int:
    try:
        outcome = run_tests(read_tests(path))
    except (TestFileError, RuleFileError) as error:
        print(error)
        return FAILED
    for difference in outcome.differences:
        print(difference)
    counts = f"{outcome.tests} test{'s' * (outcome.tests != 1)}, {outcome.checks} check{'s' * (outcome.checks != 1)}"
    failed = len(outcome.differences)
    print(f"{path}: {counts}: {f'{failed} failed' if failed else 'passed'}")
    return FAILED if failed else 0
