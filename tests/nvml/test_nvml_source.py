"""NvmlSource over the real nvidia-ml-py and a scripted library."""

import ctypes.util
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest
from tests.nvml import standin
from tests.nvml.standin import GIB, ScriptedGpus

from oomwatch import wire
from oomwatch_agent.cards.nvml import NvmlSource
from oomwatch_agent.source import Reading, Sight, SourceMissingError

LIMIT_SECONDS = 0.2
DEADLINE_SECONDS = 60.0


@pytest.fixture
def source(gpus: ScriptedGpus) -> Iterator[NvmlSource]:
    source = NvmlSource(limit_seconds=LIMIT_SECONDS, init_limit_seconds=LIMIT_SECONDS)
    yield source
    gpus.release()
    until(lambda: not guard_threads())
    source.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        threading.Event().wait(0.002)


def guard_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "hang-guard"]


def by_label(reading: Reading) -> dict[str, wire.GpuSample]:
    return {sample.gpu: sample for sample in reading.gpus}


def statuses(reading: Reading) -> list[wire.GpuStatus]:
    return [sample.status for sample in reading.gpus]


def losses(reading: Reading) -> list[wire.GpuLost]:
    return [found.body for found in reading.found if isinstance(found.body, wire.GpuLost)]


# ------------------------------------------------------------ between two readings


def test_a_look_tells_how_full_each_card_is(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set(1, used_bytes=40 * GIB)
    assert source.look() == [], "nothing is looked at before it is open"
    source.open()
    usable = gpus[1].total_bytes - gpus[1].reserved_bytes
    assert source.look() == [Sight("0", 0, usable), Sight("1", 40 * GIB, usable)]


def test_a_look_tells_of_instances_where_a_card_is_cut_up(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set_migs(0, 3 * GIB, 5 * GIB)
    source.open()
    assert [(one.memory, one.used_bytes) for one in source.look()] == [("0:0", 3 * GIB), ("0:1", 5 * GIB), ("1", 0)]


def test_a_look_asks_for_memory_alone(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    source.read(slow=False)
    gpus.count_calls()
    source.look()
    assert {function for function, _ in gpus.calls()} == {"nvmlDeviceGetMemoryInfo_v2"}


def test_a_look_gives_the_same_object_until_something_changes(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    before = source.look()
    assert source.look() is before
    gpus.set(1, used_bytes=GIB)
    assert [one.used_bytes for one in source.look()] == [0, GIB]


def test_a_card_that_one_look_has_no_answer_of_is_seen_by_the_next(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set(0, used_bytes=GIB, refuse={"nvmlDeviceGetMemoryInfo_v2": standin.UNKNOWN})
    gpus.set(1, used_bytes=2 * GIB)
    assert [(one.memory, one.used_bytes) for one in source.look()] == [("1", 2 * GIB)]
    gpus.set(0, refuse={})
    assert [(one.memory, one.used_bytes) for one in source.look()] == [("0", GIB), ("1", 2 * GIB)]


def test_a_driver_without_memory_version_2_is_looked_at_all_the_same(gpus: ScriptedGpus, source: NvmlSource) -> None:
    for index in (0, 1):
        gpus.set(index, used_bytes=GIB, refuse={"nvmlDeviceGetMemoryInfo_v2": standin.FUNCTION_NOT_FOUND})
    source.open()
    source.look()
    gpus.count_calls()
    assert [one.used_bytes for one in source.look()] == [GIB + 640 * 1024**2] * 2
    assert {function for function, _ in gpus.calls()} == {"nvmlDeviceGetMemoryInfo"}


def test_a_look_leaves_lost_and_hung_cards_to_the_next_reading(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set(0, lost=True, used_bytes=70 * GIB)
    gpus.set(1, hang=True, used_bytes=70 * GIB)
    assert statuses(source.read(slow=False)) == ["lost", "no_data"]
    assert source.look() == []


# ------------------------------------------------------------ facts and readings


def test_the_facts_say_what_each_gpu_is(gpus: ScriptedGpus, source: NvmlSource) -> None:
    facts = source.open()
    assert facts.gpus[1] == wire.GpuFacts(
        gpu="1",
        uuid=gpus[1].uuid,
        name="NVIDIA H100 80GB HBM3",
        total_bytes=81559 * 1024**2,
        reserved_bytes=640 * 1024**2,
        pci_bus_id="00000000:11:00.0",
        power_limit_watts=700.0,
        driver_version="570.86.15",
    )
    assert [gpu.gpu for gpu in facts.gpus] == ["0", "1"]


def test_a_reading_holds_what_the_driver_says_now(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set(
        1,
        used_bytes=70 * GIB,
        utilization_percent=97,
        power_milliwatts=612_500,
        temperature_celsius=71,
        ecc_uncorrected=3,
    )
    assert source.read(slow=False).gpus[1] == wire.GpuSample(
        gpu="1",
        used_bytes=70 * GIB,
        utilization_ratio=0.97,
        power_watts=612.5,
        temperature_celsius=71,
        ecc_uncorrected_total=3,
    )


def test_facts_come_with_a_reading_only_when_they_changed(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    assert source.read(slow=True).facts is None
    gpus.set(0, power_limit_milliwatts=500_000)
    changed = source.read(slow=True).facts
    assert changed is not None
    assert changed.gpus[0].power_limit_watts == 500.0
    assert source.read(slow=True).facts is None


def test_what_changes_only_with_the_card_is_asked_once_in_six_slow_readings(
    gpus: ScriptedGpus, source: NvmlSource
) -> None:
    source.open()
    gpus.count_calls()
    gpus.set(0, total_bytes=40 * GIB)  # its error correction was switched on
    told = [facts for facts in (source.read(slow=True).facts for _ in range(6)) if facts is not None]
    assert [facts.gpus[0].total_bytes for facts in told] == [40 * GIB]
    asked = Counter(gpus.calls())
    assert (asked["nvmlDeviceGetName", 0], asked["nvmlDeviceGetUUID", 0]) == (1, 6)


def test_a_new_gpu_gets_facts_and_samples(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.resize(3)
    reading = source.read(slow=True)
    assert reading.facts is not None
    assert [gpu.gpu for gpu in reading.facts.gpus] == ["0", "1", "2"]
    assert statuses(reading) == ["ok", "ok", "ok"]


def test_another_gpu_under_the_same_number_is_described_anew(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set(0, refuse={"nvmlDeviceGetTotalEccErrors": standin.NOT_SUPPORTED})
    source.open()
    assert source.read(slow=False).gpus[0].ecc_uncorrected_total is None
    gpus.set(0, uuid="GPU-exchanged", name="NVIDIA H200", total_bytes=140 * GIB, refuse={})
    reading = source.read(slow=True)
    facts = reading.facts
    assert facts is not None
    gpu = facts.gpus[0]
    assert (gpu.uuid, gpu.name, gpu.total_bytes) == ("GPU-exchanged", "NVIDIA H200", 140 * GIB)
    assert reading.gpus[0].ecc_uncorrected_total == 0, "what the old one did not support is asked of the new one"


def test_a_driver_without_memory_version_2_counts_its_reserve_as_used(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set(0, used_bytes=GIB, refuse={"nvmlDeviceGetMemoryInfo_v2": standin.FUNCTION_NOT_FOUND})
    facts = source.open()
    assert (facts.gpus[0].total_bytes, facts.gpus[0].reserved_bytes) == (81559 * 1024**2, 0)
    assert source.read(slow=False).gpus[0].used_bytes == GIB + 640 * 1024**2


def test_a_driver_without_the_new_temperature_is_asked_for_the_old_one(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set(0, temperature_celsius=66, refuse={"nvmlDeviceGetTemperatureV": standin.FUNCTION_NOT_FOUND})
    source.open()
    assert source.read(slow=False).gpus[0].temperature_celsius == 66


def test_what_a_gpu_does_not_support_is_none_and_not_asked_again(gpus: ScriptedGpus, source: NvmlSource) -> None:
    unsupported = ["nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetUtilizationRates"]
    gpus.set(0, refuse=dict.fromkeys(unsupported, standin.NOT_SUPPORTED))
    source.open()
    gpus.count_calls()
    for _ in range(5):
        sample = source.read(slow=False).gpus[0]
        assert (sample.power_watts, sample.ecc_uncorrected_total, sample.utilization_ratio) == (None, None, None)
        assert sample.status == "ok"
    asked = Counter(gpus.calls())
    assert [asked[name, 0] for name in unsupported] == [1, 1, 1]
    assert [asked[name, 1] for name in unsupported] == [5, 5, 5]


def test_a_passing_error_is_asked_again(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set(0, refuse={"nvmlDeviceGetPowerUsage": standin.UNKNOWN})
    assert source.read(slow=False).gpus[0].power_watts is None
    gpus.set(0, refuse={})
    assert source.read(slow=False).gpus[0].power_watts == 70.0


def test_a_figure_beyond_the_protocols_bounds_is_left_out(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set(0, power_milliwatts=2**32 - 1, ecc_uncorrected=2**64 - 1)
    sample = source.read(slow=False).gpus[0]
    assert (sample.power_watts, sample.ecc_uncorrected_total) == (None, None)


def test_memory_that_cannot_be_read_this_time_is_no_data(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set(0, refuse={"nvmlDeviceGetMemoryInfo_v2": standin.UNKNOWN})
    assert source.read(slow=False).gpus[0] == wire.GpuSample(gpu="0", status="no_data")


# ------------------------------------------------------------ processes


def test_processes_come_with_slow_reads_with_name_and_run(gpus: ScriptedGpus, source: NvmlSource) -> None:
    code = "print('up', flush=True); input()"
    program = [sys.executable, "-c", code]
    environment = {**os.environ, "OOMWATCH_RUN": "grpo-7b"}
    with subprocess.Popen(
        program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        gpus.set(0, processes=((process.pid, 5 * GIB),))
        source.open()
        assert source.read(slow=False).gpus[0].processes is None
        listed = source.read(slow=True).gpus[0].processes
        process.communicate("\n")
    assert listed is not None
    assert (listed[0].pid, listed[0].used_bytes, listed[0].run) == (process.pid, 5 * GIB, "grpo-7b")
    assert listed[0].name is not None
    assert listed[0].name.startswith("python")
    assert listed[0].name.endswith(" -c")


def test_a_process_out_of_sight_keeps_its_bytes(gpus: ScriptedGpus, source: NvmlSource) -> None:
    beyond_every_pid = 2**22 + 1
    gpus.set(0, processes=((beyond_every_pid, GIB),))
    source.open()
    assert source.read(slow=True).gpus[0].processes == (wire.GpuProcess(pid=beyond_every_pid, used_bytes=GIB),)


def test_no_processes_and_unknown_processes_are_told_apart(gpus: ScriptedGpus, source: NvmlSource) -> None:
    kinds = [
        f"nvmlDeviceGet{kind}RunningProcesses_v{version}" for kind in ("Compute", "Graphics") for version in (2, 3)
    ]
    gpus.set(1, refuse=dict.fromkeys(kinds, standin.NO_PERMISSION))
    source.open()
    assert [sample.processes for sample in source.read(slow=True).gpus] == [(), None]


@pytest.mark.skipif(
    not hasattr(pynvml, "nvmlDeviceGetComputeRunningProcesses_v2"),
    reason="this nvidia-ml-py knows no older function: pip install 'nvidia-ml-py>=12.550'",
)
def test_an_older_driver_gives_its_processes_too(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set(
        0,
        processes=((os.getpid(), GIB),),
        refuse={"nvmlDeviceGetComputeRunningProcesses_v3": standin.FUNCTION_NOT_FOUND},
    )
    source.open()
    processes = source.read(slow=True).gpus[0].processes
    assert processes is not None
    assert processes[0].used_bytes == GIB


# ------------------------------------------------------------ MIG


def test_the_instances_of_a_cut_up_gpu_stand_in_its_place(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set_migs(1, 3 * GIB, 19 * GIB)
    facts = source.open()
    assert [(gpu.gpu, gpu.mig, gpu.total_bytes) for gpu in facts.gpus] == [
        ("0", False, 81559 * 1024**2),
        ("1:0", True, 20 * GIB),
        ("1:1", True, 20 * GIB),
    ]
    assert facts.gpus[2].pci_bus_id == gpus[1].pci_bus_id
    assert by_label(source.read(slow=False))["1:1"] == wire.GpuSample(
        gpu="1:1", used_bytes=19 * GIB, ecc_uncorrected_total=0
    )


@pytest.mark.parametrize(
    "forbidden",
    [
        ["nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetPciInfo_v3"],
        ["nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMemoryInfo_v2"],
    ],
)
def test_a_forbidden_parent_does_not_hide_its_instances(
    gpus: ScriptedGpus, source: NvmlSource, forbidden: list[str]
) -> None:
    gpus.set_migs(0, 3 * GIB)
    gpus.set(0, refuse=dict.fromkeys(forbidden, standin.NO_PERMISSION))
    source.open()
    assert by_label(source.read(slow=True))["0:0"].used_bytes == 3 * GIB


def test_cutting_a_gpu_up_and_making_it_whole_again_changes_the_facts(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set_migs(0, GIB, GIB, GIB)
    cut = source.read(slow=True)
    assert cut.facts is not None
    assert [gpu.gpu for gpu in cut.facts.gpus] == ["0:0", "0:1", "0:2", "1"]
    gpus.set_migs(0)
    whole = source.read(slow=True)
    assert whole.facts is not None
    assert [gpu.gpu for gpu in whole.facts.gpus] == ["0", "1"]
    assert losses(cut) == losses(whole) == []


def test_an_instance_that_was_removed_is_no_lost_gpu(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set_migs(0, GIB, GIB)
    source.open()
    gpus.set_migs(0, GIB)
    reading = source.read(slow=False)
    assert [(sample.gpu, sample.status) for sample in reading.gpus[:2]] == [("0:0", "ok"), ("0:1", "no_data")]
    assert losses(reading) == []


# ------------------------------------------------------------ lost and back


def test_a_gpu_that_turns_lost_is_told_once_and_comes_back(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set(1, lost=True)
    first, second = source.read(slow=False), source.read(slow=True)
    assert statuses(first) == statuses(second) == ["ok", "lost"]
    assert losses(first) == [wire.GpuLost(gpu="1", pci_bus_id="00000000:11:00.0")]
    assert losses(second) == []
    assert second.facts is None, "a lost GPU stays in the facts"
    gpus.set(1, lost=False)
    assert statuses(source.read(slow=False)) == ["ok", "ok"]


@pytest.mark.parametrize("slow", [False, True])
def test_a_gpu_that_vanished_from_the_drivers_list_is_lost(
    gpus: ScriptedGpus, source: NvmlSource, *, slow: bool
) -> None:
    source.open()
    gpus.resize(1)
    reading = source.read(slow=slow)
    assert reading.facts is None
    assert statuses(reading) == ["ok", "lost"]
    assert [lost.gpu for lost in losses(reading)] == ["1"]


def test_a_gpu_that_is_lost_at_first_sight_is_no_news(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.set(1, lost=True)
    facts = source.open()
    assert [gpu.gpu for gpu in facts.gpus] == ["0"]
    assert facts.sources[0].detail is not None
    assert facts.sources[0].detail.startswith("GPU 1: ")
    assert losses(source.read(slow=True)) == []
    gpus.set(1, lost=False)
    reading = source.read(slow=True)
    assert statuses(reading) == ["ok", "ok"]
    assert reading.facts is not None
    assert reading.facts.sources[0].detail is None


def test_xid_79_is_a_lost_gpu_and_told_once(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.raise_xid(1, 79)
    assert losses(source.read(slow=False)) == [wire.GpuLost(xid=79, gpu="1", pci_bus_id="00000000:11:00.0")]
    gpus.set(1, lost=True)
    gpus.raise_xid(1, 79)
    assert losses(source.read(slow=False)) == []


def test_the_xid_of_a_programs_own_mistake_is_no_lost_gpu(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.raise_xid(0, 31)
    assert source.read(slow=False).found == ()


def test_an_xid_from_before_the_agent_is_no_news(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.raise_xid(0, 79)
    source.open()
    assert source.read(slow=False).found == ()


def test_a_driver_without_events_is_read_all_the_same(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.refuse("nvmlEventSetCreate", standin.NOT_SUPPORTED)
    source.open()
    assert statuses(source.read(slow=False)) == ["ok", "ok"]


# ------------------------------------------------------------ hung


def test_a_hung_gpu_of_eight_has_no_data_while_the_others_go_on(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.resize(8)
    source.open()
    gpus.set(2, hang=True)
    for number in range(5):
        gpus.set(7, used_bytes=number * GIB)
        reading = source.read(slow=number == 3)
        assert statuses(reading) == ["ok"] * 2 + ["no_data"] + ["ok"] * 5
        assert reading.gpus[7].used_bytes == number * GIB
        until(lambda: len(guard_threads()) <= 1)
    gpus.set(2, hang=False)
    until(lambda: not guard_threads())
    assert statuses(source.read(slow=False)) == ["ok"] * 8
    assert losses(reading) == []


def test_when_every_gpu_hangs_a_read_still_ends_and_threads_do_not_pile_up(
    gpus: ScriptedGpus, source: NvmlSource
) -> None:
    source.open()
    gpus.set(0, hang=True)
    gpus.set(1, hang=True)
    for _ in range(4):
        assert statuses(source.read(slow=True)) == ["no_data", "no_data"]
        assert len(guard_threads()) <= 2
    gpus.release()
    until(lambda: statuses(source.read(slow=False)) == ["ok", "ok"])


def test_a_gpu_that_hangs_while_it_is_looked_for_appears_once_it_answers(
    gpus: ScriptedGpus, source: NvmlSource
) -> None:
    gpus.set(0, hang=True)
    facts = source.open()
    assert [gpu.gpu for gpu in facts.gpus] == ["1"]
    assert facts.sources[0].detail == "GPU 0: it does not answer"
    gpus.set(0, hang=False)
    until(lambda: not guard_threads())
    reading = source.read(slow=False)
    assert reading.facts is not None
    assert [gpu.gpu for gpu in reading.facts.gpus] == ["0", "1"]


def test_closing_leaves_the_library_alone_while_a_thread_is_stuck_in_it(gpus: ScriptedGpus, source: NvmlSource) -> None:
    source.open()
    gpus.set(0, hang=True)
    source.read(slow=False)
    gpus.count_calls()
    source.close()
    assert ("nvmlShutdown", -1) not in gpus.calls()


def test_nothing_is_looked_at_by_way_of_a_library_that_was_let_go(gpus: ScriptedGpus, source: NvmlSource) -> None:
    """It would be a crash: what asks a card how full it is leads right into the library."""
    source.open()
    gpus.count_calls()
    gpus.set(0, hang=True)
    look = threading.Thread(target=source.look)
    look.start()
    until(lambda: bool(gpus.calls()))
    source.close()
    gpus.refuse("nvmlInitWithFlags", standin.DRIVER_NOT_LOADED)
    gpus.release()
    look.join(DEADLINE_SECONDS)
    with pytest.raises(SourceMissingError):
        source.open()
    assert source.look() == []


# ------------------------------------------------------------ a driver that cannot be used


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (standin.DRIVER_NOT_LOADED, "modprobe nvidia"),
        (standin.LIB_RM_VERSION_MISMATCH, "reboot"),
        (standin.NO_PERMISSION, "/dev/nvidia"),
        (standin.UNKNOWN, "code 999"),
    ],
)
def test_a_driver_that_refuses_to_start_names_the_remedy(
    gpus: ScriptedGpus, source: NvmlSource, code: int, remedy: str
) -> None:
    gpus.refuse("nvmlInitWithFlags", code)
    with pytest.raises(SourceMissingError, match=remedy):
        source.open()
    source.close()


def test_a_driver_that_hangs_at_the_start_is_missing_and_found_later(gpus: ScriptedGpus, source: NvmlSource) -> None:
    gpus.hang_library(True)
    for _ in range(3):
        with pytest.raises(SourceMissingError, match="nvmlInit hangs"):
            source.open()
        assert len(guard_threads()) == 1
    gpus.hang_library(False)
    until(lambda: not guard_threads())
    assert len(source.open().gpus) == 2


def test_a_driver_that_is_unloaded_later_ends_the_source_until_it_is_opened_again(
    gpus: ScriptedGpus, source: NvmlSource
) -> None:
    source.open()
    gpus.set(0, refuse={"nvmlDeviceGetMemoryInfo_v2": standin.DRIVER_NOT_LOADED})
    with pytest.raises(SourceMissingError, match="not loaded"):
        source.read(slow=False)
    source.close()
    gpus.set(0, refuse={})
    assert len(source.open().gpus) == 2


def test_a_machine_without_the_library_says_so(tmp_path: Path) -> None:
    """In a fresh interpreter: importing the source costs nothing and fails nowhere; opening it names the library."""
    if ctypes.util.find_library("nvidia-ml"):
        pytest.skip("this machine has the NVIDIA driver")
    code = "from oomwatch_agent.cards.nvml import NvmlSource\ntry: NvmlSource().open()\nexcept Exception as e: print(e)"
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]}
    said = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("no NVIDIA driver: libnvidia-ml.so.1 not found")
