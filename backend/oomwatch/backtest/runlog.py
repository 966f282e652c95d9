"""What logs told of a run as a recording: the same events, and the readings of cards and host that they imply."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from oomwatch import wire
from oomwatch.backtest.logs import Log, Told
from oomwatch.backtest.recording import BEGINNING, Message, Recording, gpu_facts
from oomwatch.backtest.source import Known
from oomwatch.backtest.steptimes import Placed, placed
from oomwatch.backtest.united import united

# Memory stays as it is until the next line says otherwise: readings are told again at this pace, as an agent would.
HOLD_SECONDS = 5.0
HOLD_GAPS = 1.5  # a reading is believed for so many of the longest gaps between the card's own readings
HOLD_SECONDS_MIN = 60.0
GAP_SECONDS_MAX = 1800.0  # a longer one is an interruption, and no rhythm


class RunLog:
    """The logs of one run, read. `with_cards`: whether the readings of the cards are taken from them."""

    def __init__(self, logs: Sequence[Log], known: Known, *, with_cards: bool = True) -> None:
        told = united(logs)
        self.notes: list[str] = []
        self._known = known
        self._dated = any(log.stamped for log in logs if log.steps) or (
            not any(log.steps for log in logs) and any(log.stamped for log in logs)
        )
        self._placed = _by_stamp(told) if self._dated else [(BEGINNING + at, one) for at, one in placed(told)]
        self._total = known.capacity_bytes or _total_bytes(told)
        self._labels = _labels(told) if with_cards and self._total else {}
        if with_cards and self._total and not self._labels and _step_peaks(told):
            self._labels = {None: "0"}
        if with_cards and not self._total:
            self.notes.append("how large a card is was not told: give --capacity 80GiB to judge its memory")

    def recording(self, node: str) -> Recording:
        """All of it, on one node."""
        events = [self._event(at, one) for at, one in self._placed]
        host = self._host_facts()
        samples = list(self._samples(host is not None))
        messages: list[Message] = sorted([*samples, *events], key=lambda message: message.at)
        run = next((one.run for _, one in self._placed if one.run), None)
        return Recording(
            node=node,
            messages=messages,
            gpus=tuple(gpu_facts(label, self._total or 0) for label in dict.fromkeys(self._labels.values())),
            host=host,
            run=(run or node)[: wire.NAME_CHARS_MAX],
            interval_seconds=HOLD_SECONDS if samples else None,
            began_at=None if self._dated else BEGINNING,
            dated=self._dated,
        )

    # ------------------------------------------------------------ events

    def _event(self, at: float, one: Told) -> wire.Event:
        body = one.body
        label = self._label_of(one)
        if label is not None and hasattr(body, "gpu") and body.gpu is None:
            body = msgspec.structs.replace(body, gpu=label)
        return wire.Event(seq=0, at=at, body=body, run=one.run, origin=one.origin)

    def _label_of(self, one: Told) -> str | None:
        """The card of whoever wrote it. An engine's process is on the only card there is, else on none known."""
        if one.writer in self._labels:
            return self._labels[one.writer]
        engine = isinstance(one.body, wire.EngineSleep | wire.EngineWake | wire.EngineMemory)
        return next(iter(self._labels.values())) if engine and len(self._labels) == 1 else None

    # ------------------------------------------------------------ readings

    def _samples(self, with_host: bool) -> Iterator[wire.Sample]:
        """Readings of cards and host at each moment that one is told, and held in between."""
        cards = {label: _Held(points) for label, points in self._card_points().items()}
        host = _Held(self._host_points()) if with_host else None
        tracks = [*cards.values(), *([host] if host else [])]
        for at in _moments(tracks):
            gpus = tuple(
                wire.GpuSample(gpu=label, used_bytes=used)
                for label, held in cards.items()
                if (used := held.at(at)) is not None
            )
            in_use = host.at(at) if host else None
            if gpus or in_use is not None:
                sample = wire.HostSample(memory_used_bytes=in_use) if in_use is not None else None
                yield wire.Sample(seq=0, at=at, gpus=gpus, host=sample)

    def _card_points(self) -> dict[str, list[tuple[float, int]]]:
        points: dict[str, list[tuple[float, int]]] = {}
        for at, one in self._placed:
            label, used = self._label_of(one), self._used_bytes(one.body)
            if label is not None and used is not None:
                points.setdefault(label, []).append((at, used))
        if not points and self._labels:
            points["0"] = list(self._step_points())
        return points

    def _used_bytes(self, body: wire.EventBody) -> int | None:
        """Device memory in use as a line told it; torch's own figure where it told nothing of the device."""
        total = self._total or 0
        if isinstance(body, wire.EngineSleep):
            used = body.still_used_bytes
        elif isinstance(body, wire.TorchMemory):
            used = body.device_used_bytes
            if used is None and body.device_free_bytes is not None:
                used = total - body.device_free_bytes
            used = body.reserved_bytes if used is None else used
        else:
            return None
        return None if used is None else min(max(used, 0), total)

    def _step_points(self) -> Iterator[tuple[float, int]]:
        """The peaks that step lines tell, where no line told of the device: reached in the step's last phase."""
        for at, one in self._placed:
            if isinstance(one.body, wire.Step) and (peak := one.body.torch_reserved_peak_bytes) is not None:
                last = one.body.phase_seconds.get("update_actor", 2.0)
                yield at - min(last / 2, one.body.step_seconds or 2.0), min(peak, self._total or peak)

    def _host_facts(self) -> wire.HostFacts | None:
        limit = self._known.host_memory_bytes or next(
            (
                one.body.limit_bytes
                for _, one in self._placed
                if isinstance(one.body, wire.HostOom) and one.body.limit_bytes
            ),
            None,
        )
        if limit is None and self._host_points():
            self.notes.append("how much memory the host has was not told: give --host-memory 1000GiB to judge it")
        return wire.HostFacts(memory_total_bytes=limit) if limit else None

    def _host_points(self) -> list[tuple[float, int]]:
        return [
            (at, one.body.host_used_bytes)
            for at, one in self._placed
            if isinstance(one.body, wire.Step) and one.body.host_used_bytes is not None
        ]


class _Held:
    """Readings of one thing, each held until the next, but not beyond its rhythm."""

    def __init__(self, points: list[tuple[float, int]]) -> None:
        self.times = [at for at, _ in points]
        self._values = [value for _, value in points]
        gaps = [gap for before, later in pairwise(self.times) if 0 < (gap := later - before) <= GAP_SECONDS_MAX]
        self._hold_seconds = max(HOLD_SECONDS_MIN, HOLD_GAPS * max(gaps, default=0.0))

    def at(self, at: float) -> int | None:
        place = bisect_right(self.times, at) - 1
        if place < 0 or at - self.times[place] > self._hold_seconds:
            return None
        return self._values[place]


def _moments(tracks: Sequence[_Held]) -> list[float]:
    """When readings are told: when a line told one, and on a grid between the first and the last."""
    told = sorted({at for track in tracks for at in track.times})
    if not told:
        return []
    grid = []
    for before, later in pairwise(told):
        steps = int(min(later - before, GAP_SECONDS_MAX) / HOLD_SECONDS)
        grid += [
            before + HOLD_SECONDS * count for count in range(1, steps + 1) if before + HOLD_SECONDS * count < later
        ]
    return sorted([*told, *grid])


def _by_stamp(told: Sequence[Told]) -> list[Placed]:
    """Events at the times that their lines tell, never back in time."""
    known = [one.stamp for one in told if one.stamp is not None]
    at = known[0] if known else BEGINNING
    result = []
    for one in told:
        at = max(at, one.stamp or at)
        result.append((at, one))
    return result


def _total_bytes(told: Sequence[Told]) -> int | None:
    """The size of a card, as a memory line or an error told it."""
    for kind, field in ((wire.TorchMemory, "device_total_bytes"), (wire.DeviceOom, "total_bytes")):
        found = (getattr(one.body, field) for one in told if isinstance(one.body, kind))
        if total := next((total for total in found if total), None):
            return int(total)
    return None


def _labels(told: Sequence[Told]) -> dict[str | None, str]:
    """One card for each process that printed memory lines: which card it was, a log does not tell."""
    writers = dict.fromkeys(one.writer for one in told if isinstance(one.body, wire.TorchMemory))
    return {writer: str(place) for place, writer in enumerate(writers)}


def _step_peaks(told: Sequence[Told]) -> bool:
    return any(isinstance(one.body, wire.Step) and one.body.torch_reserved_peak_bytes is not None for one in told)
