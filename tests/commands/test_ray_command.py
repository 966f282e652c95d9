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


# What the command asks of Ray, of a cluster that takes the connection and then does not answer.
SILENT_RAY = """
class cloudpickle:
    register_pickle_by_value = staticmethod(lambda module: None)
class exceptions:
    class RayError(Exception): pass
def init(**_): pass
def shutdown(): pass
def get_actor(*_, **more): raise exceptions.RayError("The actor is unavailable.\\nMore of Ray's own.")
"""


def status_with(folder: Path) -> "subprocess.CompletedProcess[str]":
    """In an interpreter that takes what is in this folder for Ray."""
    environ = {**ENVIRON, "PYTHONPATH": f"{folder}:{ENVIRON['PYTHONPATH']}"}
    command = [sys.executable, "-m", "oomwatch", "ray", "status"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ)


def test_without_ray_it_says_where_to_run_it(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('no ray', name='ray')", encoding="utf-8")
    ended = status_with(tmp_path)
    assert ended.returncode == 2
    assert "Ray is not installed here" in ended.stderr


def test_a_cluster_that_stops_to_answer_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "ray/util").mkdir(parents=True)
    (tmp_path / "ray/__init__.py").write_text(SILENT_RAY, encoding="utf-8")
    affinity = tmp_path / "ray/util/scheduling_strategies.py"
    affinity.write_text("class NodeAffinitySchedulingStrategy: pass\n", encoding="utf-8")
    ended = status_with(tmp_path)
    assert ended.returncode == 2
    told = '--address auto: The actor is unavailable; what does Ray\'s own "ray status" say?'
    assert ended.stderr == f"oomwatch: {told}\n"
