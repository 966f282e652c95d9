"""Huawei's Ascend NPUs as the program `npu-smi info` prints them.

One run prints two tables: two lines for every chip, and the processes. What differs between generations:
    910, 910B      | NPU Name | Health | Power Temp Hugepages |    | Chip |        | Bus-Id | AICore Memory HBM |
    A3 (two chips) the same with | Chip Phy-ID |, power of the first chip only ("-" at the second)
    310P           | Chip Device |, no HBM: the memory is in Memory-Usage
    since 26.0     wider, and the processes have a column "Process id in container"
Sizes are in units of 2**20 bytes. An idle chip shows some 3 GiB as used: that is its own system.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from oomwatch import wire
from oomwatch_agent.cards import card as cards
from oomwatch_agent.cards.card import Card
from oomwatch_agent.cards.tool import Tool
from oomwatch_agent.source import SourceMissingError

_MIB = 1 << 20
_LIMIT_SECONDS = 10.0
_VERSION = re.compile(r"\|\s*npu-smi\s.*Version:\s*(\S+)")
_CHIP_HEADER = re.compile(r"\|\s*Chip(?P<device>\s+(?:Phy-ID|Device))?\s*\|\s*Bus-Id\s*\|.*Memory-Usage\(MB\)")
_FIRST_LINE = re.compile(
    r"\|\s*(?P<npu>\d+)\s+(?P<name>\S+)\s*\|(?P<health>[^|]*)"
    r"\|\s*(?P<watts>\S+)\s+(?P<celsius>\S+)\s+\d+\s*/\s*\d+\s*\|"
)
_SECOND_LINE = re.compile(
    r"\|\s*(?P<chip>\d+)(?:\s+(?P<device>\d+))?\s*\|\s*(?P<bus_id>\S+)\s*"
    r"\|\s*(?P<percent>\S+)\s+(?P<used>\d+)\s*/\s*(?P<total>\d+)"
    r"(?:\s+(?P<hbm_used>\d+)\s*/\s*(?P<hbm_total>\d+))?\s*\|"
)
_PROCESS_HEADER = re.compile(r"\|\s*NPU\s+Chip\s*\|\s*Process id\s*\|")
_PROCESS = re.compile(
    r"\|\s*(?P<npu>\d+)\s+(?P<chip>\d+)\s*\|\s*(?P<pid>\d+)\s*\|(?P<name>[^|]*)"
    r"\|\s*(?P<mib>\d+)\s*\|(?:\s*(?P<inside>\S+)\s*\|)?"
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class NpuProcess(msgspec.Struct, frozen=True):
    """A process as printed. `pid_inside` is its id in its own container, where that is told."""

    pid: int
    used_bytes: int
    name: str | None = None
    pid_inside: int | None = None


class Chip(msgspec.Struct, frozen=True, kw_only=True):
    """One chip as printed: figures that it does not have are None. `processes` is None where they are not listed."""

    npu: int
    chip: int
    device: int | None
    name: str
    health: str
    bus_id: str | None
    used_bytes: int
    total_bytes: int
    percent: float | None
    watts: float | None
    celsius: float | None
    processes: tuple[NpuProcess, ...] | None = None


class Printed(msgspec.Struct, frozen=True):
    """What one run of `npu-smi info` told."""

    chips: tuple[Chip, ...] = ()
    version: str | None = None


def parse(output: str) -> Printed:
    """Read both tables. Lines of no known shape are passed over: a chip is there only with both of its lines whole."""
    lines = output.splitlines()
    version = next((match[1] for line in lines if (match := _VERSION.match(line.strip()))), None)
    at = next((number for number, line in enumerate(lines) if _PROCESS_HEADER.match(line.strip())), None)
    chips = tuple(_chips(lines[:at]))
    if at is not None:
        running = list(_processes(lines[at:]))
        chips = tuple(
            msgspec.structs.replace(
                chip, processes=tuple(process for npu, number, process in running if (npu, number) == _key(chip))
            )
            for chip in chips
        )
    return Printed(chips, version)


def _key(chip: Chip) -> tuple[int, int]:
    return chip.npu, chip.chip


def _chips(lines: Iterable[str]) -> Iterator[Chip]:
    known = False
    first: re.Match[str] | None = None
    for line in map(str.strip, lines):
        known = known or _CHIP_HEADER.match(line) is not None
        second = _SECOND_LINE.fullmatch(line) if known and first is not None else None
        if first is not None and second is not None:
            yield _chip(first, second)
        first = _FIRST_LINE.fullmatch(line)


def _chip(first: "re.Match[str]", second: "re.Match[str]") -> Chip:
    has_hbm = int(second["hbm_total"] or 0) > 0
    used, total = (second["hbm_used"], second["hbm_total"]) if has_hbm else (second["used"], second["total"])
    return Chip(
        npu=int(first["npu"]),
        chip=int(second["chip"]),
        device=None if second["device"] is None else int(second["device"]),
        name=first["name"],
        health=first["health"].strip(),
        bus_id=second["bus_id"] if ":" in second["bus_id"] else None,
        used_bytes=int(used) * _MIB,
        total_bytes=int(total) * _MIB,
        percent=_number(second["percent"]),
        watts=_number(first["watts"]),
        celsius=_number(first["celsius"]),
    )


def _processes(lines: Iterable[str]) -> Iterator[tuple[int, int, NpuProcess]]:
    for match in (_PROCESS.fullmatch(line.strip()) for line in lines):
        if match is not None:
            inside = match["inside"] or ""
            yield (
                int(match["npu"]),
                int(match["chip"]),
                NpuProcess(
                    int(match["pid"]),
                    int(match["mib"]) * _MIB,
                    match["name"].strip() or None,
                    int(inside) if inside.isdigit() else None,
                ),
            )


def _number(text: str) -> float | None:
    """Not "-" or "NA"."""
    return float(text) if _NUMBER.fullmatch(text) else None


class NpuSmiReader:
    """Every chip that npu-smi lists. `root` is the file system, whose /proc tells which process ids mean something."""

    is_program = True

    def __init__(
        self,
        *,
        command: Sequence[str] = ("npu-smi",),
        limit_seconds: float = _LIMIT_SECONDS,
        root: Path = Path("/"),
    ) -> None:
        self.name = command[0].rpartition("/")[2]
        self._tool = Tool(command, limit_seconds)
        self._proc = root / "proc"

    def open(self) -> None:
        """Raises SourceMissingError where the program is missing."""
        if shutil.which(self._tool.command[0]) is None:
            raise SourceMissingError(f"{self._tool.command[0]} is not on PATH: it comes with the Ascend driver")

    def look(self, *, slow: bool) -> Iterator[Card]:
        """One run of the program."""
        printed = parse(self._tool.run("info").output)
        several = len({chip.npu for chip in printed.chips}) < len(printed.chips)
        return (self._card(chip, printed.version, several=several, slow=slow) for chip in printed.chips)

    def close(self) -> None:
        """Nothing is held open."""

    def _card(self, chip: Chip, version: str | None, *, several: bool, slow: bool) -> Card:
        label = _label(chip, several=several)
        listed = None if chip.processes is None or not slow else [self._process(process) for process in chip.processes]
        sample = cards.sample(
            label,
            used_bytes=chip.used_bytes,
            percent=chip.percent,
            watts=chip.watts,
            celsius=chip.celsius,
            processes=listed,
        )
        facts = cards.facts(
            label,
            f"Ascend-{chip.bus_id or chip.npu}-{chip.chip}",
            chip.name if chip.name.startswith("Ascend") else f"Ascend {chip.name}",
            chip.total_bytes,
            maker="Ascend",
            pci_bus_id=chip.bus_id,
            driver_version=version,
        )
        return Card(sample, facts)

    def _process(self, process: NpuProcess) -> wire.GpuProcess:
        """An agent in the container knows the process by the id that it has there."""
        inside, here = process.pid_inside, (self._proc / str(process.pid)).exists()
        pid = process.pid if here or inside is None else inside
        return wire.GpuProcess(pid=pid, used_bytes=process.used_bytes, name=process.name)


def _label(chip: Chip, *, several: bool) -> str:
    """The number that ASCEND_RT_VISIBLE_DEVICES and torch use, where it is told; else the NPU's, with its chip's."""
    if chip.device is not None:
        return str(chip.device)
    return f"{chip.npu}:{chip.chip}" if several else str(chip.npu)
