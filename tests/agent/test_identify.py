"""From a process to its GPU and its run: by the driver's tables, by what the process was given, or not at all."""

from collections.abc import Mapping

import pytest

from oomwatch import wire
from oomwatch_agent.identify import Identifier, normal_bus_id
from oomwatch_agent.source import Found

GIB = 1024**3


def _facts(gpu: str, uuid: str, bus: int, *, mig: bool = False) -> wire.GpuFacts:
    return wire.GpuFacts(
        gpu=gpu, uuid=uuid, name="A100", total_bytes=80 * GIB, mig=mig, pci_bus_id=f"00000000:{bus:02X}:00.0"
    )


def _gpus(count: int) -> tuple[wire.GpuFacts, ...]:
    return tuple(_facts(str(index), f"GPU-{index}a2b-77", 0x3A + index) for index in range(count))


MIG = (_facts("0:0", "MIG-aaaa", 0x3B, mig=True), _facts("0:1", "MIG-bbbb", 0x3B, mig=True))


def _identifier(gpus: tuple[wire.GpuFacts, ...] | int = 8) -> Identifier:
    identifier = Identifier()
    identifier.know_gpus(_gpus(gpus) if isinstance(gpus, int) else gpus)
    return identifier


def _table(gpu: str, *processes: tuple[int, int]) -> wire.GpuSample:
    table = tuple(wire.GpuProcess(pid=pid, used_bytes=used) for pid, used in processes)
    return wire.GpuSample(gpu=gpu, processes=table)


def _found(
    body: wire.EventBody | None = None,
    *,
    pid: int | None = None,
    actor: str | None = None,
    run: str | None = None,
    backlog: bool = False,
) -> Found:
    origin = wire.Origin(source="driver.log", pid=pid, actor=actor)
    return Found(body=body or wire.TorchMemory(reserved_bytes=GIB), origin=origin, run=run, backlog=backlog)


def _gpu(
    identifier: Identifier, found: Found, *, now: float = 0.0, variables: Mapping[int, Mapping[str, str]] | None = None
) -> str | None:
    placed = identifier.place(found, now, (variables or {}).get)
    assert isinstance(placed.body, wire.TorchMemory | wire.DeviceOom | wire.EngineSleep | wire.GpuLost)
    return placed.body.gpu


def test_a_process_in_the_drivers_table_is_on_that_gpu() -> None:
    identifier = _identifier()
    identifier.see([_table("3", (4711, 50 * GIB)), _table("4", (4712, GIB))], now=0.0)
    assert _gpu(identifier, _found(pid=4711)) == "3"
    assert _gpu(identifier, _found(wire.EngineSleep(), pid=4712)) == "4"


def test_an_out_of_memory_text_that_says_gpu_0_is_mapped_by_its_process() -> None:
    identifier = _identifier()
    identifier.see([_table("5", (4711, 79 * GIB))], now=0.0)
    assert _gpu(identifier, _found(wire.DeviceOom(error="torch.OutOfMemoryError", local_index=0), pid=4711)) == "5"


def test_a_dead_process_is_remembered_for_ten_minutes() -> None:
    identifier = _identifier()
    identifier.see([_table("3", (4711, GIB))], now=0.0)
    for now in range(10, 600, 10):
        identifier.see([_table("3")], now=float(now))
    assert _gpu(identifier, _found(pid=4711)) == "3"
    identifier.see([_table("3")], now=601.0)
    assert _gpu(identifier, _found(pid=4711)) is None


def test_a_sample_without_a_table_changes_nothing() -> None:
    identifier = _identifier()
    identifier.see([_table("3", (4711, GIB))], now=0.0)
    identifier.see([wire.GpuSample(gpu="3")], now=1.0)
    assert _gpu(identifier, _found(pid=4711)) == "3"


def test_a_process_id_that_is_used_again_counts_for_its_new_gpu() -> None:
    identifier = _identifier()
    identifier.see([_table("3", (4711, GIB))], now=0.0)
    identifier.see([_table("6", (4711, GIB))], now=10.0)
    assert _gpu(identifier, _found(pid=4711)) == "6"


def test_a_process_on_several_gpus_belongs_where_most_of_its_memory_is() -> None:
    identifier = _identifier()
    identifier.see([_table("0", (4711, GIB // 2)), _table("3", (4711, 60 * GIB))], now=0.0)
    assert _gpu(identifier, _found(pid=4711)) == "3"


def test_a_process_on_several_gpus_that_names_its_own_index_is_taken_at_its_word() -> None:
    identifier = _identifier()
    identifier.see([_table("2", (4711, 30 * GIB)), _table("3", (4711, 60 * GIB))], now=0.0)
    oom = _found(wire.DeviceOom(error="x", local_index=0), pid=4711)
    assert _gpu(identifier, oom, variables={4711: {"CUDA_VISIBLE_DEVICES": "2,3"}}) == "2"


@pytest.mark.parametrize(
    ("visible", "gpu"),
    [
        ("4", "4"),
        ("GPU-4a2b-77", "4"),
        ("GPU-4a", "4"),
        ("GPU-", None),
        ("99", None),
        ("", None),
        ("-1", None),
        ("NoDevFiles", None),
    ],
)
def test_an_unknown_process_is_placed_by_the_one_device_it_was_given(visible: str, gpu: str | None) -> None:
    assert _gpu(_identifier(), _found(pid=99), variables={99: {"CUDA_VISIBLE_DEVICES": visible}}) == gpu


def test_the_local_index_counts_within_the_given_devices() -> None:
    oom = _found(wire.DeviceOom(error="x", local_index=1), pid=99)
    assert _gpu(_identifier(), oom, variables={99: {"CUDA_VISIBLE_DEVICES": "6, 7"}}) == "7"


def test_without_the_variable_a_local_index_is_not_taken_for_a_gpu() -> None:
    oom = _found(wire.DeviceOom(error="x", local_index=0), pid=99)
    assert _gpu(_identifier(), oom, variables={99: {}}) is None
    assert _gpu(_identifier(), oom) is None


def test_a_ray_actors_list_of_devices_is_not_believed() -> None:
    """Ray narrows it after the process has started, which its first environment does not show."""
    oom = _found(wire.DeviceOom(error="x", local_index=0), pid=99, actor="WorkerDict")
    assert _gpu(_identifier(), oom, variables={99: {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}}) is None


def test_old_news_is_not_placed_by_the_environment_of_whoever_has_the_id_now() -> None:
    assert _gpu(_identifier(), _found(pid=99, backlog=True), variables={99: {"CUDA_VISIBLE_DEVICES": "4"}}) is None


@pytest.mark.parametrize("visible", ["MIG-bbbb", "MIG-b"])
def test_a_mig_instance_is_known_by_its_id(visible: str) -> None:
    assert _gpu(_identifier(MIG), _found(pid=99), variables={99: {"CUDA_VISIBLE_DEVICES": visible}}) == "0:1"


def test_a_mig_id_in_the_old_form_is_known_where_the_card_has_one_slice() -> None:
    slices = (_facts("0:0", "MIG-GPU-5c89/1/0", 0x3B, mig=True), _facts("1:0", "MIG-GPU-77aa/1/0", 0x3C, mig=True))
    given = {99: {"CUDA_VISIBLE_DEVICES": "MIG-GPU-77aa/2/0"}}
    assert _gpu(_identifier(slices), _found(pid=99), variables=given) == "1:0"


def test_on_a_node_with_one_gpu_it_is_that_one() -> None:
    assert _gpu(_identifier(1), _found()) == "0"


def test_what_the_source_placed_itself_stays() -> None:
    assert _gpu(_identifier(1), _found(wire.TorchMemory(reserved_bytes=1, gpu="7"))) == "7"


@pytest.mark.parametrize("written", ["0000:3B:00", "00000000:3B:00.0", "3b:00.0", "PCI:0000:3b:00", " 0000:3b:00.0 "])
def test_a_lost_gpu_is_found_by_its_bus_id_however_it_is_written(written: str) -> None:
    assert normal_bus_id(written) == (0, 0x3B, 0)
    assert _gpu(_identifier(), _found(wire.GpuLost(xid=79, pci_bus_id=written))) == "1"


@pytest.mark.parametrize("written", ["", "3b", "zz:00.0", "0000:3b:00:00:00"])
def test_what_is_no_bus_id_is_none(written: str) -> None:
    assert normal_bus_id(written) is None


def test_another_cards_bus_id_is_not_the_only_gpu() -> None:
    assert _gpu(_identifier(1), _found(wire.GpuLost(xid=79, pci_bus_id="0000:ff:00"))) is None


def test_a_lost_card_of_several_mig_instances_is_none_of_them() -> None:
    assert _gpu(_identifier(MIG), _found(wire.GpuLost(xid=79, pci_bus_id="0000:3b:00"))) is None


def test_an_event_without_a_gpu_passes_as_it_is() -> None:
    found = _found(wire.Step(step=3), pid=4711)
    assert _identifier(1).place(found, 0.0, lambda _: None) is found


def test_the_run_that_an_event_names_is_given_to_the_process_on_the_gpu() -> None:
    identifier = _identifier()
    identifier.place(_found(wire.Step(step=3), pid=4711, run="qwen"), 0.0, lambda _: None)
    named = identifier.name_runs(_table("3", (4711, GIB), (4712, GIB)))
    assert [process.run for process in named.processes or ()] == ["qwen", None]


def test_a_run_is_known_for_as_long_as_its_process_lives() -> None:
    identifier = _identifier()
    identifier.place(_found(pid=4711, run="qwen"), 0.0, lambda _: None)
    for now in range(0, 3600, 10):
        identifier.see([_table("3", (4711, GIB))], now=float(now))
    named = identifier.name_runs(_table("3", (4711, GIB)))
    assert named.processes is not None
    assert named.processes[0].run == "qwen"
