"""AMD's GPUs through its library's binding, the Python package amdsmi (ROCm has it in share/amd_smi).

What is called, and what it gives, by ROCm's "AMD SMI Python API reference" and py-interface/amdsmi_interface.py of ROCm
6.0 to 7.2:
    amdsmi_get_gpu_memory_total / _usage(handle, AmdSmiMemoryType.VRAM)   bytes
    amdsmi_get_gpu_activity      {"gfx_activity": percent}
    amdsmi_get_power_info        {"socket_power" (7.0), "current_socket_power", "average_socket_power": watts,
                                  "power_limit": watts, since 7.0 microwatts}
    amdsmi_get_temp_metric       degrees Celsius; MI300 has no EDGE sensor, Radeon cards may lack HOTSPOT
    amdsmi_get_gpu_process_list  [{"pid", "name", "memory_usage": {"vram_mem": bytes}}]
A figure that a card does not have is "N/A", or its call raises AmdSmiException.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from oomwatch import wire
from oomwatch_agent.cards import card as cards
from oomwatch_agent.cards.card import Card
from oomwatch_agent.hang_guard import HangGuard
from oomwatch_agent.source import SourceMissingError

# What the binding gives, which has no types: handles, numbers, texts, dictionaries of these.
Untyped: TypeAlias = Any

_MICROWATTS_FROM = 100_000  # no card is limited to 100 kW: a larger limit is in microwatts
_NOT_TOLD = frozenset({2**16 - 1, 2**32 - 1, 2**64 - 1})  # the C library's; the binding turns most into "N/A"
_LIMIT_SECONDS = 2.0
_INIT_LIMIT_SECONDS = 20.0
_INIT = -1  # the key of the guard for what concerns no single card


def import_amdsmi() -> Untyped:
    """The binding. Raises SourceMissingError; a binding whose library is not there fails in many ways."""
    try:
        return importlib.import_module("amdsmi")
    except Exception as error:
        raise SourceMissingError(
            f"AMD's Python library amdsmi cannot be loaded ({type(error).__name__}: {error}); it comes with ROCm"
        ) from error


class AmdSmiReader:
    """Every GPU that amdsmi lists, in its order. `load` gives the binding."""

    name = "amdsmi"
    is_program = False

    def __init__(self, load: Callable[[], Untyped] = import_amdsmi, *, limit_seconds: float = _LIMIT_SECONDS) -> None:
        self._load = load
        self._guard: HangGuard[int, Card] = HangGuard(limit_seconds)
        self._init_guard: HangGuard[int, Sequence[Untyped]] = HangGuard(max(limit_seconds, _INIT_LIMIT_SECONDS))
        self._handles: Sequence[Untyped] = ()
        self._library: Untyped = None
        self._driver_version: str | None = None

    def open(self) -> None:
        """Raises SourceMissingError without the binding, its driver or a GPU."""
        self._library = None
        library = self._load()
        handles = self._init_guard.ask([_INIT], lambda _: _initialise(library))
        if _INIT not in handles:
            raise SourceMissingError("AMD's driver does not answer (amdsmi_init hangs): look for amdgpu in `dmesg`")
        self._library, self._handles = library, handles[_INIT]
        if not self._handles:
            raise SourceMissingError("amdsmi lists no GPU: a container needs /dev/kfd and /dev/dri")

    def look(self, *, slow: bool) -> list[Card]:
        """The GPUs that answer in time. Raises SourceMissingError where the driver went away: open it again then."""
        answers = self._guard.ask(range(len(self._handles)), lambda index: self._card(index, slow=slow))
        found = [card for _, card in sorted(answers.items())]
        if found and all(card.sample.used_bytes is None for card in found):
            raise SourceMissingError("no GPU tells how much of its memory is used: is amdgpu still loaded? See `dmesg`")
        return found

    def close(self) -> None:
        """The library is left alone while a thread is stuck in it."""
        if self._library is None or self._guard.hung() or self._init_guard.hung():
            return
        self._ask("amdsmi_shut_down")
        self._library = None

    def _card(self, index: int, *, slow: bool) -> Card:
        handle, label = self._handles[index], str(index)
        power = self._table("amdsmi_get_power_info", handle)
        sample = cards.sample(
            label,
            used_bytes=_whole(self._vram("amdsmi_get_gpu_memory_usage", handle)),
            percent=_number(self._table("amdsmi_get_gpu_activity", handle).get("gfx_activity")),
            watts=_first(power, "socket_power", "current_socket_power", "average_socket_power"),
            celsius=self._celsius(handle),
            ecc=_whole(self._table("amdsmi_get_gpu_total_ecc_count", handle).get("uncorrectable_count")),
            processes=self._processes(handle) if slow else None,
        )
        return Card(sample, self._facts(label, handle, power) if slow else None)

    def _facts(self, label: str, handle: Untyped, power: Mapping[str, Untyped]) -> wire.GpuFacts | None:
        limit = _number(power.get("power_limit"))
        return cards.facts(
            label,
            _text(self._ask("amdsmi_get_gpu_device_uuid", handle)),
            _text(self._table("amdsmi_get_gpu_asic_info", handle).get("market_name")),
            _whole(self._vram("amdsmi_get_gpu_memory_total", handle)),
            maker="AMD",
            pci_bus_id=_text(self._ask("amdsmi_get_gpu_device_bdf", handle)),
            power_limit_watts=limit / 1e6 if limit is not None and limit >= _MICROWATTS_FROM else limit,
            driver_version=_text(self._table("amdsmi_get_gpu_driver_info", handle).get("driver_version")),
        )

    def _vram(self, function: str, handle: Untyped) -> Untyped:
        kind = getattr(self._library, "AmdSmiMemoryType", None)
        return self._ask(function, handle, getattr(kind, "VRAM", 0))

    def _celsius(self, handle: Untyped) -> float | None:
        sensors = getattr(self._library, "AmdSmiTemperatureType", None)
        now = getattr(getattr(self._library, "AmdSmiTemperatureMetric", None), "CURRENT", 0)
        for name in ("HOTSPOT", "JUNCTION", "EDGE"):
            if hasattr(sensors, name):
                celsius = _number(self._ask("amdsmi_get_temp_metric", handle, getattr(sensors, name), now))
                if celsius is not None:
                    return celsius
        return None

    def _processes(self, handle: Untyped) -> list[wire.GpuProcess] | None:
        listed = self._ask("amdsmi_get_gpu_process_list", handle)
        if not isinstance(listed, list):
            return None
        return [process for entry in listed if (process := _process(entry)) is not None]

    def _table(self, function: str, handle: Untyped) -> Mapping[str, Untyped]:
        answer = self._ask(function, handle)
        return answer if isinstance(answer, dict) else {}

    def _ask(self, function: str, *arguments: Untyped) -> Untyped:
        """What the binding answers; None where it has no answer, or no such function."""
        call = getattr(self._library, function, None)
        try:
            return None if call is None else call(*arguments)
        except Exception:  # its own classes differ between releases; each means that there is no answer
            return None


def _initialise(library: Untyped) -> Sequence[Untyped]:
    try:
        library.amdsmi_init()
        return list(library.amdsmi_get_processor_handles())
    except Exception as error:
        raise SourceMissingError(
            f"amdsmi cannot be used ({type(error).__name__}: {error}): is amdgpu loaded?"
        ) from error


def _process(entry: Untyped) -> wire.GpuProcess | None:
    """One entry of the list; before ROCm 6 these were handles, which tell nothing by themselves."""
    if not isinstance(entry, dict):
        return None
    memory = entry.get("memory_usage")
    used_bytes = _whole(memory.get("vram_mem") if isinstance(memory, dict) else entry.get("mem"))
    return cards.process(_whole(entry.get("pid")), used_bytes, _text(entry.get("name")))


def _first(table: Mapping[str, Untyped], *keys: str) -> float | None:
    numbers = (_number(table.get(key)) for key in keys)
    return next((number for number in numbers if number is not None), None)


def _number(value: Untyped) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value in _NOT_TOLD:
        return None
    return float(value)


def _whole(value: Untyped) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _text(value: Untyped) -> str | None:
    return value if isinstance(value, str) and value not in ("", "N/A") else None
