"""The stand-in for NVIDIA's library, and the hand on a program's machine."""

from tests.faults.agents import shim
from tests.nvml.conftest import nvml_library

__all__ = ["nvml_library", "shim"]
