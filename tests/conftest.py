"""What every test may use."""

import os
import shutil
from collections.abc import Callable

import hypothesis
import pytest

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
    return _path_or_skip


def _path_or_skip(tool: str, how_to_get: str) -> str:
    path = shutil.which(tool)
    if path is not None:
        return path
    reason = f"{tool} is missing; to get it: {how_to_get}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
