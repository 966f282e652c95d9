"""What is built once for all tests of it."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.packaging import wheels as of_wheels
from tests.packaging import zipped


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


@pytest.fixture(scope="session")
def ground() -> Iterator[Path]:
    """A folder that everybody may enter; those of pytest are of one user."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def pyz(wheels: dict[str, of_wheels.Wheel], ground: Path) -> Path:
    """The agent as one file."""
    target = ground / "oomwatch-agent.pyz"
    zipped.make(wheels["oomwatch-agent"], target)
    return target


@pytest.fixture
def home(ground: Path) -> Iterator[Path]:
    """An empty one, of who runs the file."""
    with tempfile.TemporaryDirectory(dir=ground) as folder:
        if zipped.SOMEBODY is not None:
            os.chown(folder, zipped.SOMEBODY, zipped.SOMEBODY)
        yield Path(folder)
