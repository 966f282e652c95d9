"""Raylets are found by their short names, and their sessions by their command lines."""

from pathlib import Path

import pytest

from oomwatch_agent.raylets import RayletSessions


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    _process(tmp_path, 7, "python3", "python3", "--session_dir=/tmp/no")
    _process(tmp_path, 80, "raylet", "/ray/raylet", "--node_ip=192.0.2.1", "--session_dir=/scratch/ray/session_a")
    _process(tmp_path, 9, "raylet", "/ray/raylet", "--session_dir=/scratch/ray/session_b")
    (tmp_path / "self").mkdir()
    return tmp_path


def _process(proc: Path, pid: int, short_name: str, *arguments: str) -> None:
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "comm").write_text(f"{short_name}\n")
    (folder / "cmdline").write_text("\0".join(arguments) + "\0")


def test_the_sessions_of_all_raylets_are_found_and_of_nothing_else(proc: Path) -> None:
    assert list(RayletSessions(proc)()) == [Path("/scratch/ray/session_b"), Path("/scratch/ray/session_a")]


def test_one_whose_command_line_is_hidden_or_gone_is_passed_over(proc: Path) -> None:
    (proc / "9/cmdline").unlink()
    assert list(RayletSessions(proc)()) == [Path("/scratch/ray/session_a")]


def test_a_machine_without_proc_has_none(tmp_path: Path) -> None:
    assert list(RayletSessions(tmp_path / "missing")()) == []
