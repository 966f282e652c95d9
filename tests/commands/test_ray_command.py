"""`oomwatch ray` before it reaches a cluster."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.running_server import ENVIRON

from oomwatch.__main__ import main

START = ["ray", "start", "--server", "http://monitor:8642"]


def test_a_token_is_taken_from_a_file_and_never_from_a_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*START, "--", "--token", "secret"]) == 2
    assert "--token-file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--", "--interval", "0"], "interval"),
        (["--token-file", "/nowhere"], "/nowhere"),
        (["--wait", "soon"], "--wait"),
    ],
)
def test_a_wrong_flag_is_told_before_anything_is_started(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*START, *flags]) == 2
    assert words in capsys.readouterr().err


def test_without_ray_it_says_where_to_run_it(tmp_path: Path) -> None:
    """In an interpreter that cannot import Ray."""
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('no ray', name='ray')", encoding="utf-8")
    environ = {**ENVIRON, "PYTHONPATH": f"{tmp_path}:{ENVIRON['PYTHONPATH']}"}
    command = [sys.executable, "-m", "oomwatch", "ray", "status"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert ended.returncode == 2
    assert "Ray is not installed here" in ended.stderr
