"""What the entry point group verl.plugins names: verl imports it in every process, and calls nothing."""

from __future__ import annotations

from oomwatch_probe import start

start("verl.plugins")
