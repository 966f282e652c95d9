"""The memory of the machine, or of the container, that the trainer runs in: where most runs that die of memory die.

And the file systems that hold what has no room in it: /dev/shm, and the disk that Ray spills to.
"""

import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from oomwatch import wire
from oomwatch_agent import cgroup, kernel_files
from oomwatch_agent.residents import Residents
from oomwatch_agent.sights import of_host
from oomwatch_agent.source import Found, Reading, Sight, SourceMissingError
from oomwatch_agent.spill_disk import DiskUse, SpillDisk
from oomwatch_agent.who.addresses import addresses_of, own_addresses, usable
from oomwatch_agent.who.processes import Processes

_TOP_PROCESSES = 10
_CONTAINER_SECONDS = 600.0  # the last lines of what was killed come minutes late
_MEMORY = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")  # what matters of /proc/meminfo
_PRESSURE = re.compile(rb"^(some|full) avg10=([0-9.]+)", re.MULTILINE)
_WHOLE_LOOK_EVERY = 6  # slow reads: once a minute. Names and addresses seldom change


class HostSource:
    """Host memory of Linux. `root` is where the file system begins (tests lay out trees of their own)."""

    name = "host"
    looks_an_interval = 1  # it fills more slowly than a card

    def __init__(
        self,
        *,
        root: Path = Path("/"),
        addresses: Callable[[], tuple[str, ...]] = own_addresses,
        clock: Callable[[], float] = time.monotonic,
        spill_disk: SpillDisk | None = None,
    ) -> None:
        self._root = root
        proc = root / "proc"
        self._meminfo = str(proc / "meminfo")  # as text: to join paths costs as much as to read some of these files
        self._kept_meminfo, self._vmstat, self._pressure_file = (
            kernel_files.KeptFile(proc / name) for name in ("meminfo", "vmstat", "pressure/memory")
        )
        self._shm_folder = str(root / "dev/shm")
        self._spill_disk = spill_disk or SpillDisk()
        self._disk: DiskUse | None = None  # as it was at the last slow read
        self._addresses = addresses
        self._group: cgroup.MemoryGroup | None = None
        self._facts: wire.NodeFacts | None = None
        self._machine = wire.HostFacts(memory_total_bytes=0)  # as of the last whole look
        self._own_addresses: tuple[str, ...] = ()
        self._looks = 0
        self._kills = _Kills()
        self._residents = Residents(root / "proc")
        self._processes = Processes(root)
        self._clock = clock
        self._containers: dict[str, float] = {}  # addresses of the largest processes -> when they were last seen

    def open(self) -> wire.NodeFacts:
        """Raises SourceMissingError where /proc does not tell the memory."""
        if "MemTotal" not in self._memory():
            raise SourceMissingError(f"{self._meminfo} cannot be read: host memory needs Linux with /proc")
        self._facts = self._look()
        return self._facts

    def read(self, *, slow: bool) -> Reading:
        """One look. A slow one also looks at limits (they can be changed) and disk, and lists the largest processes."""
        before = self._facts
        if slow:
            self._facts = self._look()
        memory, pressure, shm = self._memory(), self._pressure(), self._shm()
        sample = wire.HostSample(
            memory_used_bytes=_difference(memory, "MemTotal", "MemAvailable"),
            cgroup_used_bytes=self._group.used_bytes() if self._group else None,
            swap_used_bytes=_difference(memory, "SwapTotal", "SwapFree"),
            shm_used_bytes=(shm.f_blocks - shm.f_bfree) * shm.f_frsize if shm else None,
            disk_used_bytes=self._disk.used_bytes if self._disk else None,
            memory_pressure_some_ratio=pressure.get(b"some"),
            memory_pressure_full_ratio=pressure.get(b"full"),
            oom_kill_total=self._kills_of_the_kernel(),
            processes=self._top_processes(memory) if slow else None,
        )
        found = self._kills.news(sample, self._group)
        return Reading(host=sample, found=found, facts=self._facts if self._facts != before else None)

    def look(self) -> list[Sight]:
        """The machine's memory and the container's, and nothing else."""
        facts = self._facts.host if self._facts else None
        return of_host(self._sizes(), facts)

    def close(self) -> None:
        """Let go of the files that are kept open."""
        for file in (self._kept_meminfo, self._vmstat, self._pressure_file):
            file.close()

    def _sizes(self) -> wire.HostSample:
        memory = _in_bytes(kernel_files.read_fields(self._meminfo, *_MEMORY))  # beside a reading: not the kept one
        return wire.HostSample(
            memory_used_bytes=_difference(memory, "MemTotal", "MemAvailable"),
            cgroup_used_bytes=self._group.used_bytes() if self._group else None,
        )

    def _look(self) -> wire.NodeFacts:
        """The facts: of the disk and of containers at every look, of the rest now and then, or when a limit changed."""
        if self._looks % _WHOLE_LOOK_EVERY == 0 or (self._group is not None and self._group.has_changed()):
            self._machine = self._whole_look()
        self._looks += 1
        self._disk = self._spill_disk.look()
        host = msgspec.structs.replace(
            self._machine,
            disk_path=self._disk.path[: wire.TEXT_CHARS_MAX] if self._disk else None,
            disk_total_bytes=self._disk.total_bytes if self._disk else None,
            addresses=usable((*self._own_addresses, *self._containers)),
        )
        return wire.NodeFacts(host=host)

    def _whole_look(self) -> wire.HostFacts:
        memory, self._own_addresses = self._memory(), self._addresses()
        self._group = cgroup.find(self._root, memory.get("MemTotal", 0))
        return wire.HostFacts(
            memory_total_bytes=memory.get("MemTotal", 0),
            memory_limit_bytes=self._group.limit_bytes if self._group else None,
            memory_limit_source=self._group.version if self._group else None,
            swap_total_bytes=memory.get("SwapTotal"),
            shm_total_bytes=self._shm_total_bytes(),
            cpu_count=os.cpu_count(),
            hostname=socket.gethostname(),
            kernel=os.uname().release,
        )

    def _memory(self) -> dict[str, int]:
        return _in_bytes(self._kept_meminfo.read_fields(*_MEMORY))

    def _shm(self) -> os.statvfs_result | None:
        try:
            return os.statvfs(self._shm_folder)
        except OSError:
            return None

    def _shm_total_bytes(self) -> int | None:
        shm = self._shm()
        return None if shm is None else shm.f_blocks * shm.f_frsize

    def _pressure(self) -> dict[bytes, float]:
        """avg10 of the lines of pressure stall information: "some avg10=1.25 avg60=...", in percent.

        None of a kernel without it, or one that has it switched off.
        """
        found = _PRESSURE.findall(self._pressure_file.read_short())
        return {line: float(percent) / 100 for line, percent in found}

    def _kills_of_the_kernel(self) -> int | None:
        return self._vmstat.read_fields("oom_kill").get("oom_kill")

    def _top_processes(self, memory: Mapping[str, int]) -> tuple[wire.HostProcess, ...]:
        top = self._residents.largest(_TOP_PROCESSES, memory.get("MemAvailable", 0))
        known = self._processes.describe(top)
        self._processes.forget_all_but(top)
        self._learn_containers(pid for pid in top if known[pid].inner_pid is not None)
        return tuple(
            wire.HostProcess(pid=pid, name=known[pid].name or "?", rss_bytes=rss_bytes, run=known[pid].run)
            for pid, rss_bytes in top.items()
        )

    def _learn_containers(self, pids: Iterable[int]) -> None:
        """A trainer in a container is known to the others of its run by the container's address."""
        now = self._clock()
        for pid in pids:
            self._containers.update(dict.fromkeys(addresses_of(self._root / "proc" / str(pid)), now))
        self._containers = {
            address: seen for address, seen in self._containers.items() if now - seen <= _CONTAINER_SECONDS
        }


class _Kills:
    """Turns counters of out-of-memory kills into events: a rise is news, the first sight and a reset are not."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._counted_ahead = 0  # kills that the group's counter told before the kernel's, which is read first

    def news(self, sample: wire.HostSample, group: cgroup.MemoryGroup | None) -> tuple[Found, ...]:
        in_group = self._rise(f"cgroup {group.folder}", group.kill_count()) if group else 0
        # The kernel's counter holds the group's kills too: what is left happened elsewhere on this machine.
        elsewhere = self._rise("kernel", sample.oom_kill_total) - in_group - self._counted_ahead
        self._counted_ahead = max(0, -elsewhere)
        counted = {"cgroup": in_group, "kernel": elsewhere}
        return tuple(_killed(reporter, kills, sample, group) for reporter, kills in counted.items() if kills > 0)

    def _rise(self, counter: str, value: int | None) -> int:
        if value is None:
            return 0
        before, self._before[counter] = self._before.get(counter, value), value
        return max(0, value - before)


def _killed(reporter: str, kills: int, sample: wire.HostSample, group: cgroup.MemoryGroup | None) -> Found:
    of_group = reporter == "cgroup"
    body = wire.HostOom(
        reporter=reporter,
        kills=kills,
        used_bytes=sample.cgroup_used_bytes if of_group else sample.memory_used_bytes,
        limit_bytes=group.limit_bytes if of_group and group else None,
    )
    return Found(body=body, origin=wire.Origin(source=HostSource.name))


def _in_bytes(kib: Mapping[str, int]) -> dict[str, int]:
    """The kernel writes kB and means 1024."""
    return {name: number * 1024 for name, number in kib.items()}


def _difference(table: dict[str, int], whole: str, free: str) -> int | None:
    if whole not in table or free not in table:
        return None
    return max(0, table[whole] - table[free])
