"""How full AMD's cards are, by the kernel's own files: the one thing of theirs that can be read at next to no cost.

amdgpu keeps mem_info_vram_used below each card's folder in sysfs (the kernel's "Misc AMDGPU driver information"): a
counter of its memory manager, in bytes. Library and programs read the same file for what they print; to read it asks
nobody else, wakes no card, and needs no more than sysfs, which a container has too.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from oomwatch import wire
from oomwatch_agent.kernel_files import read_bytes
from oomwatch_agent.source import CARD_LOOKS_AN_INTERVAL, Sight

_BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_MIB_MASK = -(1 << 20)  # the programs print whole MiB: what they leave out is no rise


class VramFiles:
    """The files of the cards that are known. `root` is where the file system begins."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._devices = root / "sys/bus/pci/devices"
        self._files: tuple[tuple[str, str, int], ...] = ()  # label, path, usable bytes

    @property
    def looks_an_interval(self) -> int:
        """1, which leaves it to the readings, where there is no file: partitions of a card share its own."""
        return CARD_LOOKS_AN_INTERVAL if self._files else 1

    def know(self, cards: Iterable[wire.GpuFacts]) -> None:
        """Find the files of these cards, and forget all others."""
        found = ((card, self._file(card.pci_bus_id)) for card in cards)
        self._files = tuple(
            (card.gpu, file, card.total_bytes - card.reserved_bytes) for card, file in found if file is not None
        )

    def look(self) -> list[Sight]:
        """What each file says now; nothing of a card whose file is gone."""
        told = ((label, read_bytes(file), usable) for label, file, usable in self._files)
        return [Sight(label, int(text) & _MIB_MASK, usable) for label, text, usable in told if text.strip().isdigit()]

    def _file(self, bus_id: str | None) -> str | None:
        address = (bus_id or "").lower()
        file = self._devices / address / "mem_info_vram_used"
        return str(file) if _BUS_ID.fullmatch(address) and file.is_file() else None
