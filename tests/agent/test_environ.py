"""What a process was started with, read from /proc where it may be read."""

import os
from pathlib import Path

from oomwatch_agent.who.environ import Environments


class Clock:
    """Stands until a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def _start(root: Path, pid: int, content: bytes) -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "environ").write_bytes(content)


def test_variables_are_read_by_name(tmp_path: Path) -> None:
    _start(tmp_path, 4711, b"PATH=/bin\0CUDA_VISIBLE_DEVICES=0,1\0EMPTY=\0WITH=a=b\0\xff=x\0")
    variables = Environments(tmp_path)(4711)
    assert variables is not None
    assert variables["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert (variables["EMPTY"], variables["WITH"]) == ("", "a=b")


def test_a_process_that_is_gone_gives_nothing(tmp_path: Path) -> None:
    assert Environments(tmp_path)(4711) is None


def test_a_process_is_looked_at_once_a_minute(tmp_path: Path) -> None:
    clock = Clock()
    environments = Environments(tmp_path, clock=clock)
    _start(tmp_path, 4711, b"A=1\0")
    environments(4711)
    _start(tmp_path, 4711, b"A=2\0")
    assert environments(4711) == {"A": "1"}
    clock.now = 60.0
    assert environments(4711) == {"A": "2"}


def test_a_process_that_does_not_answer_costs_the_time_limit_once(tmp_path: Path) -> None:
    """A pipe that nobody writes to blocks its reader, as a process does that is stuck in the kernel."""
    folder = tmp_path / "proc" / "4711"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "environ")
    environments = Environments(tmp_path, limit_seconds=0.05)
    assert environments(4711) is None
    assert environments(4711) is None
    (folder / "environ").write_bytes(b"")  # lets the reader go
