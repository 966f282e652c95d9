"""AMD's GPUs as its programs print them, where the library's binding is not there: `amd-smi`, or before it `rocm-smi`.

Both are Python programs that take a good part of a second; what they print has changed in shape and not in words:
    amd-smi   a list of GPUs, since ROCm 7.0 {"gpu_data": [...]}; a figure is {"value": 1, "unit": "MB"}, 1 or "N/A".
              Its MB is 2**20 bytes (amdsmi_cli divides by 1024 twice).
    rocm-smi  {"card0": {"VRAM Total Memory (B)": "..."}, "system": {...}}, figures as texts
Warnings may stand before the JSON.
"""

import json
import math
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from oomwatch import wire
from oomwatch_agent.cards import card as cards
from oomwatch_agent.cards.card import Card
from oomwatch_agent.cards.tool import Tool
from oomwatch_agent.source import SourceMissingError

Table: TypeAlias = Mapping[str, object]

_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "MiB": 1 << 20, "GB": 1 << 30, "GiB": 1 << 30}
_LIMIT_SECONDS = 10.0
_CARD = re.compile(r"card(\d+)")
_ROCM_SMI_ARGUMENTS = (
    "--showuniqueid", "--showproductname", "--showbus", "--showdriverversion", "--showmaxpower",
    "--showmeminfo", "vram", "--showuse", "--showpower", "--showtemp", "--json",
)  # fmt: skip


class AmdSmiToolReader:
    """Every GPU that the program amd-smi lists."""

    is_program = True

    def __init__(self, *, command: Sequence[str] = ("amd-smi",), limit_seconds: float = _LIMIT_SECONDS) -> None:
        self.name = command[0].rpartition("/")[2]
        self._tool = Tool(command, limit_seconds)
        self._static: list[Table] = []

    def open(self) -> None:
        """Raises SourceMissingError where the program is missing or prints no GPU."""
        _need(self._tool)
        listed = gpus(_run(self._tool, "list", "--json"))
        static = gpus(_run(self._tool, "static", "--json"))
        uuids = {gpu.get("gpu"): gpu.get("uuid") for gpu in listed}
        self._static = [{**gpu, "uuid": uuids.get(gpu.get("gpu"))} for gpu in static]
        if not self._static:
            raise SourceMissingError(f"{self.name} lists no GPU: a container needs /dev/kfd and /dev/dri")

    def look(self, *, slow: bool) -> Iterator[Card]:
        """One run of the program, and at slow looks one for the processes."""
        metrics = gpus(_run(self._tool, "metric", "--json"))
        processes = gpus(_run(self._tool, "process", "--json")) if slow else None
        return of_amd_smi(self._static, metrics, processes)

    def close(self) -> None:
        """Nothing is held open."""


class RocmSmiReader:
    """Every GPU that the program rocm-smi lists. It tells which processes there are and not on which GPU: none here."""

    is_program = True

    def __init__(self, *, command: Sequence[str] = ("rocm-smi",), limit_seconds: float = _LIMIT_SECONDS) -> None:
        self.name = command[0].rpartition("/")[2]
        self._tool = Tool(command, limit_seconds)

    def open(self) -> None:
        """Raises SourceMissingError where the program is missing."""
        _need(self._tool)

    def look(self, *, slow: bool) -> Iterator[Card]:  # noqa: ARG002 - the seam's shape
        """One run of the program."""
        return of_rocm_smi(_run(self._tool, *_ROCM_SMI_ARGUMENTS))

    def close(self) -> None:
        """Nothing is held open."""


def _need(tool: Tool) -> None:
    if shutil.which(tool.command[0]) is None:
        raise SourceMissingError(f"{tool.command[0]} is not on PATH: it comes with ROCm, in /opt/rocm/bin")


def _run(tool: Tool, *arguments: str) -> object:
    return document(tool.run(*arguments).output)


def document(output: str) -> object:
    """The JSON in what was printed, with or without warnings around it; None where there is none."""
    for start in re.finditer(r"^[ \t]*(?=[\[{])", output, re.MULTILINE):
        try:
            found: object = json.JSONDecoder().raw_decode(output, start.end())[0]
        except json.JSONDecodeError:
            continue
        return found
    return None


def gpus(printed: object) -> list[Table]:
    """The tables of GPUs in what amd-smi printed, in its older or its newer shape."""
    listed = printed.get("gpu_data") if isinstance(printed, dict) else printed
    return [gpu for gpu in listed if isinstance(gpu, dict)] if isinstance(listed, list) else []


def of_amd_smi(static: Sequence[Table], metrics: Sequence[Table], processes: Sequence[Table] | None) -> Iterator[Card]:
    """A card for each GPU in `metrics`."""
    static_of = {gpu.get("gpu"): gpu for gpu in static}
    running = {gpu.get("gpu"): _processes(gpu) for gpu in processes or ()}
    for gpu in metrics:
        index = gpu.get("gpu")
        if isinstance(index, int):
            yield _amd_smi_card(str(index), static_of.get(index, {}), gpu, running.get(index))


def _amd_smi_card(label: str, static: Table, metric: Table, processes: list[wire.GpuProcess] | None) -> Card:
    sample = cards.sample(
        label,
        used_bytes=_bytes(_at(metric, "mem_usage", "used_vram")),
        percent=_number(_at(metric, "usage", "gfx_activity")),
        watts=_first(_at(metric, "power"), "socket_power", "current_socket_power", "average_socket_power"),
        celsius=_first(_at(metric, "temperature"), "hotspot", "edge"),
        ecc=_whole(_at(metric, "ecc", "total_uncorrectable_count")),
        processes=processes,
    )
    limits = (_at(static, "limit", "ppt0", "socket_power_limit"), _at(static, "limit", "socket_power"))
    facts = cards.facts(
        label,
        _text(static.get("uuid")),
        _text(_at(static, "asic", "market_name")),
        _bytes(_at(metric, "mem_usage", "total_vram")) or _bytes(_at(static, "vram", "size")),
        maker="AMD",
        pci_bus_id=_text(_at(static, "bus", "bdf")),
        power_limit_watts=next((watts for limit in limits if (watts := _number(limit)) is not None), None),
        driver_version=_text(_at(static, "driver", "version")),
    )
    return Card(sample, facts)


def _processes(gpu: Table) -> list[wire.GpuProcess] | None:
    """Without a process the list holds a sentence."""
    listed = gpu.get("process_list")
    if not isinstance(listed, list):
        return None
    infos = (entry.get("process_info", entry) for entry in listed if isinstance(entry, dict))
    return [process for info in infos if isinstance(info, dict) and (process := _process(info)) is not None]


def _process(info: Table) -> wire.GpuProcess | None:
    vram = _at(info, "memory_usage", "vram_mem")
    used_bytes = _bytes(info.get("mem_usage") if vram is None else vram)
    return cards.process(_whole(info.get("pid")), used_bytes, _text(info.get("name")))


def of_rocm_smi(printed: object) -> Iterator[Card]:
    """A card for each "cardN"."""
    tables = printed if isinstance(printed, dict) else {}
    driver_version = _text(_at(tables, "system", "Driver version"))
    for key, table in tables.items():
        match = _CARD.fullmatch(key)
        if match is not None and isinstance(table, dict):
            yield _rocm_smi_card(match[1], table, driver_version)


def _rocm_smi_card(label: str, table: Table, driver_version: str | None) -> Card:
    sample = cards.sample(
        label,
        used_bytes=_whole(table.get("VRAM Total Used Memory (B)")),
        percent=_number(table.get("GPU use (%)")),
        watts=_first(table, "Current Socket Graphics Package Power (W)", "Average Graphics Package Power (W)"),
        celsius=_first(table, "Temperature (Sensor junction) (C)", "Temperature (Sensor edge) (C)"),
    )
    names = (_text(table.get(key)) for key in ("Card Series", "Card series", "Card Model", "Card model", "Card SKU"))
    facts = cards.facts(
        label,
        _text(table.get("Unique ID")),
        next((name for name in names if name), None),
        _whole(table.get("VRAM Total Memory (B)")),
        maker="AMD",
        pci_bus_id=_text(table.get("PCI Bus")),
        power_limit_watts=_number(table.get("Max Graphics Package Power (W)")),
        driver_version=driver_version,
    )
    return Card(sample, facts)


def _at(table: object, *keys: str) -> object:
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _first(table: object, *keys: str) -> float | None:
    numbers = (_number(_at(table, key)) for key in keys)
    return next((number for number in numbers if number is not None), None)


def _number(figure: object) -> float | None:
    """1, "1", or either with a unit: {"value": 1, "unit": "W"}."""
    value = figure.get("value") if isinstance(figure, dict) else figure
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except ValueError:  # "N/A"
        return None
    return number if math.isfinite(number) else None


def _whole(figure: object) -> int | None:
    number = _number(figure)
    return None if number is None else int(number)


def _bytes(figure: object) -> int | None:
    """Bytes; a figure of a unit that is not known is none, and so is one of memory without any unit."""
    number, unit = _number(figure), _at(figure, "unit")
    scale = _UNITS.get(unit) if isinstance(unit, str) else None
    return None if number is None or scale is None else int(number * scale)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value not in ("", "N/A") else None
