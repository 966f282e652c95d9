"""From a process to its GPU and its run: by the driver's tables, by what the process was given, or not at all."""

from collections.abc import Mapping

import pytest

from oomwatch import wire
from oomwatch_agent.source import Found, Identity, KnownBy
from oomwatch_agent.who.census import Census
from oomwatch_agent.who.identify import Identifier, normal_bus_id

GIB = 1024**3


def _facts(gpu: str, uuid: str, bus: int, *, mig: bool = False) -> wire.GpuFacts:
    return wire.GpuFacts(
        gpu=gpu, uuid=uuid, name="A100", total_bytes=80 * GIB, mig=mig, pci_bus_id=f"00000000:{bus:02X}:00.0"
    )


def _gpus(count: int) -> tuple[wire.GpuFacts, ...]:
    return tuple(_facts(str(index), f"GPU-{index}a2b-77", 0x3A + index) for index in range(count))


MIG = (_facts("0:0", "MIG-aaaa", 0x3B, mig=True), _facts("0:1", "MIG-bbbb", 0x3B, mig=True))


class _Node(Identifier):
    """An identifier, with the census that it asks."""

    def __init__(self, gpus: tuple[wire.GpuFacts, ...], addresses: tuple[str, ...]) -> None:
        self.census = Census()
        super().__init__(self.census)
        self.know(wire.NodeFacts(gpus=gpus, host=wire.HostFacts(memory_total_bytes=GIB, addresses=addresses)))

    def see(self, samples: list[wire.GpuSample], now: float) -> None:
        self.census.see(samples, now)


def _identifier(gpus: tuple[wire.GpuFacts, ...] | int = 8, *, addresses: tuple[str, ...] = ("10.0.0.1",)) -> _Node:
    return _Node(_gpus(gpus) if isinstance(gpus, int) else gpus, addresses)


def _table(gpu: str, *processes: tuple[int, int]) -> wire.GpuSample:
    table = tuple(wire.GpuProcess(pid=pid, used_bytes=used) for pid, used in processes)
    return wire.GpuSample(gpu=gpu, processes=table)


def _found(
    body: wire.EventBody | None = None,
    *,
    pid: int | None = None,
    actor: str | None = None,
    ip: str | None = None,
    run: str | None = None,
    backlog: bool = False,
) -> Found:
    origin = wire.Origin(source="driver.log", pid=pid, actor=actor, ip=ip)
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


@pytest.mark.parametrize(
    ("variables", "gpu"),
    [
        ({"HIP_VISIBLE_DEVICES": "5"}, "5"),
        ({"ROCR_VISIBLE_DEVICES": "4,6", "HIP_VISIBLE_DEVICES": "1"}, "6"),
        ({"ROCR_VISIBLE_DEVICES": "4,6", "CUDA_VISIBLE_DEVICES": "0"}, "4"),
        ({"ROCR_VISIBLE_DEVICES": "3"}, "3"),
        ({"ASCEND_RT_VISIBLE_DEVICES": "7"}, "7"),
    ],
)
def test_every_makers_variable_is_read(variables: Mapping[str, str], gpu: str) -> None:
    assert _gpu(_identifier(), _found(pid=99), variables={99: variables}) == gpu


def test_beside_another_makers_cards_an_index_counts_among_its_own() -> None:
    both = (*_gpus(2), _facts("amd-0", "0xa", 0x60), _facts("amd-1", "0xb", 0x61))
    assert _gpu(_identifier(both), _found(pid=99), variables={99: {"HIP_VISIBLE_DEVICES": "1"}}) == "amd-1"
    assert _gpu(_identifier(both), _found(pid=99), variables={99: {"CUDA_VISIBLE_DEVICES": "1"}}) == "1"


def test_a_process_of_another_node_is_none_of_ours() -> None:
    """A driver's log holds all nodes' lines; a pid of another node may be one of ours by chance."""
    node = _identifier()
    node.see([_table("3", (4711, GIB))], now=0.0)
    elsewhere = _found(pid=4711, ip="10.0.0.2", run="qwen")
    assert node.place(elsewhere, 0.0, lambda _: {"CUDA_VISIBLE_DEVICES": "4"}) is elsewhere
    assert node.census.identity(4711).run is None
    assert _gpu(node, _found(pid=4711, ip="10.0.0.1")) == "3"


def test_on_a_node_with_one_gpu_another_nodes_line_is_not_about_it() -> None:
    assert _gpu(_identifier(1), _found(pid=4711, ip="10.0.0.2")) is None


def test_a_process_in_a_container_is_known_by_the_number_that_its_log_gives_it() -> None:
    node = _identifier()
    node.see([_table("3", (312345, 50 * GIB)), _table("4", (312346, 50 * GIB))], now=0.0)
    node.census.hear([Identity(pid=312345, inner_pid=77), Identity(pid=312346, inner_pid=78)], now=0.0)
    assert _gpu(node, _found(wire.DeviceOom(error="x", local_index=0), pid=77)) == "3"
    assert _gpu(node, _found(pid=78)) == "4"


def test_the_same_number_in_two_containers_is_not_guessed() -> None:
    node = _identifier()
    node.see([_table("3", (312345, GIB)), _table("4", (400, GIB))], now=0.0)
    node.census.hear([Identity(pid=312345, inner_pid=77), Identity(pid=400, inner_pid=77)], now=0.0)
    assert _gpu(node, _found(pid=77)) is None


def test_the_environment_is_asked_for_by_this_machines_number() -> None:
    node = _identifier()
    node.see([_table("3", (312345, GIB)), _table("4", (312345, GIB))], now=0.0)
    node.census.hear([Identity(pid=312345, inner_pid=77)], now=0.0)
    oom = _found(wire.DeviceOom(error="x", local_index=1), pid=77)
    given = {312345: {"CUDA_VISIBLE_DEVICES": "3,4"}, 77: {"CUDA_VISIBLE_DEVICES": "0,1"}}
    assert _gpu(node, oom, variables=given) == "4"


def test_an_event_bears_the_rank_of_its_process() -> None:
    node = _identifier()
    node.census.hear([Identity(pid=4711, rank=5)], now=0.0)
    assert node.place(_found(pid=4711), 0.0, lambda _: None).origin.rank == 5
    assert node.place(_found(pid=4711, backlog=True), 0.0, lambda _: None).origin.rank is None


def test_a_probes_reading_gets_what_else_is_known_of_its_process() -> None:
    node = _identifier()
    node.census.hear([Identity(pid=4711, rank=5, role="critic", run="qwen", run_by=KnownBy.LOG)], now=0.0)
    placed = node.place_torch(wire.TorchSample(pid=4711, gpu="4", run="grpo-12"))
    assert (placed.gpu, placed.rank, placed.role, placed.run) == ("4", 5, "critic", "qwen")
