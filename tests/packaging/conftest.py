"""What is built once for all tests of it."""

from pathlib import Path

import pytest
from tests.packaging import wheels as of_wheels


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, of_wheels.Wheel]:
    """Both wheels, by the names of their projects."""
    return of_wheels.build(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="session")
def agent_alone(wheels: dict[str, of_wheels.Wheel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with oomwatch-agent's wheel."""
    return of_wheels.environment(tmp_path_factory.mktemp("alone") / "env", wheels["oomwatch-agent"])


@pytest.fixture(scope="session")
def whole(wheels: dict[str, of_wheels.Wheel], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with both wheels and what the server needs."""
    return of_wheels.environment(tmp_path_factory.mktemp("whole") / "env", *wheels.values(), extra="server")
