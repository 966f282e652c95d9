"""amd-smi and rocm-smi: their JSON in the shapes of several releases, and real programs that print it."""

import time
from pathlib import Path

import pytest
from tests.agent.programs import Program

from oomwatch import wire
from oomwatch_agent.cards.amd_tools import AmdSmiToolReader, RocmSmiReader, document, gpus, of_amd_smi, of_rocm_smi
from oomwatch_agent.cards.card import Card, CardSource
from oomwatch_agent.source import SourceMissingError

FIXTURES = Path(__file__).parent / "fixtures"
MIB = 1 << 20


def _recorded(name: str) -> str:
    return (FIXTURES / f"{name}.json").read_text()


@pytest.fixture
def amd_smi(tmp_path: Path) -> Program:
    program = Program(tmp_path, "amd-smi")
    for command in ("list", "static", "metric", "process"):
        program.prints(_recorded(f"amd_smi_7_{command}"), when=command)
    return program


def _cards(program: Program, *, slow: bool = True) -> list[Card]:
    reader = AmdSmiToolReader(command=(str(program.path),))
    reader.open()
    return list(reader.look(slow=slow))


def test_amd_smi_of_rocm_7_tells_of_every_gpu(amd_smi: Program) -> None:
    first, second = _cards(amd_smi)
    assert first.facts == wire.GpuFacts(
        gpu="0",
        uuid="7eff74a1-0000-1000-808f-7e20764e2714",
        name="AMD Instinct MI300X",
        total_bytes=196592 * MIB,
        pci_bus_id="0000:83:00.0",
        power_limit_watts=750.0,
        driver_version="6.16.6",
    )
    assert first.sample == wire.GpuSample(
        gpu="0",
        used_bytes=121344 * MIB,
        utilization_ratio=0.94,
        power_watts=612.0,
        temperature_celsius=71.0,
        ecc_uncorrected_total=1,
        processes=(
            wire.GpuProcess(pid=4242, used_bytes=121332826112, name="python3"),
            wire.GpuProcess(pid=5150, used_bytes=0),
        ),
    )
    assert second.sample == wire.GpuSample(gpu="1", used_bytes=284 * MIB, processes=())
    assert second.facts is not None
    assert (second.facts.uuid, second.facts.power_limit_watts) == ("AMD-0000:8b:00.0", None)


def test_amd_smi_of_rocm_6_prints_a_bare_list_and_other_units() -> None:
    (card,) = of_amd_smi([], gpus(document(_recorded("amd_smi_6_metric"))), None)
    assert card.sample == wire.GpuSample(
        gpu="1", used_bytes=25 * MIB, utilization_ratio=0.73, power_watts=142.0, temperature_celsius=45.0
    )
    assert card.facts is not None
    assert card.facts.total_bytes == 48 << 30


def test_a_look_that_is_not_slow_runs_the_program_once(amd_smi: Program) -> None:
    _cards(amd_smi, slow=False)
    assert amd_smi.calls() == ["list --json", "static --json", "metric --json"]


@pytest.mark.parametrize("unit", ["parsecs", None])
def test_memory_in_a_unit_that_is_not_known_is_none(unit: str | None) -> None:
    figure = {"value": 5} if unit is None else {"value": 5, "unit": unit}
    (card,) = of_amd_smi([], [{"gpu": 0, "mem_usage": {"used_vram": figure, "total_vram": figure}}], None)
    assert (card.sample.status, card.facts) == ("no_data", None)


def test_rocm_smi_tells_of_every_card() -> None:
    first, second = of_rocm_smi(document(_recorded("rocm_smi")))
    assert first == Card(
        wire.GpuSample(
            gpu="0", used_bytes=29225381888, utilization_ratio=0.03, power_watts=19.0, temperature_celsius=36.0
        ),
        wire.GpuFacts(
            gpu="0",
            uuid="0x2bd1a7c8b9e0f123",
            name="0x7551",
            total_bytes=34208743424,
            pci_bus_id="0000:03:00.0",
            power_limit_watts=300.0,
            driver_version="6.7.0",
        ),
    )
    assert second.sample == wire.GpuSample(
        gpu="1", used_bytes=72495104, utilization_ratio=0.0, power_watts=12.134, temperature_celsius=39.0
    )
    assert second.facts is not None
    assert (second.facts.name, second.facts.uuid) == ("PHXGENERIC", "AMD-1")


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("", None),
        ("ERROR: no driver\n", None),
        ("[WARNING] not JSON\n", None),
        ('[INFO] starting\n{"a": 1}\n', {"a": 1}),
        ('{"a": 1}\nWARNING: later\n', {"a": 1}),
        ("  [1]", [1]),
        ('{"a": ', None),
    ],
)
def test_the_json_is_found_among_warnings(output: str, found: object) -> None:
    assert document(output) == found


@pytest.mark.parametrize("printed", [None, 5, "x", {}, [1, "x"], {"gpu_data": "N/A"}, [{"gpu": "x"}, {}]])
def test_json_of_another_shape_has_no_gpus(printed: object) -> None:
    assert list(of_amd_smi([], gpus(printed), gpus(printed))) == []
    assert list(of_rocm_smi(printed)) == []


@pytest.mark.parametrize(
    "listed", ["N/A", None, [1], [{"process_info": "N/A"}], [{"process_info": {"pid": "x"}}], [{"pid": -1}]]
)
def test_a_process_list_of_another_shape_has_no_process(listed: object) -> None:
    metric = {"gpu": 0, "mem_usage": {"used_vram": {"value": 1, "unit": "B"}}}
    (card,) = of_amd_smi([], [metric], [{"gpu": 0, "process_list": listed}])
    assert not card.sample.processes


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    program = Program(tmp_path, "rocm-smi")
    program.prints(_recorded("rocm_smi"))
    reader = RocmSmiReader(command=(str(program.path),), limit_seconds=0.3)
    source = CardSource(reader, clock=lambda: 0.0)  # a clock that stands: no run takes time, and none is rested after
    source.open()
    source.read(slow=False)
    program.script(f"sleep 60 & echo $! > {tmp_path}/child; wait")
    started_at = time.monotonic()
    reading = source.read(slow=False)
    assert [sample.status for sample in reading.gpus] == ["no_data", "no_data"]
    assert time.monotonic() - started_at < 10
    child = int((tmp_path / "child").read_text())
    _until_gone(child)


def _until_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    state = Path(f"/proc/{pid}/stat")
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "the child still runs"


@pytest.mark.parametrize("kind", [AmdSmiToolReader, RocmSmiReader])
def test_without_the_program_rocm_is_named(kind: type[AmdSmiToolReader | RocmSmiReader]) -> None:
    with pytest.raises(SourceMissingError, match="comes with ROCm"):
        kind(command=("a-program-that-is-not-there",)).open()


def test_amd_smi_without_a_gpu_says_what_a_container_needs(amd_smi: Program) -> None:
    amd_smi.prints("[]", when="static")
    with pytest.raises(SourceMissingError, match="/dev/kfd"):
        AmdSmiToolReader(command=(str(amd_smi.path),)).open()
