"""Programs that were installed, as processes on loopback."""

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.packaging.wheels import ENVIRON


@contextlib.contextmanager
def running(
    *command: str | Path, folder: Path, environ: Mapping[str, str] = ENVIRON, user: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A program with its output in a file of the folder, perhaps as another user; it ends with the test."""
    with (folder / f"{Path(command[0]).name}.log").open("ab") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=dict(environ), stdin=subprocess.DEVNULL, stdout=output, stderr=output, user=user
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
