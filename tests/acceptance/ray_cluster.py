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
NOT_STARTED = 3  # exit status


def main(folder: Path) -> None:
    """Until told to finish, or until the test is gone."""
    cluster: Any = Cluster()
    try:
        add_node(cluster, include_dashboard=False)
        add_node(cluster)
        (folder / "fresh").write_text(cluster.address, encoding="utf-8")
        (folder / "fresh").rename(folder / "address")
        wait_for(folder / "third")
        add_node(cluster)
        wait_for(folder / "finish")
    finally:
        cluster.shutdown()


def add_node(cluster: Any, **more: Any) -> None:
    """Ray gives its own programs 30 s to start, which is too short on a busy machine: it tries again."""
    if not any(is_added(cluster, **more) for _ in range(ATTEMPTS)):
        sys.exit(NOT_STARTED)


def is_added(cluster: Any, **more: Any) -> bool:
    try:
        cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20, **more)
    except Exception as error:
        print(error, flush=True)
        return False
    return True


def wait_for(path: Path) -> None:
    parent = os.getppid()
    while not path.exists() and os.getppid() == parent:
        time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
