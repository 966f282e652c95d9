"""Output that nobody reads to its end, as in `oomwatch rules explain | head -1`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATHS = os.pathsep.join(str(ROOT / name) for name in ("backend", "agent", "frontend"))


@pytest.mark.parametrize(
    "command",
    [
        "oomwatch --help",
        "oomwatch --version",
        "oomwatch template T2",
        "oomwatch rules export",
        "oomwatch_agent --help",
        "oomwatch_agent parse train.log",
    ],
)
@pytest.mark.parametrize("buffered", [True, False], ids=["all of it at the end", "line by line"])
def test_output_that_nobody_reads_to_its_end_is_no_failure(command: str, buffered: bool, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step:1 - timing_s/step:50.0 - timing_s/gen:20.0\n", encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": PATHS}
    environ.pop("PYTHONUNBUFFERED", None)
    if not buffered:
        environ["PYTHONUNBUFFERED"] = "1"
    with subprocess.Popen(
        [sys.executable, "-m", *command.split()],
        env=environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == b""
        assert program.wait(timeout=60) == 0
