"""The parser of `npu-smi info` over the layouts of several generations, and its reader over a real program."""

from pathlib import Path

import pytest
from tests.agent.programs import Program

from oomwatch import wire
from oomwatch_agent.cards.ascend import Chip, NpuProcess, NpuSmiReader, parse
from oomwatch_agent.cards.card import Card, CardSource
from oomwatch_agent.source import SourceMissingError

FIXTURES = Path(__file__).parent / "fixtures"
MIB = 1 << 20


def _recorded(name: str) -> str:
    return (FIXTURES / f"npu_smi_{name}.txt").read_text()


# ------------------------------------------------------------ the parser


def test_a_910_of_2023_with_its_process() -> None:
    printed = parse(_recorded("23.0.rc1_910ProB"))
    assert printed.version == "23.0.rc1"
    assert printed.chips == (
        Chip(
            npu=0,
            chip=0,
            device=None,
            name="910ProB",
            health="OK",
            bus_id="0000:C1:00.0",
            used_bytes=30711 * MIB,  # of the HBM, not of the memory of the controller
            total_bytes=32768 * MIB,
            percent=0.0,
            watts=78.4,
            celsius=33.0,
            processes=(NpuProcess(55115, 30784 * MIB, "python"),),
        ),
    )


def test_an_idle_chip_has_no_processes_which_is_known() -> None:
    (chip,) = parse(_recorded("25.5.2_910B4")).chips
    assert (chip.npu, chip.used_bytes, chip.processes) == (5, 2922 * MIB, ())


def test_a_310p_has_its_memory_in_the_other_column_and_tells_no_power() -> None:
    first, second = parse(_recorded("24.1.rc2_310P3")).chips
    assert (first.device, first.used_bytes, first.total_bytes) == (0, 1397 * MIB, 44280 * MIB)
    assert (second.npu, second.chip, second.device, second.watts) == (1, 1, 1, None)
    assert second.processes is None  # no table of processes was printed


def test_two_chips_on_one_board_are_told_apart_with_their_processes() -> None:
    chips = parse(_recorded("25_ascend910_two_chips")).chips
    assert [(chip.npu, chip.chip, chip.device) for chip in chips] == [(5, 0, 10), (5, 1, 11), (6, 0, 12), (6, 1, 13)]
    assert [chip.watts for chip in chips] == [174.5, None, 243.3, None]
    assert [chip.used_bytes // MIB for chip in chips] == [3130, 2895, 50719, 50242]
    assert [chip.percent for chip in chips] == [0, 0, 17, 17]
    assert [len(chip.processes or ()) for chip in chips] == [0, 0, 4, 1]
    assert chips[3].processes == (NpuProcess(3085961, 47416 * MIB),)


def test_a_process_in_a_container_has_two_ids() -> None:
    first, second = parse(_recorded("26.0.rc2_container_ids")).chips
    assert first.processes == (NpuProcess(632268, 197 * MIB, "python3.1", None),)
    assert second.processes == (NpuProcess(632300, 2100 * MIB, "python3.1", 4711),)


@pytest.mark.parametrize(
    "output",
    [
        "",
        "dcmi model initialized failed, because the device is used. ret is -8020\n",
        "| 0     910B4  | OK     | 89.9   39     0    / 0    |\n| 0   | 0000:41:00.0  | 0     0    / 0    1 / 2    |\n",
    ],
)
def test_what_is_no_table_has_no_chips(output: str) -> None:
    assert parse(output).chips == ()


def test_a_table_that_breaks_off_has_the_chips_that_are_whole() -> None:
    lines = _recorded("25_ascend910_two_chips").splitlines()
    assert len(parse("\n".join(lines[:10])).chips) == 1


def test_a_line_in_the_middle_of_a_chip_makes_it_no_chip() -> None:
    lines = _recorded("25.5.2_910B4").splitlines()
    assert parse("\n".join([*lines[:7], "| a message |", *lines[7:]])).chips == ()


# ------------------------------------------------------------ the reader


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path, "npu-smi")


def _cards(program: Program, *, slow: bool = True, root: Path = Path("/nowhere")) -> list[Card]:
    reader = NpuSmiReader(command=(str(program.path),), root=root)
    reader.open()
    return list(reader.look(slow=slow))


def _processes(card: Card) -> list[int]:
    return [process.pid for process in card.sample.processes or ()]


@pytest.mark.parametrize(
    ("recorded", "labels"),
    [
        ("23.0.rc1_910ProB", ["0"]),
        ("25.5.2_910B4", ["5"]),
        ("24.1.rc2_310P3", ["0", "1"]),
        ("25_ascend910_two_chips", ["10", "11", "12", "13"]),
    ],
)
def test_a_chip_is_labelled_as_training_code_numbers_it(program: Program, recorded: str, labels: list[str]) -> None:
    program.prints(_recorded(recorded))
    found = _cards(program)
    assert [card.sample.gpu for card in found] == labels
    assert len({card.facts.uuid for card in found if card.facts}) == len(labels)


def test_chips_without_numbers_of_their_own_are_labelled_by_board_and_chip(program: Program) -> None:
    numbered = _recorded("25_ascend910_two_chips")
    for device in (10, 11, 12, 13):
        numbered = numbered.replace(f"| {device % 2}     {device} ", f"| {device % 2}        ")
    program.prints(numbered.replace("Phy-ID", "      "))
    assert [card.sample.gpu for card in _cards(program)] == ["5:0", "5:1", "6:0", "6:1"]


def test_a_card_says_what_it_is_and_what_it_does(program: Program) -> None:
    program.prints(_recorded("23.0.rc1_910ProB"))
    (card,) = _cards(program)
    assert card.facts == wire.GpuFacts(
        gpu="0",
        uuid="Ascend-0000:C1:00.0-0",
        name="Ascend 910ProB",
        total_bytes=32768 * MIB,
        pci_bus_id="0000:C1:00.0",
        driver_version="23.0.rc1",
    )
    assert card.sample == wire.GpuSample(
        gpu="0",
        used_bytes=30711 * MIB,
        utilization_ratio=0.0,
        power_watts=78.4,
        temperature_celsius=33.0,
        processes=(wire.GpuProcess(pid=55115, used_bytes=30784 * MIB, name="python"),),
    )


def test_processes_are_told_at_slow_looks_only(program: Program) -> None:
    program.prints(_recorded("23.0.rc1_910ProB"))
    (card,) = _cards(program, slow=False)
    assert card.sample.processes is None


def test_inside_a_container_a_process_is_called_by_the_id_that_it_has_there(program: Program, tmp_path: Path) -> None:
    program.prints(_recorded("26.0.rc2_container_ids"))
    assert [_processes(card) for card in _cards(program, root=tmp_path)] == [[632268], [4711]]


def test_outside_it_the_id_is_the_nodes(program: Program, tmp_path: Path) -> None:
    (tmp_path / "proc/632300").mkdir(parents=True)
    program.prints(_recorded("26.0.rc2_container_ids"))
    assert [_processes(card) for card in _cards(program, root=tmp_path)] == [[632268], [632300]]


def test_without_the_program_the_driver_is_named() -> None:
    with pytest.raises(SourceMissingError, match="Ascend driver"):
        NpuSmiReader(command=("npu-smi-that-is-not-there",)).open()


def test_a_program_that_fails_gives_no_card(program: Program) -> None:
    program.script("echo 'dcmi module initialize failed. ret is -8005'; exit 1")
    with pytest.raises(SourceMissingError, match="npu-smi tells of no card"):
        CardSource(NpuSmiReader(command=(str(program.path),))).open()
