"""GPUs as the tool nvidia-smi prints them, for machines where its library cannot be loaded (WSL, some containers).

One process a reading costs far more than the library, and the tool shows no MIG instances: nvml.py is better wherever
it works.
"""

import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from oomwatch import wire
from oomwatch_agent.cards.losses import Losses
from oomwatch_agent.cards.tool import Ran, Tool
from oomwatch_agent.source import Reading, SourceMissingError
from oomwatch_agent.who.processes import Processes

# What is asked, in this order. The first four are needed; the others are left out where a version does not know them.
FIELDS = (
    "index", "uuid", "memory.total", "memory.used",
    "name", "pci.bus_id", "driver_version", "memory.reserved", "enforced.power.limit",
    "utilization.gpu", "power.draw", "temperature.gpu", "ecc.errors.uncorrected.aggregate.total",
)  # fmt: skip
_NEEDED = FIELDS[:4]
_PROCESS_FIELDS = ("gpu_uuid", "pid", "used_memory", "process_name")
_MIB = 1024**2
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field to query')
_NO_HANDLE = re.compile(r"Unable to determine the device handle for (?:GPU\s*)?(?:\d+: )?([0-9A-Fa-f:.]{10,})")


class Row(msgspec.Struct, frozen=True):
    """One GPU as printed: texts by field, those without a value being left out."""

    values: dict[str, str]
    lost: bool = False

    def text(self, field: str) -> str | None:
        return self.values.get(field)

    def number(self, field: str) -> float | None:
        text = self.values.get(field, "")
        return float(text) if _NUMBER.fullmatch(text) else None

    def mib_as_bytes(self, field: str) -> int | None:
        mib = self.number(field)
        return None if mib is None or mib < 0 else int(mib * _MIB)


class Answer(msgspec.Struct, frozen=True):
    """What a run printed: the GPUs that answered, bus ids of those without a handle, fields that this tool lacks."""

    rows: tuple[Row, ...] = ()
    lost_bus_ids: tuple[str, ...] = ()
    unknown_fields: tuple[str, ...] = ()


def parse(output: str, fields: Sequence[str]) -> Answer:
    """Read `--format=csv,noheader,nounits`. A value in brackets, or ERR!, is no value; "GPU is lost" says so."""
    lines = output.splitlines()
    return Answer(
        rows=tuple(row for line in lines if (row := _row(line, fields)) is not None),
        lost_bus_ids=tuple(match[1].rstrip(".:") for line in lines if (match := _NO_HANDLE.search(line))),
        unknown_fields=tuple(match[1] for line in lines if (match := _UNKNOWN_FIELD.search(line))),
    )


def _row(line: str, fields: Sequence[str]) -> Row | None:
    cells = [cell.strip() for cell in line.split(",", maxsplit=len(fields) - 1)]
    if len(cells) != len(fields) or not cells[0].isdigit():
        return None
    return Row(
        {field: cell for field, cell in zip(fields, cells, strict=True) if _is_value(cell)}, "GPU is lost" in line
    )


def _is_value(cell: str) -> bool:
    """Not "[N/A]", "[Not Supported]", "[Unknown Error]", "N/A" or "ERR!"."""
    return bool(cell) and not cell.startswith("[") and cell not in ("N/A", "ERR!")


def parse_processes(output: str) -> dict[str, tuple[wire.GpuProcess, ...]]:
    """GPU uuid -> processes, of a `--query-compute-apps` in the order of `_PROCESS_FIELDS`."""
    found: dict[str, list[wire.GpuProcess]] = {}
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.split(",", maxsplit=len(_PROCESS_FIELDS) - 1)]
        if len(cells) != len(_PROCESS_FIELDS) or not cells[1].isdigit():
            continue
        uuid, pid, used_mib, path = cells
        used_bytes = int(used_mib) * _MIB if used_mib.isdigit() else None
        name = path.rpartition("/")[2][:100] if _is_value(path) else None
        found.setdefault(uuid, []).append(wire.GpuProcess(pid=int(pid), used_bytes=used_bytes, name=name))
    return {uuid: tuple(processes) for uuid, processes in found.items()}


class NvidiaSmiSource:
    """Every GPU that nvidia-smi lists. `command` is the program, looked up on PATH, with any leading arguments."""

    name = "nvidia-smi"

    def __init__(
        self, *, command: Sequence[str] = ("nvidia-smi",), limit_seconds: float = 5.0, root: Path = Path("/")
    ) -> None:
        self._tool = Tool(command, limit_seconds)
        self._fields: tuple[str, ...] = FIELDS
        self._facts: dict[str, wire.GpuFacts] = {}
        self._avoid: frozenset[str] = frozenset()  # labels of lost GPUs: asked for all, the tool stops at the first
        self._losses = Losses(self.name)
        self._processes = Processes(root)

    def open(self) -> wire.NodeFacts:
        """Raises SourceMissingError where the tool is missing, hangs or finds no GPU."""
        program = self._tool.command[0]
        if shutil.which(program) is None:
            raise SourceMissingError(f"{program} is not on PATH: install the NVIDIA driver's tools")
        ran, answer = self._ask(every=True)
        self._learn(answer.rows)
        if not self._facts:
            said = "no answer in time" if ran.code is None else " ".join(ran.output.split())[:300] or "nothing"
            raise SourceMissingError(f"{program} lists no GPU; it said: {said}")
        self._losses.know(self._facts)
        return self._node_facts()

    def read(self, *, slow: bool) -> Reading:
        """One run of the tool; a slow read also lists processes, and asks for lost GPUs again."""
        _, answer = self._ask(every=slow)
        if answer.lost_bus_ids:  # the tool may have stopped at it
            _, healthy = self._ask(every=False, lost=self._labels_at(answer.lost_bus_ids))
            answer = msgspec.structs.replace(answer, rows=healthy.rows)
        before = dict(self._facts)
        self._learn(answer.rows)
        samples = self._samples(answer, self._read_processes() if slow else None)
        self._avoid = frozenset(sample.gpu for sample in samples if sample.status == "lost")
        bus_ids = {label: facts.pci_bus_id for label, facts in self._facts.items()}
        return Reading(
            gpus=self._processes.named(samples) if slow else samples,
            identities=self._processes.identities if slow else (),
            found=self._losses.news(samples, (), bus_ids, time.monotonic()),
            facts=self._node_facts() if self._facts != before else None,
        )

    def close(self) -> None:
        """Nothing is held open."""

    def _ask(self, *, every: bool, lost: frozenset[str] = frozenset()) -> tuple[Ran, Answer]:
        """Run the tool; again without the fields that this version does not know."""
        while True:
            ran = self._run(f"--query-gpu={','.join(self._fields)}", *self._only(every=every, lost=lost))
            answer = parse(ran.output, self._fields)
            unknown = set(answer.unknown_fields) & set(self._fields) - set(_NEEDED)
            if not unknown:
                return ran, answer
            self._fields = tuple(field for field in self._fields if field not in unknown)

    def _only(self, *, every: bool, lost: frozenset[str]) -> list[str]:
        avoid = self._avoid | lost
        if every or not avoid:
            return []
        return ["-i", ",".join(facts.uuid for label, facts in self._facts.items() if label not in avoid)]

    def _run(self, *arguments: str) -> Ran:
        return self._tool.run(*arguments, "--format=csv,noheader,nounits")

    def _read_processes(self) -> dict[str, tuple[wire.GpuProcess, ...]] | None:
        ran = self._run(f"--query-compute-apps={','.join(_PROCESS_FIELDS)}")
        return parse_processes(ran.output) if ran.code == 0 else None

    def _learn(self, rows: Sequence[Row]) -> None:
        for row in rows:
            facts = _facts(row)
            if facts is not None:
                self._facts[facts.gpu] = facts

    def _node_facts(self) -> wire.NodeFacts:
        return wire.NodeFacts(gpus=tuple(self._facts.values()))

    def _samples(
        self, answer: Answer, processes: dict[str, tuple[wire.GpuProcess, ...]] | None
    ) -> tuple[wire.GpuSample, ...]:
        rows = {row.text("index"): row for row in answer.rows}
        lost = self._labels_at(answer.lost_bus_ids) | self._avoid
        samples = []
        for label, facts in self._facts.items():
            row = rows.get(label)
            if row is not None and not row.lost:
                samples.append(_sample(row, None if processes is None else processes.get(facts.uuid, ())))
            else:
                gone = row is not None or label in lost
                samples.append(wire.GpuSample(gpu=label, status="lost" if gone else "no_data"))
        return tuple(samples)

    def _labels_at(self, bus_ids: Sequence[str]) -> frozenset[str]:
        """Labels of the GPUs at these addresses; the tool writes the domain with four digits or with eight."""
        ends = tuple(bus_id.lower()[-len("0000:00:00.0") :] for bus_id in bus_ids)
        return frozenset(
            label
            for label, facts in self._facts.items()
            if facts.pci_bus_id and facts.pci_bus_id.lower().endswith(ends)
        )


def _facts(row: Row) -> wire.GpuFacts | None:
    index, uuid, total_bytes = row.text("index"), row.text("uuid"), row.mib_as_bytes("memory.total")
    if index is None or uuid is None or total_bytes is None or row.lost:
        return None
    return wire.GpuFacts(
        gpu=index,
        uuid=uuid[: wire.NAME_CHARS_MAX],
        name=(row.text("name") or "NVIDIA GPU")[: wire.NAME_CHARS_MAX],
        total_bytes=total_bytes,
        reserved_bytes=row.mib_as_bytes("memory.reserved") or 0,
        pci_bus_id=row.text("pci.bus_id"),
        power_limit_watts=row.number("enforced.power.limit"),
        driver_version=row.text("driver_version"),
    )


def _sample(row: Row, processes: tuple[wire.GpuProcess, ...] | None) -> wire.GpuSample:
    used_bytes = row.mib_as_bytes("memory.used")
    percent, ecc = row.number("utilization.gpu"), row.number("ecc.errors.uncorrected.aggregate.total")
    return wire.GpuSample(
        gpu=row.values["index"],
        status="ok" if used_bytes is not None else "no_data",
        used_bytes=used_bytes,
        utilization_ratio=None if percent is None else percent / 100,
        power_watts=row.number("power.draw"),
        temperature_celsius=row.number("temperature.gpu"),
        ecc_uncorrected_total=None if ecc is None else int(ecc),
        processes=processes,
    )
