"""The memory limit that the kernel enforces on this container or job: control groups, version 2 and 1.

A process is in one group, and every group above it may have a limit of its own; the tightest counts, together with what
that very group uses. From the use the page cache that the kernel can drop at once is subtracted ("working set", as the
kubelet reckons before it evicts).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from oomwatch_agent.kernel_files import read_fields, read_lines, read_number, read_table

Version = Literal["cgroup v2", "cgroup v1"]

_FILES: dict[Version, dict[str, str]] = {
    "cgroup v2": {
        "limit": "memory.max",
        "used": "memory.current",
        "cache": "inactive_file",
        "kills": "memory.events",
    },
    "cgroup v1": {
        "limit": "memory.limit_in_bytes",
        "used": "memory.usage_in_bytes",
        "cache": "total_inactive_file",
        "kills": "memory.oom_control",
    },
}


class MemoryGroup(NamedTuple):
    """A group with a memory limit: what is read of it each time."""

    version: Version
    folder: Path
    limit_bytes: int

    def used_bytes(self) -> int | None:
        """The working set: use without the cache that can be dropped at once."""
        files = _FILES[self.version]
        used = read_number(f"{self.folder}/{files['used']}")
        if used is None:
            return None
        field = files["cache"]
        cache = read_fields(f"{self.folder}/memory.stat", field).get(field, 0)
        return max(0, used - cache)

    def has_changed(self) -> bool:
        """Whether its limit is another than it was."""
        return read_number(f"{self.folder}/{_FILES[self.version]['limit']}") != self.limit_bytes

    def kill_count(self) -> int | None:
        """Processes of this group (in version 2 also of those under it) killed for want of memory since it was made."""
        return read_fields(f"{self.folder}/{_FILES[self.version]['kills']}", "oom_kill").get("oom_kill")


def find(root: Path, memory_total_bytes: int) -> MemoryGroup | None:
    """The group whose limit binds the programs beside this one; None where no limit is below the machine's memory.

    A limit that holds for this agent alone (its own systemd unit, its own pod) says nothing of the trainer, and is
    passed over.
    """
    binding = None
    for version, folder in _groups(root):
        limit = read_number(folder / _FILES[version]["limit"])
        if limit is None or limit >= memory_total_bytes:  # "max", or version 1's 2**63 rounded to pages
            continue
        if (binding is None or limit < binding.limit_bytes) and not _holds_only_us(folder, root):
            binding = MemoryGroup(version, folder, limit)
    return binding


def _groups(root: Path) -> Iterator[tuple[Version, Path]]:
    """This process' group with memory control and those above it, as far as they can be seen from here."""
    for line in read_lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", maxsplit=2)
        version: Version = "cgroup v1" if controllers else "cgroup v2"
        if controllers and "memory" not in controllers.split(","):
            continue
        for mount_root, mount_point in _mounts(root, version):
            top = root / mount_point.lstrip("/")
            folder = top / _below(path, mount_root)
            folder = folder if folder.is_dir() else top  # a container may see its own group as the top
            yield version, folder
            yield from ((version, parent) for parent in folder.parents if parent == top or top in parent.parents)


def _mounts(root: Path, version: Version) -> Iterator[tuple[str, str]]:
    """Root within the hierarchy, and mount point, of the mounts that show memory groups (see proc(5), mountinfo)."""
    for line in read_lines(root / "proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        kind, options = after.split()[0], after.split()[-1]
        if kind == "cgroup2" if version == "cgroup v2" else kind == "cgroup" and "memory" in options.split(","):
            yield before.split()[3], before.split()[4]


def _below(path: str, mount_root: str) -> str:
    """A group's path relative to a mount that shows only the part of the hierarchy under `mount_root`."""
    if mount_root != "/" and (path == mount_root or path.startswith(mount_root + "/")):
        path = path[len(mount_root) :]
    return path.lstrip("/")


def _holds_only_us(folder: Path, root: Path) -> bool:
    """Whether every process in and under a group is this one or a child of it."""
    seen = False
    for listing in folder.rglob("cgroup.procs"):
        for line in read_lines(listing):
            if not _is_ours(line, root):
                return False
            seen = True
    return seen


def _is_ours(pid: str, root: Path) -> bool:
    """A pid that this namespace does not show is 0 here: somebody else's."""
    return pid == str(os.getpid()) or read_table(root / "proc" / pid / "status").get("PPid:") == os.getpid()
