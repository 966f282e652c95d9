"""What every test may use."""

import shutil
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest
from tests.missing import do_without
from tests.postgres.fixtures import database_url, empty_postgres_url, own_server, postgres_server, postgres_url

__all__ = ["database_url", "empty_postgres_url", "need", "need_file", "own_server", "postgres_server", "postgres_url"]

# The same examples at every run: a test that fails tells of the change, never of the dice. No deadline: a slow machine
# is no defect. No database: a run leaves nothing behind that the next would start from.
hypothesis.settings.register_profile("deterministic", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("deterministic")


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
