"""The file system that Ray spills to: found by Ray's folder, and read though it may hang."""

import os
import threading
import time
from pathlib import Path

from oomwatch_agent.spill_disk import SpillDisk


class Disks:
    """Folders that are there, each on a disk of 1000 blocks of 4 KiB with so many free."""

    def __init__(self, **free_blocks: int) -> None:
        self.free_blocks = free_blocks
        self.asked: list[str] = []

    def usage(self, folder: Path) -> os.statvfs_result:
        self.asked.append(folder.name)
        if folder.name not in self.free_blocks:
            raise FileNotFoundError(folder)
        free = self.free_blocks[folder.name]
        return os.statvfs_result((4096, 4096, 1000, free + 50, free, 0, 0, 0, 0, 255))


def test_what_ray_cannot_have_is_used() -> None:
    disks = Disks(ray=400)
    use = SpillDisk(sessions=list, places=lambda: [Path("/x/ray")], usage=disks.usage).look()
    assert use is not None
    assert (use.path, use.total_bytes, use.used_bytes) == ("/x/ray", 4_096_000, 600 * 4096)


def test_the_folder_of_a_running_raylet_comes_before_the_usual_one() -> None:
    disks = Disks(ray=400, own=100)
    disk = SpillDisk(sessions=lambda: [Path("/y/own/session_1")], places=lambda: [Path("/x/ray")], usage=disks.usage)
    use = disk.look()
    assert use is not None
    assert use.path == "/y/own"


def test_a_folder_that_is_gone_gives_way_to_the_next() -> None:
    disks = Disks(ray=400)
    disk = SpillDisk(sessions=lambda: [Path("/y/own/session_1")], places=lambda: [Path("/x/ray")], usage=disks.usage)
    use = disk.look()
    assert use is not None
    assert use.path == "/x/ray"


def test_where_ray_never_ran_there_is_no_such_disk() -> None:
    assert SpillDisk(sessions=list, places=lambda: [Path("/x/ray")], usage=Disks().usage).look() is None


def test_running_raylets_are_asked_for_now_and_then_only() -> None:
    now, walks = [0.0], []

    def sessions() -> list[Path]:
        walks.append(now[0])
        return []

    disk = SpillDisk(sessions=sessions, places=list, usage=Disks().usage, clock=lambda: now[0])
    for now[0] in (0.0, 10.0, 290.0, 300.0, 310.0):
        disk.look()
    assert walks == [0.0, 300.0]


def test_a_file_system_that_hangs_costs_its_own_answer_and_is_read_again_later() -> None:
    release = threading.Event()
    disks = Disks(ray=400)

    def usage(folder: Path) -> os.statvfs_result:
        assert release.wait(30)
        return disks.usage(folder)

    disk = SpillDisk(sessions=list, places=lambda: [Path("/x/ray")], usage=usage, limit_seconds=0.05)
    assert disk.look() is None
    assert disk.look() is None
    release.set()
    deadline = time.monotonic() + 30
    while (use := disk.look()) is None:
        assert time.monotonic() < deadline
    assert use.used_bytes == 600 * 4096


def test_a_file_system_without_size_is_none_to_spill_to() -> None:
    def usage(_folder: Path) -> os.statvfs_result:
        return os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))

    assert SpillDisk(sessions=list, places=lambda: [Path("/x/ray")], usage=usage).look() is None
