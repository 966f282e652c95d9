"""`oomwatch ray`: agents on every node of a real Ray cluster, which outlive the command and are started again."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.acceptance.programs import Program, Server, ending, until
from tests.missing import do_without, need_ray
from tests.server.running_server import ENVIRON

pytestmark = [pytest.mark.acceptance, pytest.mark.alone]
CLUSTER = Path(__file__).with_name("ray_cluster.py")
NOT_STARTED = 3  # exit status of ray_cluster.py
PATIENCE_SECONDS = 300.0  # Ray starts a dozen processes a node
TOKEN = "for-agents-of-this-test"
# A busy machine takes longer than Ray gives itself to start.
RAY = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_agent_register_timeout_ms": "120000",
    "RAY_raylet_start_wait_time_s": "60",
    "RAY_gcs_server_request_timeout_seconds": "120",
}


class Ended(NamedTuple):
    status: int
    output: str
    errors: str


class RayCluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = Program("cluster", [str(CLUSTER), str(folder)], folder, {**RAY, "RAY_TMPDIR": str(folder)})

    def address(self) -> str:
        """Once two nodes are there."""
        there = self.folder / "address"
        until("the cluster", lambda: there.exists() or not self.program.running, seconds=PATIENCE_SECONDS)
        if not self.program.running and self.program.stop() == NOT_STARTED:
            do_without("a Ray cluster", "a machine with less to do: Ray gave its own programs up three times")
        assert self.program.running, self.program.output
        return there.read_text(encoding="utf-8")

    def oomwatch_ray(self, word: str, *flags: str) -> Ended:
        """The command, as people type it."""
        command = [sys.executable, "-m", "oomwatch", "ray", word, "--address", self.address(), *flags]
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
            cwd=self.folder,
            env={**ENVIRON, **RAY, "RAY_TMPDIR": str(self.folder)},
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def agents(self) -> list[dict[str, Any]]:
        """Those that run: a node that has just joined has none yet."""
        told = self.oomwatch_ray("status", "--json")
        assert told.output, told
        return [agent for agent in json.loads(told.output) if agent["pid"] is not None]

    def finish(self) -> None:
        (self.folder / "finish").touch()
        until("the cluster's end", lambda: not self.program.running, seconds=PATIENCE_SECONDS)


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    """In a folder of a short name, since the paths of Ray's sockets may have 107 bytes."""
    need_ray()
    folder = Path(tempfile.mkdtemp(prefix="oow"))
    started = RayCluster(folder)
    with ending(started.program):
        yield started
        started.finish()
    shutil.rmtree(folder, ignore_errors=True)


def test_every_node_of_a_ray_cluster_has_an_agent_until_it_is_told_to_stop(
    tmp_path: Path, rules: Path, cluster: RayCluster
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN, encoding="utf-8")
    server = Server(tmp_path, rules, "--token-file", str(token))
    with ending(server):
        where = ("--server", server.url, "--token-file", str(token), "--name-by", "id", "--code", "ship")
        started = cluster.oomwatch_ray("start", *where, "--wait", "120s", "--", "--simulate", "demo")
        assert started.status == 0, started
        until("both nodes, with the command gone", lambda: states(server) == ["live"] * 2, seconds=PATIENCE_SECONDS)
        (cluster.folder / "third").touch()
        agents = cluster.agents()
        secret_stays_secret(cluster, agents)
        killed = agents[0]
        os.kill(killed["pid"], signal.SIGKILL)
        until("a node that joins", lambda: states(server) == ["live"] * 3, seconds=PATIENCE_SECONDS)
        again = until("the killed one's next start", lambda: running_again(cluster, killed), seconds=PATIENCE_SECONDS)
        assert again["starts"] > killed["starts"]

        refused = cluster.oomwatch_ray("start", *where)
        assert (refused.status, "already" in refused.errors) == (1, True), refused
        stopped = cluster.oomwatch_ray("stop")
        # On a busy machine some take longer than they are given, and say goodbye all the same.
        assert re.fullmatch(r"[0-3] of 3 agents said goodbye; none is kept any more\n", stopped.output), stopped
        until("the goodbyes", lambda: states(server) == ["stopped"] * 3, seconds=PATIENCE_SECONDS)
        assert cluster.oomwatch_ray("status").status == 1


def states(server: Server) -> list[str]:
    return [node["state"] for node in server.get("/api/v1/nodes")]


def running_again(cluster: RayCluster, killed: dict[str, Any]) -> dict[str, Any] | None:
    of_its_node = [agent for agent in cluster.agents() if agent["name"] == killed["name"]]
    return next((agent for agent in of_its_node if agent["pid"] != killed["pid"]), None)


def secret_stays_secret(cluster: RayCluster, agents: list[dict[str, Any]]) -> None:
    """No command line, no environment and none of Ray's files has the token; the code is that which was sent."""
    for agent in agents:
        process = Path(f"/proc/{agent['pid']}")
        assert TOKEN.encode() not in process.joinpath("cmdline").read_bytes()
        environ = process.joinpath("environ").read_bytes()
        assert TOKEN.encode() not in environ
        assert b"py_modules_files" in environ
    logs = (path for path in cluster.folder.glob("ray/session_*/logs/**/*") if path.is_file())
    assert [path.name for path in logs if TOKEN.encode() in path.read_bytes()] == []
