"""`oomwatch-agent run -- COMMAND`: start a training with the probe inside, whatever the trainer is.

It sets environment variables and becomes the command: exit status, signals and terminal are the command's own.
"""

import argparse
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from oomwatch.oserror import with_remedy
from oomwatch_agent.probe.receiver import ROOT_SOCKET, usual_places

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # what shells and env(1) answer
_MAX_NAME = 200  # probe_report's
_PYTHON = re.compile(r"python[\d.]*")
_EXTERNAL_MODULES = "VERL_USE_EXTERNAL_MODULES"

_DESCRIPTION = """\
Starts a command with oomwatch's probe in every Python process that it starts in turn: torch's memory of each rank then
reaches the agent of this node. On several nodes, start Ray (or torchrun) on each of them with it. It does not watch by
itself: the agent does."""

_EXAMPLES = """\
examples:
  oomwatch-agent run -- python3 -m verl.trainer.main_ppo data.train_batch_size=60
  oomwatch-agent run --run qwen7b-grpo -- bash train.sh
  oomwatch-agent run -- ray start --head"""


def main(argv: Sequence[str]) -> int:
    """Become the command. Returns only where that fails: 127 not found, 126 not executable, 2 a mistake in `argv`."""
    options = _options(argv)
    environ = dict(os.environ)
    environ |= variables(environ, options.command[0], run=options.run, probe=options.probe)
    if not _somebody_listens(environ):
        _say("no agent listens on this node yet; torch's memory is shown as soon as one does")
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(options.command[0], options.command, environ)  # noqa: S606 - the user's own command
    except FileNotFoundError:
        _say(f"{options.command[0]}: no such command")
        return _NOT_FOUND
    except OSError as error:
        _say(f"{options.command[0]}: {with_remedy(error)}")
        return _NOT_EXECUTABLE


def variables(environ: Mapping[str, str], program: str, *, run: str | None, probe: str | None) -> dict[str, str]:
    """What to set so that the probe is in every Python process of the command."""
    folder = str(probe_folder() / "site")
    others = [entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != folder]
    found = {"PYTHONPATH": os.pathsep.join([folder, *others])}
    if run is not None:
        found["OOMWATCH_RUN"] = run
    if probe is not None:
        found["OOMWATCH_PROBE_SOCKET"] = str(Path(probe).absolute())
    # A second door, for processes whose PYTHONPATH a trainer replaces. Only where the name is sure to be found without
    # it: verl stops at a module that it cannot import.
    if not environ.get(_EXTERNAL_MODULES) and _is_of_this_environment(program, environ):
        found[_EXTERNAL_MODULES] = "oomwatch_probe"
    return found


def probe_folder() -> Path:
    """Where the probe's package lies. It is not imported: that would start it here."""
    spec = importlib.util.find_spec("oomwatch_probe")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("the package oomwatch_probe is missing; install oomwatch anew")
    return Path(spec.origin).parent


def command_line() -> argparse.ArgumentParser:
    """The flags of `oomwatch-agent run`, which stand before its `--`."""
    parser = argparse.ArgumentParser(
        prog="oomwatch-agent run",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="oomwatch-agent run [--run NAME] [--probe PATH] -- COMMAND ...",
    )
    parser.add_argument("--run", metavar="NAME", type=_run_name, help="name of the training run (OOMWATCH_RUN)")
    parser.add_argument(
        "--probe",
        metavar="PATH",
        help="socket of the agent, where it was given one with --probe (OOMWATCH_PROBE_SOCKET)",
    )
    return parser


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = command_line()
    own, command = _divided(argv)
    options = parser.parse_args(own)
    if not command:
        parser.error("the command to start is missing; write it after --")
    options.command = command
    return options


def _divided(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """What is before the first "--" and what is behind it."""
    place = list(argv).index("--") if "--" in argv else len(argv)
    return list(argv[:place]), list(argv[place + 1 :])


def _run_name(text: str) -> str:
    if not 0 < len(text) <= _MAX_NAME or not text.isprintable():
        raise argparse.ArgumentTypeError(f"a run name has 1 to {_MAX_NAME} printable characters")
    return text


def _is_of_this_environment(program: str, environ: Mapping[str, str]) -> bool:
    """Whether a program is the Python of this environment, which has what is installed in it."""
    if not _PYTHON.fullmatch(program.rpartition("/")[2]):
        return False
    found = shutil.which(program, path=environ.get("PATH"))
    return found is not None and Path(found).absolute().parent == Path(sys.executable).absolute().parent


def _somebody_listens(environ: Mapping[str, str]) -> bool:
    named = environ.get("OOMWATCH_PROBE_SOCKET")
    paths = [Path(named)] if named else [ROOT_SOCKET, *(place.path for place in usual_places(os.geteuid()))]
    return any(path.exists() for path in paths)


def _say(text: str) -> None:
    print(f"oomwatch-agent: {text}", file=sys.stderr)  # noqa: T201 - the command talks to a person
