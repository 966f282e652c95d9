"""What the runs share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.nvml import standin


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, str], str]) -> Path:
    return standin.build(tmp_path_factory.mktemp("nvml"), need("gcc", standin.NO_GCC))
