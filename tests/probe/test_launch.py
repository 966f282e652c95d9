"""`oomwatch-agent run -- COMMAND`: the command with the probe inside, and in every other way itself."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.probe.guests import CUDA_IN_USE, DEADLINE_SECONDS, ROOT, SITE, STANDIN, UNTIL_END_OF_INPUT, Ear, environment

from oomwatch_agent.launch import main, variables

DEPENDENCIES = [entry for entry in sys.path if entry.endswith("site-packages")]


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    listening = Ear(tmp_path / "probe.sock")
    yield listening
    listening.source.close()


def _launched(*argv: str, **environ: str) -> "subprocess.Popen[str]":
    kept = environment(PYTHONPATH=f"{ROOT / 'agent'}:{ROOT / 'backend'}:{STANDIN}", **environ)
    pipe = subprocess.PIPE
    program = [sys.executable, "-m", "oomwatch_agent", "run", *argv]
    return subprocess.Popen(program, env=kept, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _run(*argv: str, **environ: str) -> tuple[int, str, str]:
    with _launched(*argv, **environ) as process:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, out, err


def test_any_training_command_gets_the_probe(ear: Ear, tmp_path: Path) -> None:
    fast = "import oomwatch_probe.sampling as sampling\nsampling.INTERVAL_SECONDS = 0.02\n"
    (tmp_path / "train.py").write_text(fast + CUDA_IN_USE + UNTIL_END_OF_INPUT)
    (tmp_path / "train.sh").write_text(f"{sys.executable} {tmp_path / 'train.py'}\nexit 9\n")
    command = ("--run", "qwen", "--probe", str(tmp_path / "probe.sock"), "--", "sh", str(tmp_path / "train.sh"))
    with _launched(*command) as process:
        ear.until(lambda ear: bool(ear.torch))
        (found,) = ear.found
        assert found.run == ear.torch[0].run == "qwen"
        assert getattr(found.body, "door", None) == "sitecustomize"
        process.communicate("", timeout=DEADLINE_SECONDS)
    assert process.returncode == 9


@pytest.mark.parametrize("status", [0, 1, 3, 255])
def test_the_exit_status_is_the_commands(status: int) -> None:
    code, out, _ = _run("--", sys.executable, "-c", f"print('out'); raise SystemExit({status})")
    assert (code, out) == (status, "out\n")


def test_it_becomes_the_command_so_that_signals_reach_it() -> None:
    # A shell starts what it puts into the background deaf to SIGINT, and that is inherited.
    hear = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"import os, signal, sys; {hear}; print(os.getpid(), flush=True); signal.pause()"
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        with _launched("--", sys.executable, "-c", code) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == process.pid, "one process, not a parent and a child"
            process.send_signal(number)
            process.wait(DEADLINE_SECONDS)
        assert process.returncode in (-number, 130)


def test_arguments_arrive_as_they_are() -> None:
    wanted = ["--", "a b", "--run", "$HOME", "", "ünï", "data.x=[1,2]"]
    _, out, _ = _run("--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *wanted)
    assert out == f"{wanted}\n"


def test_standard_input_is_the_commands() -> None:
    with _launched("--", "cat") as process:
        out, _ = process.communicate("hello", timeout=DEADLINE_SECONDS)
    assert out == "hello"


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["--", "no-such-command"], 127, "no-such-command: no such command"),
        (["--", str(ROOT / "pyproject.toml")], 126, "Permission denied"),
    ],
)
def test_a_command_that_cannot_start_is_told_as_shells_do(argv: list[str], status: int, words: str) -> None:
    code, out, err = _run(*argv)
    assert (code, out) == (status, "")
    assert words in err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "the command to start is missing; write it after --"),
        (["--"], "the command to start is missing"),
        (["python3", "x.py"], "unrecognized arguments"),
        (["--run", "", "--", "true"], "a run name has 1 to 200 printable characters"),
        (["--run", "a\nb", "--", "true"], "a run name has 1 to 200 printable characters"),
    ],
)
def test_a_mistake_in_its_own_words_is_told(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(argv)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_where_nobody_listens_it_says_so_and_starts(tmp_path: Path) -> None:
    code, out, err = _run("--probe", str(tmp_path / "nobody.sock"), "--", "echo", "trains")
    assert (code, out) == (0, "trains\n")
    assert err == "oomwatch-agent: no agent listens on this node yet; torch's memory is shown as soon as one does\n"


def test_where_an_agent_listens_it_says_nothing(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.bind(str(tmp_path / "probe.sock"))
        assert _run("--probe", str(tmp_path / "probe.sock"), "--", "echo", "trains") == (0, "trains\n", "")


def test_what_it_sets() -> None:
    python = sys.executable
    found = variables({"PYTHONPATH": f"/own:{SITE}", "PATH": "/bin"}, python, run="qwen", probe="/run/x.sock")
    assert found == {
        "PYTHONPATH": f"{SITE}:/own",
        "OOMWATCH_RUN": "qwen",
        "OOMWATCH_PROBE_SOCKET": "/run/x.sock",
        "VERL_USE_EXTERNAL_MODULES": "oomwatch_probe",
    }


def test_what_a_person_has_set_stays() -> None:
    environ = {"VERL_USE_EXTERNAL_MODULES": "mine", "OOMWATCH_RUN": "mine", "OOMWATCH_PROBE_SOCKET": "/mine"}
    assert variables(environ, sys.executable, run=None, probe=None) == {"PYTHONPATH": str(SITE)}


def test_verl_is_told_to_import_the_probe_only_where_it_is_sure_to_find_it(tmp_path: Path) -> None:
    """verl ends with an error where it cannot import what it is told to."""
    beside = next(str(file) for file in Path(sys.executable).parent.iterdir() if _is_another_program(file))
    elsewhere = tmp_path / "python3"
    elsewhere.symlink_to(sys.executable)
    for program in (beside, str(elsewhere), "no-such-python", shutil.which("sh") or "/bin/sh"):
        assert "VERL_USE_EXTERNAL_MODULES" not in variables(os.environ, program, run=None, probe=None)


def _is_another_program(file: Path) -> bool:
    return file.is_file() and os.access(file, os.X_OK) and not file.name.startswith("python")


def test_the_probe_of_a_launcher_is_not_in_the_launcher() -> None:
    """To import the probe is to start it: the agent's program finds its folder without."""
    code = "import sys, oomwatch_agent.launch as l; l.variables({}, 'x', run=None, probe=None); print(*sys.modules)"
    path = ":".join([str(ROOT / "agent"), str(ROOT / "backend"), *DEPENDENCIES])
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(PYTHONPATH=path), capture_output=True, text=True, check=True
    )
    assert "oomwatch_probe" not in done.stdout.split()
