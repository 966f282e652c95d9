"""AMD's cards between two readings, by the kernel's files in a tree of a test's own."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.cards import card as cards
from oomwatch_agent.cards.card import Card, CardSource
from oomwatch_agent.cards.vram_files import VramFiles
from oomwatch_agent.source import CARD_LOOKS_AN_INTERVAL, Sight

GIB = 1 << 30
ADDRESS = "0000:83:00.0"
OTHER_ADDRESS = "0000:c3:00.0"


def _facts(gpu: str = "0", bus_id: str | None = ADDRESS) -> wire.GpuFacts:
    found = cards.facts(gpu, f"uuid-{gpu}", "MI300X", 192 * GIB, maker="AMD", pci_bus_id=bus_id)
    assert found is not None
    return found


def _write(root: Path, used_bytes: object, address: str = ADDRESS) -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mem_info_vram_used").write_text(f"{used_bytes}\n")


def _known(root: Path, *facts: wire.GpuFacts) -> VramFiles:
    files = VramFiles(root)
    files.know(facts)
    return files


def test_each_card_is_seen_under_its_label(tmp_path: Path) -> None:
    _write(tmp_path, 3 * GIB)
    _write(tmp_path, 5 * GIB, OTHER_ADDRESS)
    files = _known(tmp_path, _facts("amd-0", ADDRESS.upper()), _facts("amd-1", OTHER_ADDRESS))
    assert files.look() == [Sight("amd-0", 3 * GIB, 192 * GIB), Sight("amd-1", 5 * GIB, 192 * GIB)]
    _write(tmp_path, 190 * GIB)
    assert files.look()[0].used_bytes == 190 * GIB
    assert files.looks_an_interval == CARD_LOOKS_AN_INTERVAL


def test_what_the_programs_leave_out_is_no_rise(tmp_path: Path) -> None:
    _write(tmp_path, 3 * GIB + 5000)
    assert _known(tmp_path, _facts()).look()[0].used_bytes == 3 * GIB


@pytest.mark.parametrize("bus_id", [None, "", "0000:83:00.1", "../../../..", "83:00.0"])
def test_where_there_is_no_file_nobody_looks(tmp_path: Path, bus_id: str | None) -> None:
    _write(tmp_path, GIB)
    files = _known(tmp_path, _facts(bus_id=bus_id))
    assert files.look() == []
    assert files.looks_an_interval == 1


def test_of_a_card_whose_file_is_gone_or_says_nothing_there_is_no_sight(tmp_path: Path) -> None:
    _write(tmp_path, GIB)
    _write(tmp_path, "?", OTHER_ADDRESS)
    files = _known(tmp_path, _facts(), _facts("1", OTHER_ADDRESS))
    (tmp_path / "sys/bus/pci/devices" / ADDRESS / "mem_info_vram_used").unlink()
    assert files.look() == []


class Tool:
    """amd-smi, as a reader: a run takes half a second of the clock."""

    name = "amd-smi"
    is_program = True

    def __init__(self) -> None:
        self.now = 1000.0
        self.used_bytes = GIB
        self.runs = 0

    def clock(self) -> float:
        return self.now

    def open(self) -> None:
        pass

    def look(self, *, slow: bool) -> Iterable[Card]:  # noqa: ARG002 - the seam's
        self.runs += 1
        self.now += 0.5
        return [
            Card(cards.sample("0", used_bytes=self.used_bytes, watts=600.0), _facts()),
            Card(cards.sample("1", used_bytes=GIB, watts=600.0), _facts("1", None)),
        ]

    def close(self) -> None:
        pass


def test_while_the_program_rests_memory_is_read_from_the_file(tmp_path: Path) -> None:
    _write(tmp_path, GIB)
    tool = Tool()
    source = CardSource(tool, "amd-", eyes=VramFiles(tmp_path), clock=tool.clock)
    source.open()
    assert [gpu.gpu for gpu in source.read(slow=False).gpus] == ["amd-0", "amd-1"]
    _write(tmp_path, 100 * GIB)
    assert source.look() == [Sight("amd-0", 100 * GIB, 192 * GIB)]
    (gpu,) = source.read(slow=False).gpus
    assert (gpu.gpu, gpu.used_bytes, gpu.power_watts) == ("amd-0", 100 * GIB, 600.0)
    assert tool.runs == 1
    tool.now += 10
    tool.used_bytes = 101 * GIB
    assert [gpu.used_bytes for gpu in source.read(slow=False).gpus] == [101 * GIB, GIB]


def test_without_eyes_nothing_is_looked_at(tmp_path: Path) -> None:
    _write(tmp_path, GIB)
    tool = Tool()
    source = CardSource(tool, clock=tool.clock)
    source.open()
    source.read(slow=False)
    assert (source.look(), source.looks_an_interval, source.read(slow=False).gpus) == ((), 1, ())
