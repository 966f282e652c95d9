"""NvidiaSmiSource: the parser over recorded forms of output, and the source over a real program called nvidia-smi."""

import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.cards import smi
from oomwatch_agent.cards.smi import NvidiaSmiSource
from oomwatch_agent.source import Reading, SourceMissingError

MIB = 1024**2
DEADLINE_SECONDS = 10.0
FIELDS = ("index", "uuid", "memory.total", "memory.used", "name")

H100 = (
    "{index}, GPU-{index}, 81559, {used}, NVIDIA H100 80GB HBM3, 00000000:{index}B:00.0, 570.86.15, 551, 700.00, "
    "97, 612.51, 71, 0"
)


class Tool:
    """A shell script that prints what a test writes down, and notes how it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "nvidia-smi"
        self.answers("")
        self.script('printf "%s\\n" "$*" >> calls; case "$*" in *query-compute-apps*) cat apps;; *) cat gpus;; esac')
        (folder / "apps").write_text("")

    def script(self, body: str) -> None:
        fresh = self.folder / "fresh"  # a script that is being run must not be written to
        fresh.write_text(f"#!/bin/sh\ncd {self.folder} || exit 1\n{body}\n")
        fresh.chmod(fresh.stat().st_mode | stat.S_IXUSR)
        fresh.replace(self.path)

    def answers(self, *lines: str) -> None:
        (self.folder / "gpus").write_text("".join(f"{line}\n" for line in lines))

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return Tool(tmp_path)


def gpu(index: int, used: int | str = 1000) -> str:
    return H100.format(index=index, used=used)


def statuses(reading: Reading) -> list[wire.GpuStatus]:
    return [sample.status for sample in reading.gpus]


def lost_labels(reading: Reading) -> list[str | None]:
    return [found.body.gpu for found in reading.found if isinstance(found.body, wire.GpuLost)]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        threading.Event().wait(0.002)


# ------------------------------------------------------------ the parser


@pytest.mark.parametrize(
    "missing", ["[N/A]", "N/A", "[Not Supported]", "ERR!", "[Unknown Error]", "[Insufficient Permissions]", ""]
)
def test_a_cell_without_a_value_is_none(missing: str) -> None:
    (row,) = smi.parse(f"0, GPU-0, {missing}, 5, A100\n", FIELDS).rows
    assert row.mib_as_bytes("memory.total") is None
    assert row.mib_as_bytes("memory.used") == 5 * MIB
    assert not row.lost


def test_a_lost_gpu_says_so_in_its_cells() -> None:
    (row,) = smi.parse("0, GPU-0, [GPU is lost], [GPU is lost], A100", FIELDS).rows
    assert row.lost


@pytest.mark.parametrize(
    ("line", "bus_id"),
    [
        ("Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system", "0000:02:00.0"),
        ("Unable to determine the device handle for GPU0000:07:00.0: Unknown Error", "0000:07:00.0"),
        ("Unable to determine the device handle for GPU3: 00000000:BA:00.0: Unknown Error", "00000000:BA:00.0"),
    ],
)
def test_a_gpu_without_a_handle_is_known_by_its_bus_id(line: str, bus_id: str) -> None:
    assert smi.parse(line, FIELDS).lost_bus_ids == (bus_id,)


@pytest.mark.parametrize(
    "text", ["", "No devices were found", "NVIDIA-SMI has failed because ...", "a, b, c, d, e", "0, 1"]
)
def test_a_line_that_is_no_gpu_is_passed_over(text: str) -> None:
    assert smi.parse(text, FIELDS) == smi.Answer()


def test_a_comma_in_the_last_cell_stays_in_it() -> None:
    (row,) = smi.parse("0, GPU-0, 1, 2, Some GPU, rev. 2", FIELDS).rows
    assert row.text("name") == "Some GPU, rev. 2"


def test_processes_are_grouped_by_gpu() -> None:
    text = "GPU-0, 41, 1024, /usr/bin/python3\nGPU-0, 42, [N/A], [Not Found]\nGPU-1, 43, 5, ray::Worker\nnonsense\n"
    assert smi.parse_processes(text) == {
        "GPU-0": (wire.GpuProcess(pid=41, used_bytes=1024 * MIB, name="python3"), wire.GpuProcess(pid=42)),
        "GPU-1": (wire.GpuProcess(pid=43, used_bytes=5 * MIB, name="ray::Worker"),),
    }


# ------------------------------------------------------------ the source


def test_facts_and_readings_come_from_the_tool(tool: Tool) -> None:
    tool.answers(gpu(0), gpu(1, used=70000))
    source = NvidiaSmiSource()
    facts = source.open()
    assert facts.gpus[1] == wire.GpuFacts(
        gpu="1",
        uuid="GPU-1",
        name="NVIDIA H100 80GB HBM3",
        total_bytes=81559 * MIB,
        reserved_bytes=551 * MIB,
        pci_bus_id="00000000:1B:00.0",
        power_limit_watts=700.0,
        driver_version="570.86.15",
    )
    assert source.read(slow=False).gpus[1] == wire.GpuSample(
        gpu="1",
        used_bytes=70000 * MIB,
        utilization_ratio=0.97,
        power_watts=612.51,
        temperature_celsius=71,
        ecc_uncorrected_total=0,
    )


def test_processes_come_with_slow_reads(tool: Tool) -> None:
    tool.answers(gpu(0), gpu(1))
    (tool.folder / "apps").write_text("GPU-1, 43, 5, /opt/python\n")
    source = NvidiaSmiSource(root=tool.folder)
    source.open()
    assert source.read(slow=False).gpus[1].processes is None
    reading = source.read(slow=True)
    assert [sample.processes for sample in reading.gpus] == [
        (),
        (wire.GpuProcess(pid=43, used_bytes=5 * MIB, name="python"),),
    ]


def test_a_field_that_an_older_tool_lacks_is_left_out(tool: Tool) -> None:
    tool.script(
        'case "$*" in *memory.reserved*) echo \'Field "memory.reserved" is not a valid field to query.\'; exit 2;; '
        "*) echo '0, GPU-0, 16160, 5, Tesla V100, 0000:0B:00.0, 470.57, 300.00, 1, 40.00, 30, 0';; esac"
    )
    source = NvidiaSmiSource()
    facts = source.open().gpus[0]
    assert (facts.total_bytes, facts.reserved_bytes, facts.power_limit_watts) == (16160 * MIB, 0, 300.0)
    assert source.read(slow=False).gpus[0].used_bytes == 5 * MIB


def test_a_new_gpu_is_a_change_of_facts(tool: Tool) -> None:
    tool.answers(gpu(0))
    source = NvidiaSmiSource()
    source.open()
    assert source.read(slow=False).facts is None
    tool.answers(gpu(0), gpu(1))
    changed = source.read(slow=False).facts
    assert changed is not None
    assert [facts.gpu for facts in changed.gpus] == ["0", "1"]


def test_a_gpu_that_turns_lost_is_told_once_and_comes_back(tool: Tool) -> None:
    tool.answers(gpu(0), gpu(1))
    source = NvidiaSmiSource()
    source.open()
    tool.answers(gpu(0), gpu(1, used="[GPU is lost]"))
    first, second = source.read(slow=False), source.read(slow=True)
    assert statuses(first) == statuses(second) == ["ok", "lost"]
    assert (lost_labels(first), lost_labels(second)) == (["1"], [])
    tool.answers(gpu(0), gpu(1))
    assert statuses(source.read(slow=True)) == ["ok", "ok"]


def test_the_others_are_asked_alone_when_the_tool_stops_at_a_lost_gpu(tool: Tool) -> None:
    tool.answers(gpu(0), gpu(1), gpu(2))
    source = NvidiaSmiSource()
    source.open()
    (tool.folder / "healthy").write_text(f"{gpu(1)}\n{gpu(2)}\n")
    tool.script(
        'printf "%s\\n" "$*" >> calls; case "$*" in *"-i GPU-1,GPU-2"*) cat healthy;; '
        '*) echo "Unable to determine the device handle for GPU0000:0B:00.0: GPU is lost."; exit 15;; esac'
    )
    first = source.read(slow=False)
    assert statuses(first) == ["lost", "ok", "ok"]
    assert lost_labels(first) == ["0"]
    calls_before = len(tool.calls())
    assert statuses(source.read(slow=False)) == ["lost", "ok", "ok"]
    assert len(tool.calls()) == calls_before + 1, "a lost GPU is asked for again only by slow reads"
    assert statuses(source.read(slow=True)) == ["lost", "ok", "ok"]


def test_a_tool_that_hangs_is_killed_with_its_children(tool: Tool) -> None:
    tool.answers(gpu(0))
    source = NvidiaSmiSource(limit_seconds=0.3)
    source.open()
    tool.script("sleep 1000 & echo $! > child; wait")
    assert statuses(source.read(slow=False)) == ["no_data"]
    child = int((tool.folder / "child").read_text())
    until(lambda: not Path(f"/proc/{child}").exists() or ") Z " in Path(f"/proc/{child}/stat").read_text())
    tool.script("cat gpus")
    assert statuses(source.read(slow=False)) == ["ok"]


def test_a_machine_without_the_tool_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceMissingError, match="nvidia-smi is not on PATH"):
        NvidiaSmiSource().open()


def test_a_tool_that_finds_no_gpu_is_quoted(tool: Tool) -> None:
    tool.answers("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")
    with pytest.raises(SourceMissingError, match="couldn't communicate with the NVIDIA driver"):
        NvidiaSmiSource().open()


def test_a_command_with_arguments_reaches_another_machine(tool: Tool) -> None:
    """What `ssh node nvidia-smi` needs: leading arguments."""
    tool.answers(gpu(0))
    NvidiaSmiSource(command=("nvidia-smi", "--of-node", "n7")).open()
    assert tool.calls()[0].startswith("--of-node n7 --query-gpu=index,uuid,")
