"""Processes by their short names, of which most are read a few times and then now and then."""

from pathlib import Path

from oomwatch_agent.who.short_names import OLD_EVERY, YOUNG_LOOKS, ShortNames


def process(proc: Path, pid: int, name: str) -> None:
    (proc / str(pid)).mkdir(exist_ok=True)
    (proc / str(pid) / "comm").write_text(f"{name}\n")


class Counting:
    """Wants raylets, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, name: bytes) -> bool:
        self.asked += 1
        return name == b"raylet"


def test_a_young_process_that_becomes_another_program_is_found_at_the_next_look(tmp_path: Path) -> None:
    process(tmp_path, 16, "bash")
    names = ShortNames(b"raylet".__eq__, tmp_path)
    assert names.pids() == []
    process(tmp_path, 16, "raylet")
    process(tmp_path, 9, "raylet")
    assert names.pids() == [9, 16]
    process(tmp_path, 9, "bash")
    assert names.pids() == [16]


def test_an_old_one_is_read_now_and_then(tmp_path: Path) -> None:
    for pid in range(1, 81):
        process(tmp_path, pid, "kworker/0:1")
    wants = Counting()
    names = ShortNames(wants, tmp_path)
    for _ in range(YOUNG_LOOKS):
        names.pids()
    assert wants.asked == 80 * YOUNG_LOOKS
    wants.asked = 0
    process(tmp_path, 33, "raylet")
    found = [names.pids() for _ in range(OLD_EVERY)]
    assert found[-1] == [33]
    assert wants.asked <= 80 + OLD_EVERY


def test_a_number_that_was_given_again_is_young(tmp_path: Path) -> None:
    process(tmp_path, 16, "bash")
    names = ShortNames(b"raylet".__eq__, tmp_path)
    for _ in range(YOUNG_LOOKS):
        names.pids()
    (tmp_path / "16/comm").unlink()
    (tmp_path / "16").rmdir()
    assert names.pids() == []
    process(tmp_path, 16, "raylet")
    assert names.pids() == [16]
