"""CardSource over a reader that does as it is told, and what is no measurement."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.cards import card as cards
from oomwatch_agent.cards.card import Card, CardSource
from oomwatch_agent.source import Reading, SourceMissingError

GIB = 1 << 30


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeReader:
    """Two cards. A look takes `seconds` of the clock."""

    name = "fake"

    def __init__(self, clock: FakeClock, *, is_program: bool = False, seconds: float = 0.0) -> None:
        self.clock = clock
        self.is_program = is_program
        self.seconds = seconds
        self.cards = [_card("0"), _card("1")]
        self.slow: list[bool] = []
        self.opened = self.closed = 0

    def open(self) -> None:
        self.opened += 1

    def look(self, *, slow: bool) -> Iterable[Card]:
        self.slow.append(slow)
        self.clock.now += self.seconds
        return self.cards

    def close(self) -> None:
        self.closed += 1


def _card(gpu: str, *, used_bytes: int | None = GIB, processes: tuple[wire.GpuProcess, ...] | None = None) -> Card:
    return Card(
        cards.sample(gpu, used_bytes=used_bytes, processes=processes),
        cards.facts(gpu, f"uuid-{gpu}", "MI300X", 192 * GIB, maker="AMD"),
    )


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader(FakeClock())


def _opened(reader: FakeReader, prefix: str = "", root: Path = Path("/nowhere")) -> CardSource:
    source = CardSource(reader, prefix, root=root, clock=reader.clock)
    source.open()
    return source


def _statuses(reading: Reading) -> dict[str, str]:
    return {sample.gpu: sample.status for sample in reading.gpus}


def test_what_was_seen_at_the_opening_is_the_first_reading(reader: FakeReader) -> None:
    source = _opened(reader)
    assert _statuses(source.read(slow=False)) == {"0": "ok", "1": "ok"}
    assert reader.slow == [True]
    source.read(slow=False)
    assert reader.slow == [True, False]


def test_a_card_that_is_not_told_of_has_no_data(reader: FakeReader) -> None:
    source = _opened(reader)
    source.read(slow=False)
    reader.cards = [_card("0", used_bytes=None)]
    assert _statuses(source.read(slow=False)) == {"0": "no_data", "1": "no_data"}
    reader.cards = [_card("0"), _card("1")]
    assert _statuses(source.read(slow=False)) == {"0": "ok", "1": "ok"}


def test_facts_are_told_when_they_change(reader: FakeReader) -> None:
    source = _opened(reader)
    assert source.read(slow=False).facts is None
    reader.cards = [*reader.cards, _card("2")]
    facts = source.read(slow=False).facts
    assert facts is not None
    assert [gpu.gpu for gpu in facts.gpus] == ["0", "1", "2"]
    assert source.read(slow=False).facts is None


def test_beside_another_makers_cards_labels_have_a_prefix(reader: FakeReader) -> None:
    source = CardSource(reader, "amd-", clock=reader.clock)
    assert [gpu.gpu for gpu in source.open().gpus] == ["amd-0", "amd-1"]
    assert list(_statuses(source.read(slow=False))) == ["amd-0", "amd-1"]


def test_without_a_card_the_source_is_missing(reader: FakeReader) -> None:
    reader.cards = [Card(cards.sample("0", used_bytes=1))]
    with pytest.raises(SourceMissingError, match="fake tells of no card"):
        CardSource(reader).open()


def test_a_program_is_left_alone_for_four_times_as_long_as_it_ran() -> None:
    reader = FakeReader(FakeClock(), is_program=True, seconds=0.5)
    source = _opened(reader)
    source.read(slow=False)
    looks = []
    for _ in range(10):
        reader.clock.now += 1.0
        before = len(reader.slow)
        reading = source.read(slow=False)
        looks.append(len(reader.slow) - before)
        assert bool(reading.gpus) == bool(looks[-1])
    assert looks == [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]


def test_a_slow_reading_that_fell_into_a_rest_is_made_up_for() -> None:
    reader = FakeReader(FakeClock(), is_program=True, seconds=0.5)
    source = _opened(reader)
    source.read(slow=False)
    source.read(slow=True)
    reader.clock.now += 10
    source.read(slow=False)
    reader.clock.now += 10
    source.read(slow=False)
    assert reader.slow == [True, True, False]


def test_a_library_is_asked_every_time() -> None:
    reader = FakeReader(FakeClock(), seconds=0.5)
    source = _opened(reader)
    for _ in range(3):
        assert source.read(slow=False).gpus
    assert len(reader.slow) == 3


def test_processes_have_the_names_that_this_node_gives_them(reader: FakeReader, tmp_path: Path) -> None:
    pid = os.getpid()
    (tmp_path / "proc" / str(pid)).mkdir(parents=True)
    (tmp_path / "proc" / str(pid) / "stat").write_text(f"{pid} (x) S " + " ".join(["0"] * 30))
    (tmp_path / "proc" / str(pid) / "cmdline").write_text("ray::WorkerDict\0")
    processes = (wire.GpuProcess(pid=pid, name="python3"), wire.GpuProcess(pid=2**22 + 1, name="other"))
    reader.cards = [_card("0", processes=processes)]
    (sample,) = _opened(reader, root=tmp_path).read(slow=True).gpus
    assert [process.name for process in sample.processes or ()] == ["ray::WorkerDict", "other"]


def test_closing_closes_the_reader(reader: FakeReader) -> None:
    _opened(reader).close()
    assert reader.closed == 1


def test_figures_that_cannot_be_are_none() -> None:
    sample = cards.sample("0", used_bytes=5, percent=65535.0, watts=-1.0, celsius=1e9, ecc=-3)
    assert sample == wire.GpuSample(gpu="0", used_bytes=5)


def test_without_a_figure_of_memory_there_is_no_data() -> None:
    assert cards.sample("0", used_bytes=None).status == "no_data"
    assert cards.sample("0", used_bytes=2**64 - 1).status == "no_data"


@pytest.mark.parametrize("total_bytes", [None, 0, 2**64 - 1])
def test_a_card_without_a_size_is_no_card(total_bytes: int | None) -> None:
    assert cards.facts("0", "u", "n", total_bytes, maker="AMD") is None


def test_a_card_without_uuid_and_name_is_called_by_its_place() -> None:
    facts = cards.facts("0", None, None, 1, maker="AMD", pci_bus_id="0000:03:00.0", power_limit_watts=0.0)
    assert facts == wire.GpuFacts(
        gpu="0", uuid="AMD-0000:03:00.0", name="AMD accelerator", total_bytes=1, pci_bus_id="0000:03:00.0"
    )


def test_a_process_without_a_usable_id_is_none() -> None:
    assert cards.process(-1, 5, "x") is None
    assert cards.process(None, 5, "x") is None
    assert cards.process(7, -5, "/usr/bin/python3") == wire.GpuProcess(pid=7, name="python3")
