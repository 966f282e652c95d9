"""AmdSmiReader over a binding written by hand, with the shapes that ROCm 6 and 7 document."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from oomwatch import wire
from oomwatch_agent.cards.amd import AmdSmiReader, import_amdsmi
from oomwatch_agent.cards.card import Card, CardSource
from oomwatch_agent.source import SourceMissingError

GIB = 1 << 30
LIMIT_SECONDS = 0.3
DEADLINE_SECONDS = 10.0


class AmdSmiError(Exception):
    """The binding's exception."""


class FakeAmdSmi:
    """The binding's functions over `gpus`, each a table of what the functions give. Missing: not supported."""

    class AmdSmiMemoryType:
        VRAM = 0

    class AmdSmiTemperatureType:
        EDGE = 0
        HOTSPOT = 1

    class AmdSmiTemperatureMetric:
        CURRENT = 0

    def __init__(self, *gpus: dict[str, Any]) -> None:
        self.gpus = list(gpus)
        self.init_error: Exception | None = None
        self.may_answer = threading.Event()
        self.stuck: set[int] = set()
        self.shut_down = 0

    def amdsmi_init(self) -> None:
        if self.init_error is not None:
            raise self.init_error

    def amdsmi_shut_down(self) -> None:
        self.shut_down += 1

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(len(self.gpus)))

    def amdsmi_get_temp_metric(self, handle: int, sensor: int, metric: int) -> Any:
        assert metric == self.AmdSmiTemperatureMetric.CURRENT
        return self._get(handle, f"temperature {sensor}")

    def amdsmi_get_gpu_memory_total(self, handle: int, kind: int) -> Any:
        return self._get(handle, f"total {kind}")

    def amdsmi_get_gpu_memory_usage(self, handle: int, kind: int) -> Any:
        if handle in self.stuck:
            assert self.may_answer.wait(DEADLINE_SECONDS)
        return self._get(handle, f"used {kind}")

    def __getattr__(self, function: str) -> Any:
        if not function.startswith("amdsmi_get_"):
            raise AttributeError(function)
        return lambda handle: self._get(handle, function.removeprefix("amdsmi_get_"))

    def _get(self, handle: int, key: str) -> Any:
        if key not in self.gpus[handle]:
            raise AmdSmiError("AMDSMI_STATUS_NOT_SUPPORTED")
        return self.gpus[handle][key]


def mi300x(**changes: Any) -> dict[str, Any]:
    return {
        "gpu_device_uuid": "7eff74a1-0000-1000-808f-7e20764e2714",
        "gpu_device_bdf": "0000:83:00.0",
        "gpu_asic_info": {"market_name": "AMD Instinct MI300X", "vendor_name": "Advanced Micro Devices Inc."},
        "gpu_driver_info": {"driver_name": "amdgpu", "driver_version": "6.12.12"},
        "total 0": 206_141_652_992,
        "used 0": 100 * GIB,
        "gpu_activity": {"gfx_activity": 94, "umc_activity": 61, "mm_activity": "N/A"},
        "power_info": {"current_socket_power": 612, "average_socket_power": "N/A", "power_limit": 750},
        "temperature 1": 71,
        "gpu_total_ecc_count": {"correctable_count": 5, "uncorrectable_count": 1, "deferred_count": 0},
        "gpu_process_list": [
            {"name": "/usr/bin/python3", "pid": 42, "mem": 7, "memory_usage": {"gtt_mem": 1, "vram_mem": 99 * GIB}},
            {"name": "N/A", "pid": 43, "memory_usage": {"vram_mem": 0}},
        ],
        **changes,
    }


@pytest.fixture
def library() -> Iterator[FakeAmdSmi]:
    fake = FakeAmdSmi(mi300x())
    yield fake
    fake.may_answer.set()


def _reader(library: FakeAmdSmi) -> AmdSmiReader:
    reader = AmdSmiReader(lambda: library, limit_seconds=LIMIT_SECONDS)
    reader.open()
    return reader


def _card(library: FakeAmdSmi, *, slow: bool = True) -> Card:
    (card,) = _reader(library).look(slow=slow)
    return card


def test_a_gpu_says_what_it_is_and_what_it_does(library: FakeAmdSmi) -> None:
    card = _card(library)
    assert card.facts == wire.GpuFacts(
        gpu="0",
        uuid="7eff74a1-0000-1000-808f-7e20764e2714",
        name="AMD Instinct MI300X",
        total_bytes=206_141_652_992,
        pci_bus_id="0000:83:00.0",
        power_limit_watts=750.0,
        driver_version="6.12.12",
    )
    assert card.sample == wire.GpuSample(
        gpu="0",
        used_bytes=100 * GIB,
        utilization_ratio=0.94,
        power_watts=612.0,
        temperature_celsius=71.0,
        ecc_uncorrected_total=1,
        processes=(
            wire.GpuProcess(pid=42, used_bytes=99 * GIB, name="python3"),
            wire.GpuProcess(pid=43, used_bytes=0),
        ),
    )


def test_facts_and_processes_are_read_at_slow_looks_only(library: FakeAmdSmi) -> None:
    card = _card(library, slow=False)
    assert (card.facts, card.sample.processes) == (None, None)
    assert card.sample.used_bytes == 100 * GIB


def test_a_power_limit_in_microwatts_is_the_same_limit(library: FakeAmdSmi) -> None:
    library.gpus[0]["power_info"] = {"socket_power": 41, "power_limit": 750_000_000}
    card = _card(library)
    assert card.facts is not None
    assert (card.facts.power_limit_watts, card.sample.power_watts) == (750.0, 41.0)


def test_the_temperature_is_that_of_the_sensor_that_there_is(library: FakeAmdSmi) -> None:
    del library.gpus[0]["temperature 1"]
    library.gpus[0]["temperature 0"] = 45
    assert _card(library).sample.temperature_celsius == 45.0


def test_what_a_gpu_does_not_tell_is_none(library: FakeAmdSmi) -> None:
    library.gpus[0] = {"total 0": 16 * GIB, "used 0": GIB, "gpu_activity": {"gfx_activity": "N/A"}}
    card = _card(library)
    assert card.facts == wire.GpuFacts(gpu="0", uuid="AMD-0", name="AMD accelerator", total_bytes=16 * GIB)
    assert card.sample == wire.GpuSample(gpu="0", used_bytes=GIB)


def test_the_c_librarys_mark_for_nothing_is_none(library: FakeAmdSmi) -> None:
    library.gpus[0]["power_info"] = {
        "current_socket_power": 2**32 - 1,
        "average_socket_power": 99,
        "power_limit": 65535,
    }
    card = _card(library)
    assert card.facts is not None
    assert (card.sample.power_watts, card.facts.power_limit_watts) == (99.0, None)


def test_the_older_list_of_process_handles_tells_no_process(library: FakeAmdSmi) -> None:
    library.gpus[0]["gpu_process_list"] = [object()]
    assert _card(library).sample.processes == ()


def test_a_gpu_that_hangs_costs_its_own_answer_only(library: FakeAmdSmi) -> None:
    library.gpus.append(mi300x())
    source = CardSource(AmdSmiReader(lambda: library, limit_seconds=LIMIT_SECONDS))
    source.open()
    source.read(slow=False)
    library.stuck.add(0)
    reading = source.read(slow=False)
    assert [(sample.gpu, sample.status) for sample in reading.gpus] == [("0", "no_data"), ("1", "ok")]


def test_the_library_is_not_shut_down_while_a_call_is_stuck_in_it(library: FakeAmdSmi) -> None:
    library.gpus.append(mi300x())
    reader = _reader(library)
    library.stuck.add(0)
    reader.look(slow=False)
    reader.close()
    assert library.shut_down == 0


def test_closing_shuts_the_library_down_once(library: FakeAmdSmi) -> None:
    reader = _reader(library)
    reader.close()
    reader.close()
    assert library.shut_down == 1


def test_a_driver_that_went_away_is_missing_until_it_is_opened_again(library: FakeAmdSmi) -> None:
    reader = _reader(library)
    gone, library.gpus = library.gpus, [{}]
    with pytest.raises(SourceMissingError, match="amdgpu"):
        reader.look(slow=False)
    library.gpus = gone
    reader.close()
    reader.open()
    assert len(reader.look(slow=False)) == 1


def test_without_a_driver_the_binding_says_why(library: FakeAmdSmi) -> None:
    library.init_error = AmdSmiError("AMDSMI_STATUS_DRIVER_NOT_LOADED")
    with pytest.raises(SourceMissingError, match="AMDSMI_STATUS_DRIVER_NOT_LOADED"):
        _reader(library)


def test_without_a_gpu_the_container_may_lack_its_devices(library: FakeAmdSmi) -> None:
    library.gpus = []
    with pytest.raises(SourceMissingError, match="/dev/kfd"):
        _reader(library)


def test_without_the_binding_rocm_is_named() -> None:
    with pytest.raises(SourceMissingError, match="comes with ROCm"):
        AmdSmiReader(import_amdsmi).open()


def test_a_reader_that_never_opened_can_be_closed() -> None:
    AmdSmiReader(import_amdsmi).close()
