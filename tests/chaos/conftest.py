"""The stand-in for NVIDIA's library."""

from tests.nvml.conftest import nvml_library

__all__ = ["nvml_library"]
