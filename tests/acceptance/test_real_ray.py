"""A run inside a real Ray cluster, with the probe in every worker, told to a real server by an agent that finds it all.

Ray, its workers, their files and prefixes, logging, the probe, the agent and the server are real. Made up are the
figures: torch is a stand-in, and the GPUs are scripted.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.programs import ROOT, Program, Server, agent, ending, until
from tests.missing import need_ray
from tests.nvml.standin import GIB, ScriptedGpus

pytestmark = [pytest.mark.acceptance, pytest.mark.alone]
RUN, NODE, STEPS = "trial/qwen7b_grpo", "gpu-07", 4
TRAINING = Path(__file__).with_name("ray_training.py")


@pytest.fixture
def ray_folder() -> Iterator[Path]:
    """Ray's temporary folder: of a short name, since the paths of its sockets may have 107 bytes."""
    need_ray()
    folder = Path(tempfile.mkdtemp(prefix="oow"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_run_in_a_real_ray_cluster_arrives_with_who_is_who(
    tmp_path: Path, ray_folder: Path, rules: Path, gpus: ScriptedGpus
) -> None:
    server = Server(tmp_path, rules)
    probe = str(ray_folder / "probe.sock")
    environ = {**gpus.environment, "RAY_TMPDIR": str(ray_folder)}
    # What kills a run is in the driver's own output, which Ray keeps no file of.
    sources = ("--ray", "auto", "--log", str(tmp_path / "training.log"), "--probe", probe)
    watcher = agent(tmp_path, server, *sources, "--interval", "0.25", **environ)
    with ending(watcher, server):
        until("the agent's GPUs", lambda: server.get("/api/v1/nodes"))
        training = start_training(tmp_path, ray_folder, probe)
        with ending(training):
            pids = [int(pid) for pid in until("the ranks", lambda: words(tmp_path / "ranks"))]
            for gpu, pid in enumerate(pids):
                gpus.set(gpu, used_bytes=60 * GIB, processes=((pid, 50 * GIB),))
            until("the ranks' GPUs to be known", lambda: gpus_of(server, pids) == ["0", "1"])
            (tmp_path / "go").touch()

            until("the last step", lambda: steps(server) == list(range(1, STEPS + 1)))
            check_who_is_who(server, pids)
            (tmp_path / "finish").touch()
            oom = until("out_of_memory", lambda: server.alerts(state="firing", alert="out_of_memory"))
            assert [one["labels"] for one in oom] == [{"node": NODE, "gpu": "1", "run": RUN}]
            assert oom[0]["facts"]["pid"] == pids[1]
            until("the training to end", lambda: not training.running)


def start_training(folder: Path, ray_folder: Path, probe: str) -> Program:
    """Started the way docs/howto/probe.md says."""
    environ = {
        "RAY_TMPDIR": str(ray_folder),
        "OOMWATCH_PROBE_SOCKET": probe,
        "PYTHONPATH": str(ROOT / "tests/probe/standin"),
        "RAY_AUTH_MODE": "disabled",
        "RAY_DEDUP_LOGS": "1",
    }
    command = ["-m", "oomwatch_agent", "run", "--", sys.executable, str(TRAINING)]
    return Program("training", [*command, str(folder), str(STEPS)], folder, environ)


def words(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def probes(server: Server) -> list[dict[str, Any]]:
    return list(server.get("/api/v1/nodes")[0].get("sample", {}).get("torch", []))


def probe_of(server: Server, pid: int) -> dict[str, Any]:
    return next((reading for reading in probes(server) if reading["pid"] == pid), {})


def is_told(server: Server, pid: int, expected: dict[str, Any]) -> bool:
    return expected.items() <= probe_of(server, pid).items()


def gpus_of(server: Server, pids: list[int]) -> list[str | None]:
    by_pid = {reading["pid"]: reading.get("gpu") for reading in probes(server)}
    return [by_pid.get(pid) for pid in pids]


def run_of(server: Server) -> dict[str, Any]:
    return next((run for run in server.get("/api/v1/runs") if run["run"] == RUN), {})


def steps(server: Server) -> list[int]:
    return [point["step"]["step"] for point in run_of(server).get("steps", [])]


def check_who_is_who(server: Server, pids: list[int]) -> None:
    runs = server.get("/api/v1/runs")
    assert [run["run"] for run in runs] == [RUN]
    assert runs[0]["nodes"] == [NODE]
    assert runs[0]["reshard_cycles_total"] == STEPS
    assert runs[0]["config"]["actor_rollout_ref.rollout.gpu_memory_utilization"] == 0.6
    for rank, pid in enumerate(pids):
        expected = {"rank": rank, "role": "actor", "gpu": str(rank), "run": RUN}
        expected |= {"reserved_bytes": (42 + rank) * GIB, "alloc_retries_total": STEPS}
        until(f"{expected} of rank {rank}", partial(is_told, server, pid, expected))


def test_the_training_of_this_test_is_what_ray_runs_and_no_more() -> None:
    """The script imports nothing of oomwatch: whatever the server learns came in through the doors."""
    assert "oomwatch" not in TRAINING.read_text(encoding="utf-8").split('"""', 2)[2]
