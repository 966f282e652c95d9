"""The probe: tells the agent on this node what torch's allocator holds in this process.

Importing this package starts it. It is the standard library alone, and what it may do to the program that it is a guest
in is little:

    It never imports torch and never initialises CUDA: it looks only once the program has done both.
    It never resets a statistic, never raises, never prints, never waits, and keeps nothing open.
    Its thread starts when the program imports torch, and dies with it; OOMWATCH_PROBE=0 keeps all of it away.

How to get it into a training is told in docs/howto/probe.md. Files: this one starts it, `sampling` is its thread,
`torch_memory` reads, `identity` says who reads, `sender` sends; `asked` does what an agent asks of it, with `history`
and `stacks`. The syntax stays within Python 3.8: trainers' images are not always new.
"""

from __future__ import annotations

import os
import sys

# Taken now, before a program replaces them by ones that switch tasks (gevent does).
from _thread import allocate_lock, start_new_thread

__all__ = ["allocate_lock", "start", "start_new_thread", "vllm_plugin"]

IMPORTED = "import"  # the door of a plain import: verl's external_lib, or a line of the trainer's own
EXTERNAL_MODULE = "VERL_USE_EXTERNAL_MODULES"
_OFF = ("0", "off", "no", "false")


def start(door: str) -> None:
    """Run the probe in this process. `door`: how it came in. May be called any number of times; never raises."""
    try:
        if os.environ.get("OOMWATCH_PROBE", "").strip().lower() in _OFF:
            return
        if door != IMPORTED:
            _doors.append(door)
        if "torch" in sys.modules:
            _start_sampling()
        elif not any(isinstance(finder, _TorchWatch) for finder in sys.meta_path):
            sys.meta_path.insert(0, _TorchWatch())
    except Exception:  # a guest keeps its troubles to itself
        pass


def vllm_plugin() -> None:
    """What vLLM calls: a callable without arguments in the group vllm.general_plugins, perhaps more than once."""
    start("vllm.general_plugins")


def door() -> str:
    """How the probe came in: the first way that said so of itself, else a plain import, perhaps verl's."""
    if _doors:
        return _doors[0]
    modules = os.environ.get(EXTERNAL_MODULE, "").replace(" ", "").split(",")
    return EXTERNAL_MODULE if __name__ in modules else IMPORTED


_doors: list[str] = []


def _start_sampling() -> None:
    from oomwatch_probe import sampling  # noqa: PLC0415 - most Python processes never import torch: they pay nothing

    sampling.start()


class _TorchWatch:
    """Among the import system's finders: finds nothing, and notices when the program imports torch."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - the seam's shape
        if name == "torch":
            try:
                _start_sampling()
            except Exception:
                pass


start(IMPORTED)
