"""`CardSource`: accelerators of makers other than NVIDIA, whatever tells of them.

A reader knows one library or one program and gives cards; what is the same for all of them is here: which cards there
are, that one which is not told of has no data, what their processes are called, and that a program which is slow to
answer is not run all the time.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from oomwatch import wire
from oomwatch_agent.source import Reading, Sight, SourceMissingError
from oomwatch_agent.who.processes import Processes

_MAX_PROCESS_NAME = 100
# How long to leave a program alone, in multiples of the time that it ran. The makers' programs start an interpreter or
# ask every card in turn, and take a large part of a second of CPU time.
_REST_RATIO = 4.0


class Card(NamedTuple):
    """One accelerator as a reader found it. `facts` is None where they were not told this time."""

    sample: wire.GpuSample
    facts: wire.GpuFacts | None = None


class CardReader(Protocol):
    """One way to read accelerators. Labels are those of its maker: "0", "1"; its names may be of any length."""

    @property
    def name(self) -> str:
        """Its name in SourceFacts: "amdsmi", "npu-smi"."""
        ...

    @property
    def is_program(self) -> bool:
        """Whether every look starts a program."""
        ...

    def open(self) -> None:
        """Raises SourceMissingError where this way leads nowhere on this machine."""
        ...

    def look(self, *, slow: bool) -> Iterable[Card]:
        """The cards that answer now. With facts at the first look; with processes at slow ones."""
        ...

    def close(self) -> None:
        """Let go of what was opened; must not raise."""
        ...


class Eyes(Protocol):
    """Who can tell at next to no cost, between two readings, how full cards are. To start a program is never cheap."""

    @property
    def looks_an_interval(self) -> int:
        """As of a source that can be looked at."""
        ...

    def know(self, cards: Iterable[wire.GpuFacts]) -> None:
        """These are the cards, under the labels that sights are to bear."""
        ...

    def look(self) -> Sequence[Sight]:
        """What can be seen now, beside a reading that may be going on."""
        ...


class CardSource:
    """The cards of one reader. `prefix` goes before their labels, on a node that has cards of several makers.

    Without `eyes` nothing is looked at between two readings.
    """

    def __init__(
        self,
        reader: CardReader,
        prefix: str = "",
        *,
        eyes: Eyes | None = None,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reader = reader
        self._prefix = prefix
        self._eyes = eyes
        self._processes = Processes(root)
        self._clock = clock
        self._facts: dict[str, wire.GpuFacts] = {}
        self._told: tuple[wire.GpuSample, ...] = ()
        self._first_look: list[Card] | None = None  # what open saw, which the first reading tells
        self._rest_until = 0.0
        self._slow_is_due = False

    @property
    def name(self) -> str:
        return self._reader.name

    def open(self) -> wire.NodeFacts:
        """Raises SourceMissingError where there is no card."""
        self._facts = {}
        self._reader.open()
        self._first_look = self._look(slow=True)
        self._learn(self._first_look)
        if not self._facts:
            raise SourceMissingError(f"{self.name} tells of no card whose memory can be read")
        return self._node_facts()

    def read(self, *, slow: bool) -> Reading:
        """Look at the cards; while the program rests, at their memory alone."""
        if self._first_look is not None:
            cards, self._first_look = self._first_look, None
            return self._reading(cards, slow=True)
        self._slow_is_due = self._slow_is_due or slow
        if self._clock() < self._rest_until:
            return self._meanwhile()
        slow, self._slow_is_due = self._slow_is_due, False
        return self._reading(self._look(slow=slow), slow=slow)

    @property
    def looks_an_interval(self) -> int:
        return self._eyes.looks_an_interval if self._eyes is not None else 1

    def look(self) -> Sequence[Sight]:
        """Memory alone, of the cards that somebody can see."""
        return self._eyes.look() if self._eyes is not None else ()

    def close(self) -> None:
        self._reader.close()

    def _meanwhile(self) -> Reading:
        """What eyes see, with the other figures of the program's last run; nothing of cards that they do not see."""
        used = {sight.memory: sight.used_bytes for sight in self.look()}
        return Reading(
            gpus=tuple(
                msgspec.structs.replace(sample, used_bytes=used[sample.gpu], processes=None)
                for sample in self._told
                if sample.gpu in used and sample.status == "ok"
            )
        )

    def _reading(self, cards: list[Card], *, slow: bool) -> Reading:
        before = dict(self._facts)
        self._learn(cards)
        told = {card.sample.gpu: card.sample for card in cards}
        samples = tuple(told.get(label) or wire.GpuSample(gpu=label, status="no_data") for label in self._facts)
        self._told = samples
        return Reading(
            gpus=self._processes.named(samples) if slow else samples,
            identities=self._processes.identities if slow else (),
            facts=self._node_facts() if self._facts != before else None,
        )

    def _look(self, *, slow: bool) -> list[Card]:
        started_at = self._clock()
        cards = [self._labelled(card) for card in self._reader.look(slow=slow)]
        if self._reader.is_program:
            ended_at = self._clock()
            self._rest_until = ended_at + (ended_at - started_at) * _REST_RATIO
        return cards

    def _labelled(self, card: Card) -> Card:
        label = self._prefix + card.sample.gpu
        sample = msgspec.structs.replace(card.sample, gpu=label)
        return Card(sample, None if card.facts is None else msgspec.structs.replace(card.facts, gpu=label))

    def _learn(self, cards: Iterable[Card]) -> None:
        before = dict(self._facts)
        self._facts.update({card.facts.gpu: card.facts for card in cards if card.facts is not None})
        if self._eyes is not None and self._facts != before:
            self._eyes.know(self._facts.values())

    def _node_facts(self) -> wire.NodeFacts:
        return wire.NodeFacts(gpus=tuple(self._facts.values())[: wire.GPUS_MAX])


def facts(
    gpu: str,
    uuid: str | None,
    name: str | None,
    total_bytes: int | None,
    *,
    maker: str,
    pci_bus_id: str | None = None,
    power_limit_watts: float | None = None,
    driver_version: str | None = None,
) -> wire.GpuFacts | None:
    """Facts within the wire's bounds, or None without a size: of such a card nothing can be said."""
    if not _within(total_bytes, 1, wire.COUNT_MAX):
        return None
    return wire.GpuFacts(
        gpu=gpu,
        uuid=(uuid or f"{maker}-{pci_bus_id or gpu}")[: wire.NAME_CHARS_MAX],
        name=(name or f"{maker} accelerator")[: wire.NAME_CHARS_MAX],
        total_bytes=total_bytes or 0,
        pci_bus_id=pci_bus_id,
        power_limit_watts=power_limit_watts if _within(power_limit_watts, 1, wire.WATTS_MAX) else None,
        driver_version=driver_version,
    )


def sample(
    gpu: str,
    *,
    used_bytes: int | None,
    percent: float | None = None,
    watts: float | None = None,
    celsius: float | None = None,
    ecc: int | None = None,
    processes: Iterable[wire.GpuProcess] | None = None,
) -> wire.GpuSample:
    """A sample within the wire's bounds: what is beyond them was no measurement, and is None."""
    used = used_bytes if _within(used_bytes, 0, wire.COUNT_MAX) else None
    return wire.GpuSample(
        gpu=gpu,
        status="no_data" if used is None else "ok",
        used_bytes=used,
        utilization_ratio=percent / 100 if percent is not None and _within(percent, 0, 100) else None,
        power_watts=watts if _within(watts, 0, wire.WATTS_MAX) else None,
        temperature_celsius=celsius if _within(celsius, wire.CELSIUS_MIN, wire.CELSIUS_MAX) else None,
        ecc_uncorrected_total=ecc if _within(ecc, 0, wire.COUNT_MAX) else None,
        processes=None if processes is None else tuple(processes)[: wire.PROCESSES_MAX],
    )


def process(pid: int | None, used_bytes: int | None, name: str | None) -> wire.GpuProcess | None:
    """A process, by its program's name without the folder; None where the id is none."""
    if not _within(pid, 0, wire.COUNT_MAX):
        return None
    used = used_bytes if _within(used_bytes, 0, wire.COUNT_MAX) else None
    return wire.GpuProcess(
        pid=pid or 0, used_bytes=used, name=name.rpartition("/")[2][:_MAX_PROCESS_NAME] if name else None
    )


def _within(value: float | None, least: float, most: float) -> bool:
    return value is not None and least <= value <= most
