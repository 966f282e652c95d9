"""torch's allocator in every process that has the probe inside: what the probes send, as readings of the agent."""

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from oomwatch import wire
from oomwatch.oserror import with_place
from oomwatch.units import counted
from oomwatch_agent.probe.asking import Asking
from oomwatch_agent.probe.receiver import MAX_SENDERS, Datagram, ProbeSocket, listen, listen_at, usual_places
from oomwatch_agent.probe.report import DeviceMemory, Report, decode
from oomwatch_agent.source import Found, Identity, KnownBy, Reading, SourceMissingError
from oomwatch_agent.who.processes import Processes

SILENT_SECONDS = 10.0  # ten messages missing: the process is gone, or as good as
_TELL_OF_REFUSALS_SECONDS = 60.0
_LOOK_AFTER_SECONDS = 2.5  # silence after which it is worth looking whether the process still exists
_COUNTERS = ("reserved_bytes", "allocated_bytes", "active_bytes", "inactive_split_bytes", "reserved_peak_bytes",
              "allocated_peak_bytes", "alloc_retries_total", "ooms_total")  # fmt: skip

logger = logging.getLogger(__name__)


class _Guest(msgspec.Struct, frozen=True):
    """A process with the probe inside, as of its latest message."""

    report: Report
    heard_at: float
    pid_of_kernel: bool
    run: str | None
    run_by: KnownBy


class ProbeSource:
    """Listens for probes. `where`: "auto", or the path of the socket."""

    name = "probe"

    def __init__(
        self,
        where: str = "auto",
        *,
        clock: Callable[[], float] = time.monotonic,
        processes: Processes | None = None,
        asking: Asking | None = None,
    ) -> None:
        self._asking = asking
        self._named = None if where == "auto" else Path(where)
        self._clock = clock
        self._processes = processes or Processes()
        self._socket: ProbeSocket | None = None
        self._guests: dict[int, _Guest] = {}
        self._refused_at: float | None = None
        self._facts = wire.NodeFacts()

    def open(self) -> wire.NodeFacts:
        """Raises SourceMissingError where no socket can be made."""
        try:
            uid = os.geteuid()
            self._socket = listen_at(self._named) if self._named else listen(usual_places(uid), uid)
        except OSError as error:
            raise SourceMissingError(f"no probe is listened to ({with_place(error)})") from error
        if self._asking is not None:
            self._asking.clear(self._socket.path.parent)
        self._facts = self._look()
        return self._facts

    def read(self, *, slow: bool) -> Reading:
        """The latest of every process that was heard in the last ten seconds; an event for each that is new."""
        now = self._clock()
        listening = self._listening(check=slow)
        datagrams = listening.take()
        if not (datagrams or self._guests or self._refused_at is not None or slow):
            return Reading()  # nobody has the probe inside: all is as it was
        found = tuple(found for datagram in datagrams for found in self._take(datagram, now))
        self._forget(now)
        if self._asking is not None:
            self._asking.hear(listening.path.parent, {pid: guest.report for pid, guest in self._guests.items()})
        before, self._facts = self._facts, self._look()
        torch = tuple(sample for pid, guest in self._guests.items() for sample in _samples(pid, guest))
        identities = tuple(_identity(pid, guest) for pid, guest in self._guests.items()) if slow or found else ()
        facts = self._facts if self._facts != before else None
        return Reading(torch=torch, found=found, identities=identities, facts=facts)

    def close(self) -> None:
        """Probes notice by themselves, and when the agent is back as well."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._guests = {}

    def _listening(self, *, check: bool) -> ProbeSocket:
        if self._socket is None or (check and not self._socket.in_place()):
            logger.info("the probe's socket was removed: listening anew")
            self.close()
            self.open()
        assert self._socket is not None  # noqa: S101 - open raised otherwise
        return self._socket

    def _take(self, datagram: Datagram, now: float) -> Iterator[Found]:
        try:
            report = decode(datagram.content)
        except ValueError as error:
            if self._refused_at is None:
                logger.warning("what process %s sent is no probe's message: %s", datagram.pid or "?", error)
            self._refused_at = now
            return
        pid = datagram.pid or report.pid
        known = self._guests.get(pid)
        if known is None and len(self._guests) >= MAX_SENDERS:
            return
        run, run_by = self._run_of(pid, report, known)
        guest = self._guests[pid] = _Guest(report, now, datagram.pid is not None, run, run_by)
        if report.devices and (known is None or not known.report.devices):
            yield _introduction(pid, guest)

    def _run_of(self, pid: int, report: Report, known: _Guest | None) -> tuple[str | None, KnownBy]:
        if report.run:
            return report.run, KnownBy.PERSON
        if known is not None:
            return known.run, known.run_by
        described = self._processes.describe([pid])[pid]
        return described.run, described.run_by

    def _forget(self, now: float) -> None:
        self._guests = {pid: guest for pid, guest in self._guests.items() if _lives(pid, guest, now)}
        if self._refused_at is not None and now - self._refused_at >= _TELL_OF_REFUSALS_SECONDS:
            self._refused_at = None

    def _look(self) -> wire.NodeFacts:
        """What this source says of itself."""
        where = self._socket.path if self._socket else self._named
        if self._guests:
            gpus = {name for guest in self._guests.values() for name in guest.report.gpu_names()}
            text = f"{counted(len(self._guests), 'process', 'processes')}, {counted(len(gpus), 'GPU')}"
        else:
            text = f"listening at {where}; no process that uses CUDA has the probe inside"
        if self._refused_at is not None:
            text += "; something that is no probe sends to it, which is ignored"
        state: wire.SourceState = "ok" if self._guests else "waiting"
        return wire.NodeFacts(sources=(wire.SourceFacts(name=self.name, state=state, detail=text),))


def _samples(pid: int, guest: _Guest) -> Iterator[wire.TorchSample]:
    report = guest.report
    for device, gpu in zip(report.devices, report.gpu_names(), strict=True):
        yield wire.TorchSample(
            pid=pid, gpu=gpu or None, run=guest.run, rank=report.rank, role=report.role, **_counters(device)
        )


def _counters(device: DeviceMemory) -> dict[str, int | None]:
    return {name: getattr(device, name) for name in _COUNTERS}


def _identity(pid: int, guest: _Guest) -> Identity:
    report = guest.report
    return Identity(pid=pid, run=guest.run, run_by=guest.run_by, rank=report.rank, role=report.role)


def _introduction(pid: int, guest: _Guest) -> Found:
    report = guest.report
    body = wire.Probe(
        door=report.door,
        torch_version=report.torch_version,
        world_size=report.world_size,
        rank=report.rank,
        role=report.role,
        gpus=tuple(name for name in report.gpu_names() if name),
    )
    origin = wire.Origin(source="probe", pid=pid, rank=report.rank)
    return Found(body=body, origin=origin, run=guest.run, run_by=guest.run_by)


def _lives(pid: int, guest: _Guest, now: float) -> bool:
    silent = now - guest.heard_at
    if silent < _LOOK_AFTER_SECONDS or not guest.pid_of_kernel:
        return silent < SILENT_SECONDS
    return silent < SILENT_SECONDS and _exists(pid)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
