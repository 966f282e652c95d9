"""A stand-in for torch: as much of it as the probe may call, with figures that a test's program sets."""

from torch import _C as _C

__version__ = "2.13.0+standin"
