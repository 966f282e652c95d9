"""How full the file systems of a host are that a run can fill: the one that Ray spills to, and /dev/shm."""

from typing import Literal, NamedTuple, TypeAlias

from oomwatch import wire

Disk: TypeAlias = Literal["spill_disk", "shm"]
SHM_PATH = "/dev/shm"  # noqa: S108 - a name for people, not a path to write to


class DiskUse(NamedTuple):
    disk: Disk
    path: str
    used_bytes: int
    limit_bytes: int

    def facts(self) -> dict[str, wire.Fact]:
        return {"path": self.path, "used_bytes": self.used_bytes, "limit_bytes": self.limit_bytes}


def disk_use(disk: Disk, host: wire.HostSample, facts: wire.HostFacts) -> DiskUse | None:
    """What is used of a file system, and how large it is; None where either is not told."""
    if disk == "shm":
        path, used_bytes, total_bytes = SHM_PATH, host.shm_used_bytes, facts.shm_total_bytes
    else:
        path, used_bytes, total_bytes = facts.disk_path or "?", host.disk_used_bytes, facts.disk_total_bytes
    return None if used_bytes is None or not total_bytes else DiskUse(disk, path, used_bytes, total_bytes)
