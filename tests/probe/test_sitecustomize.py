"""The folder that `oomwatch-agent run` puts on PYTHONPATH: the probe is in every Python, and nothing else changes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.probe.guests import CUDA_IN_USE, SITE, STANDIN, UNTIL_END_OF_INPUT, Ear, environment, guest

WHICH = "import sys; print([name for name in ('oomwatch_probe', 'sitecustomize', 'torch') if name in sys.modules])"


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    listening = Ear(tmp_path / "probe.sock")
    yield listening
    listening.source.close()


def _python(code: str, *path: Path, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    environ = environment(PYTHONPATH=":".join(str(entry) for entry in path))
    return subprocess.run(
        [sys.executable, *options, "-c", code], env=environ, capture_output=True, text=True, check=False
    )


def _sitecustomize(folder: Path, code: str) -> Path:
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code)
    return folder


def test_the_probe_comes_in_without_being_installed_for_that_python(ear: Ear, tmp_path: Path) -> None:
    """Only the folder of the sitecustomize is on the path: the agent may live in an environment of its own."""
    code = "import oomwatch_probe.sampling as sampling\nsampling.INTERVAL_SECONDS = 0.02\n"
    to = {"OOMWATCH_PROBE_SOCKET": str(tmp_path / "probe.sock"), "PYTHONPATH": f"{SITE}:{STANDIN}"}
    to["VERL_USE_EXTERNAL_MODULES"] = "oomwatch_probe"  # as `oomwatch-agent run` sets it: a second door, not the first
    with guest(code + CUDA_IN_USE + UNTIL_END_OF_INPUT, **to) as running:
        ear.hears(running.pid)
        assert ear.probe_of(running.pid).door == "sitecustomize"


def test_a_python_that_does_nothing_loads_next_to_nothing() -> None:
    code = "import sys; print(*sorted(name for name in sys.modules if name.startswith('oomwatch')))"
    assert _python(code, SITE).stdout == "oomwatch_probe\n"


def test_it_can_be_switched_off() -> None:
    code = "import sys; print(sys.meta_path[0])"
    environ = environment(PYTHONPATH=str(SITE), OOMWATCH_PROBE="0")
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert "TorchWatch" not in done.stdout


def test_another_sitecustomize_runs_as_if_ours_were_not_there(tmp_path: Path) -> None:
    other = _sitecustomize(tmp_path / "other", "mark = 'theirs'\nprint(__name__, __file__)\n")
    done = _python("import sitecustomize; print(sitecustomize.mark)", SITE, other)
    assert (done.stdout, done.stderr) == (f"sitecustomize {other}/sitecustomize.py\ntheirs\n", "")


def test_one_before_ours_hides_ours_and_is_left_alone(tmp_path: Path) -> None:
    other = _sitecustomize(tmp_path / "other", "print('theirs')\n")
    done = _python(WHICH, other, SITE)
    assert (done.stdout, done.stderr) == ("theirs\n['sitecustomize']\n", "")


def test_only_the_next_of_several_runs(tmp_path: Path) -> None:
    first = _sitecustomize(tmp_path / "first", "print('first')\n")
    second = _sitecustomize(tmp_path / "second", "print('second')\n")
    assert _python("pass", SITE, first, second).stdout == "first\n"


# Wrappers of other tools (tracers, coverage) look for the next sitecustomize on the whole path but their own folder.
WRAPPER = """
import os, sys, importlib.machinery, importlib.util
print("wrapper")
own = os.path.dirname(os.path.abspath(__file__))
spec = importlib.machinery.PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if entry != own])
if spec is not None:
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)
"""


def test_a_wrapper_and_ours_do_not_call_each_other_for_ever(tmp_path: Path) -> None:
    wrapper = _sitecustomize(tmp_path / "wrapper", WRAPPER)
    last = _sitecustomize(tmp_path / "last", "print('last')\n")
    for path in ((SITE, wrapper, last), (wrapper, SITE, last)):
        done = _python(WHICH, *path)
        assert (done.stdout, done.stderr) == ("wrapper\nlast\n['oomwatch_probe', 'sitecustomize']\n", "")


def test_an_error_of_another_is_told_as_without_ours(tmp_path: Path) -> None:
    other = _sitecustomize(tmp_path / "other", "raise RuntimeError('theirs')\n")
    with_ours, without = _python("print('runs')", SITE, other), _python("print('runs')", other)
    assert (with_ours.returncode, with_ours.stdout) == (without.returncode, without.stdout) == (0, "runs\n")
    assert with_ours.stderr.splitlines()[-1] == without.stderr.splitlines()[-1]
    assert "RuntimeError: theirs" in without.stderr


@pytest.mark.parametrize("option", ["-S", "-I", "-E"])
def test_a_python_that_is_told_to_ignore_the_folder_does(option: str) -> None:
    done = _python(WHICH, SITE, options=(option,))
    assert (done.returncode, done.stderr) == (0, "")
    assert "oomwatch_probe" not in done.stdout


def test_warnings_as_errors_and_a_strict_python_change_nothing() -> None:
    done = _python("print('runs')", SITE, options=("-W", "error", "-X", "dev", "-b"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "runs\n", "")
