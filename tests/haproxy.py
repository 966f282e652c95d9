"""A haproxy of its own, for tests of what stands behind one."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.missing import do_without


def haproxy() -> str:
    """The program."""
    program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        do_without("haproxy", "scripts/system-packages, or apt-get install haproxy")
    return program


@contextlib.contextmanager
def haproxy_running(folder: Path, config: str) -> Iterator[None]:
    """Whether it listens yet is for the test to look."""
    path = folder / "haproxy.cfg"
    path.write_text(config, encoding="utf-8")
    with (folder / "haproxy.log").open("ab") as log:
        process = subprocess.Popen([haproxy(), "-db", "-f", str(path)], stdout=log, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()
