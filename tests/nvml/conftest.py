"""The NVML stand-in, compiled once, and GPUs by script for the tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.nvml import standin


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, str], str]) -> Path:
    """Path of the compiled stand-in."""
    return standin.build(tmp_path_factory.mktemp("nvml"), need("gcc", standin.NO_GCC))


@pytest.fixture
def gpus(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[standin.ScriptedGpus]:
    """Two GPUs that this very process sees through nvidia-ml-py; whatever a test left hanging goes on afterwards."""
    scripted = standin.ScriptedGpus(tmp_path / "gpus", nvml_library, count=2)
    standin.load(nvml_library)
    monkeypatch.setenv("OOMWATCH_NVML_SCRIPT", str(scripted.path))
    yield scripted
    scripted.release()
