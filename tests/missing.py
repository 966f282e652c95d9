"""What a test does where something it needs is not installed."""

import importlib.util
import os
from typing import NoReturn

import pytest


def do_without(what: str, how_to_get: str) -> NoReturn:
    """Skip, and say how to get it. Where CI=true is set fail: a skip there would hide that nothing was tested."""
    reason = f"{what} is missing; to get it: {how_to_get}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def need_ray() -> None:
    """A new Python is without Ray for months, and our lock then names Ray for the older ones alone."""
    if importlib.util.find_spec("ray") is None:
        do_without("Ray", "pip install ray, where Ray has a release for this Python")
