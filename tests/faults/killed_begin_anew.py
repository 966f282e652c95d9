"""Gives a damaged database up again and again, and is killed at another point each time.

    python tests/faults/killed_begin_anew.py FOLDER    FOLDER/damaged holds the files; FOLDER/1, FOLDER/2, ... are made

The points are all moments at which a file is about to be opened by SQLite, renamed or removed. Says how many there are.
"""

import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path

from oomwatch.__main__ import main
from oomwatch.store.store import Store

POINTS = ("os.rename", "os.remove", "sqlite3.connect")


def give_up(folder: Path, point: int) -> int:
    """The exit status of a process that is killed there: negative where it was."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = count(1)

    def look(event: str, _: object) -> None:
        if event in POINTS and next(seen) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    os._exit(main(["begin-anew", "--db", str(folder / "oomwatch.db")]))


if __name__ == "__main__":
    root = Path(sys.argv[1])
    Store.open(f"sqlite:///{root / 'tried'}").close()  # what it imports is there for all
    for point in count(1):
        shutil.copytree(root / "damaged", root / str(point))
        status = give_up(root / str(point), point)
        if status >= 0:
            print(f"{point} {status}")
            break
