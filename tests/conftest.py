"""What every test may use."""

import inspect
import itertools
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import hypothesis
import pytest
from tests.missing import do_without
from tests.postgres.fixtures import database_url, empty_postgres_url, own_server, postgres_server, postgres_url

ACCEPTANCE = Path(__file__).parent / "acceptance"
__all__ = ["database_url", "empty_postgres_url", "need", "need_file", "own_server", "postgres_server", "postgres_url"]

# The same examples at every run: a test that fails tells of the change, never of the dice. No deadline: a slow machine
# is no defect. No database: a run leaves nothing behind that the next would start from.
hypothesis.settings.register_profile("deterministic", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("deterministic")


# Modules whose classes and functions start the real server, agent or a whole site.
STARTERS = frozenset({
    "tests.acceptance.programs", "tests.acceptance.several", "tests.chaos.sites",
    "tests.faults.agents", "tests.faults.confined", "tests.faults.programs",
})  # fmt: skip


def pytest_itemcollected(item: pytest.Item) -> None:
    """`acceptance` is true wherever a test lies: a file that starts programs has it, or says itself which tests do."""
    if isinstance(item, pytest.Function) and starts_programs(vars(item.module)):
        item.add_marker(pytest.mark.acceptance)


def starts_programs(names: Mapping[str, object]) -> bool:
    """Whether a test file with these names starts real programs, and marks none of its tests for it."""
    # Functions and classes alone: an object such as SQLAlchemy's `func` has an attribute of any name.
    tests = [one for one in names.values() if inspect.isfunction(one) or inspect.isclass(one)]
    marks = [mark for one in tests for mark in getattr(one, "pytestmark", ())]
    starts = any(getattr(one, "__module__", None) in STARTERS for one in names.values())
    return starts and all(mark.name != "acceptance" for mark in marks)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, so that all workers end together: those of real programs, which wait more than they
    work, and those of browsers, which work, by turns, so that one worker works while another waits."""
    astray = [item.nodeid for item in items if _has([item], "alone") and ACCEPTANCE not in item.path.parents]
    if astray:
        raise pytest.UsageError(f"make test looks for what must be alone in {ACCEPTANCE}, and not for {astray}")
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    programs = [path for path, those in files.items() if _has(those, "acceptance")]
    browsers = [path for path, those in files.items() if _has(those, "browser") and path not in programs]
    turns = [path for both in itertools.zip_longest(programs, browsers) for path in both if path is not None]
    items[:] = [item for path in dict.fromkeys([*turns, *files]) for item in files[path]]


def _has(items: list[pytest.Item], mark: str) -> bool:
    return any(item.get_closest_marker(mark) for item in items)


@pytest.fixture(scope="session")
def need() -> Callable[[str, str], str]:
    """`need("chromium", "apt-get install chromium")` gives the program's path.

    Where it is missing the test is skipped, and the reason says how to get it; where CI=true is set it fails, since
    there a skip would hide that nothing was tested.
    """

    def path_or_skip(tool: str, how_to_get: str) -> str:
        return shutil.which(tool) or do_without(tool, how_to_get)

    return path_or_skip


@pytest.fixture(scope="session")
def need_file() -> Callable[[Path, str], Path]:
    """Like `need`, for a file that something else brings: `need_file(path, "make test, which runs npm ci")`."""

    def path_or_skip(path: Path, how_to_get: str) -> Path:
        return path if path.exists() else do_without(str(path), how_to_get)

    return path_or_skip
