"""Whose accelerators this node may have, judged by the software that is installed, and the ways to read each."""

import importlib.util
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from oomwatch_agent.source import Source

# Where the makers' installers put their programs, which is not on every PATH.
_FOLDERS = ("/opt/rocm/bin", "/usr/local/sbin", "/usr/local/bin")
_NVIDIA_SIGNS = (Path("/dev/nvidiactl"), Path("/proc/driver/nvidia"), Path("/dev/dxg"))  # the last is WSL's


class Maker(NamedTuple):
    """One maker's accelerators: what they are called, what goes before their labels beside others, ways to read."""

    what: str
    prefix: str
    ways: Sequence[Callable[[str], Source]]  # each is given the prefix that is used


def program(name: str) -> str | None:
    """Its path, on PATH or where its maker puts it."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(_FOLDERS))


def nvidia_is_here() -> bool:
    """Some part of NVIDIA's driver is there."""
    return program("nvidia-smi") is not None or any(sign.exists() for sign in _NVIDIA_SIGNS)


def any_is_here() -> bool:
    """Whether there is software of any maker, and so perhaps a card."""
    return nvidia_is_here() or bool(others())


def others() -> list[Maker]:
    """The makers besides NVIDIA whose library or program is there."""
    found = []
    if importlib.util.find_spec("amdsmi") is not None or program("amd-smi") or program("rocm-smi"):
        found.append(Maker("AMD GPU", "amd-", (_amdsmi, _amd_smi, _rocm_smi)))
    if program("npu-smi"):
        found.append(Maker("Ascend NPU", "npu-", (_npu_smi,)))
    return found


def _amdsmi(prefix: str) -> Source:
    from oomwatch_agent.cards.amd import AmdSmiReader  # noqa: PLC0415 - memory: most nodes have no such card
    from oomwatch_agent.cards.card import CardSource  # noqa: PLC0415
    from oomwatch_agent.cards.vram_files import VramFiles  # noqa: PLC0415

    return CardSource(AmdSmiReader(), prefix, eyes=VramFiles())


def _amd_smi(prefix: str) -> Source:
    from oomwatch_agent.cards.amd_tools import AmdSmiToolReader  # noqa: PLC0415
    from oomwatch_agent.cards.card import CardSource  # noqa: PLC0415
    from oomwatch_agent.cards.vram_files import VramFiles  # noqa: PLC0415

    return CardSource(AmdSmiToolReader(command=(program("amd-smi") or "amd-smi",)), prefix, eyes=VramFiles())


def _rocm_smi(prefix: str) -> Source:
    from oomwatch_agent.cards.amd_tools import RocmSmiReader  # noqa: PLC0415
    from oomwatch_agent.cards.card import CardSource  # noqa: PLC0415
    from oomwatch_agent.cards.vram_files import VramFiles  # noqa: PLC0415

    return CardSource(RocmSmiReader(command=(program("rocm-smi") or "rocm-smi",)), prefix, eyes=VramFiles())


def _npu_smi(prefix: str) -> Source:
    from oomwatch_agent.cards.ascend import NpuSmiReader  # noqa: PLC0415
    from oomwatch_agent.cards.card import CardSource  # noqa: PLC0415

    return CardSource(NpuSmiReader(command=(program("npu-smi") or "npu-smi",)), prefix)
