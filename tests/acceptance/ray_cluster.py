"""A real Ray cluster of several nodes on this machine, as a process that a test steers by files.

    python ray_cluster.py FOLDER

Writes its address into FOLDER/address once two nodes are there, adds a third one at FOLDER/third, and ends all of its
own processes (and nobody else's) at FOLDER/finish.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

ATTEMPTS = 3


def main(folder: Path) -> None:
    """Until told to finish, or until the test is gone."""
    small: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = started(small)
    try:
        (folder / "fresh").write_text(cluster.address, encoding="utf-8")
        (folder / "fresh").rename(folder / "address")
        wait_for(folder / "third")
        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
        wait_for(folder / "finish")
    finally:
        cluster.shutdown()


def started(small: dict[str, Any]) -> Any:
    """With two nodes. On a machine with much to do Ray gives its own programs up now and then: it is tried again."""
    for attempts_left in reversed(range(ATTEMPTS)):
        cluster: Any = Cluster()
        try:
            cluster.add_node(**small)
            cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
        except Exception:
            cluster.shutdown()
            if not attempts_left:
                raise
        else:
            return cluster
    raise AssertionError("no attempts")


def wait_for(path: Path) -> None:
    parent = os.getppid()
    while not path.exists() and os.getppid() == parent:
        time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
