"""What deploy/slurm brings: prolog, epilog, the agent of a job, and what the agent of a node makes of them."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.acceptance.programs import Server, agent, ending, until
from tests.agent.programs import Program
from tests.deploy.slurm_cluster import SlurmCluster
from tests.server.running_server import ENVIRON

from oomwatch_agent.slurm_jobs import SlurmSource
from oomwatch_agent.source import SourceMissingError

FOLDER = Path(__file__).resolve().parents[2] / "deploy/slurm"
JOB = {"SLURM_JOB_ID": "4711", "SLURM_JOB_USER": "lin", "SLURM_JOB_GPUS": "0,1", "SLURM_NODELIST": "gpu-[01-04]"}
RULES = """
rules:
  - alert: full
    severity: warning
    when: {kind: threshold, metric: gpu_used_ratio, above: 99%}
    summary: {en: "full", zh: "满"}
"""


def run(script: str, jobs: Path, **environ: str) -> int:
    given = {"PATH": "/usr/bin:/bin", "OOMWATCH_JOBS": str(jobs), **environ}
    return subprocess.run(["sh", str(FOLDER / script)], env=given, check=False).returncode


def detail(source: SlurmSource) -> str:
    """What it says anew, if anything."""
    facts = source.read(slow=True).facts
    return "(nothing new)" if facts is None else str(facts.sources[0].detail)


def test_the_scripts_are_free_of_what_shellcheck_knows(need: Callable[[str, str], str]) -> None:
    tool = need("shellcheck", "apt-get install shellcheck")
    found = subprocess.run([tool, *map(str, sorted(FOLDER.glob("*.sh")))], capture_output=True, text=True, check=False)
    assert found.stdout == ""


def test_a_job_is_on_the_node_from_its_prolog_to_its_epilog(tmp_path: Path) -> None:
    source = SlurmSource(tmp_path)
    assert source.open().sources[0].detail == "no job is here"
    assert run("prolog.sh", tmp_path, **JOB) == 0
    assert run("prolog.sh", tmp_path, SLURM_JOB_ID="99", SLURM_JOB_USER="ada") == 0
    assert detail(source) == "job 99 of ada; job 4711 of lin, GPUs 0,1, nodes gpu-[01-04]"
    assert detail(source) == "(nothing new)"
    assert run("epilog.sh", tmp_path, **JOB) == 0
    assert detail(source) == "job 99 of ada"
    assert [path.name for path in tmp_path.iterdir()] == ["99"]


@pytest.mark.parametrize("job", ["", "../../etc/passwd", "1;reboot", "4711"])
@pytest.mark.parametrize("script", ["prolog.sh", "epilog.sh"])
def test_whatever_happens_neither_script_fails_for_that_would_drain_the_node(
    script: str, job: str, tmp_path: Path
) -> None:
    assert run(script, tmp_path / "nowhere", SLURM_JOB_ID=job) == 0
    assert run(script, Path("/proc"), SLURM_JOB_ID=job) == 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_user_called_something_cannot_command_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "7").write_bytes(b"user=lin\x1b[2J\nnodes=" + b"n" * 5000 + b"\n\xff\xfe=\n")
    (tmp_path / "12.tmp").write_text("user=nobody", encoding="utf-8")
    told = str(SlurmSource(tmp_path).open().sources[0].detail)
    assert told == f"job 7 of lin[2J, nodes {'n' * 100}"


def test_a_node_whose_service_makes_no_folder_is_told_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SourceMissingError, match="deploy/slurm"):
        SlurmSource(tmp_path / "none").open()


def test_outside_of_a_job_no_agent_is_started_and_the_script_goes_on() -> None:
    script = f". {FOLDER / 'job-agent.sh'}; echo on"
    ended = subprocess.run(
        ["sh", "-euc", script], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    assert (ended.stdout, "no job of Slurm" in ended.stderr) == ("on\n", True)


@pytest.mark.parametrize(("last", "status"), [("true", 0), ("exit 7", 7)])
@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_a_strict_script_ends_as_it_would_without_agents_where_none_can_be_started(
    shell: str, last: str, status: int, tmp_path: Path
) -> None:
    srun = Program(tmp_path, "srun")
    srun.script("exit 1")
    Program(tmp_path, "squeue").script("echo 4711.0/oomwatch")
    Program(tmp_path, "scancel").script("exit 1")
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "4711"}
    script = f". {FOLDER / 'job-agent.sh'}; wait; {last}"
    ended = subprocess.run([shell, "-euc", script], env=environ, check=False)
    assert ended.returncode == status
    assert len(srun.calls()) == 1


@pytest.mark.acceptance
def test_a_real_slurm_tells_the_nodes_agent_of_its_jobs_and_runs_an_agent_for_one(tmp_path: Path) -> None:
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    for script in ("prolog", "epilog"):
        path = tmp_path / script
        path.write_text(f"#!/bin/sh\nOOMWATCH_JOBS={jobs} exec {FOLDER}/{script}.sh\n", encoding="utf-8")
        path.chmod(0o755)
    rules = tmp_path / "alerts.yaml"
    rules.write_text(RULES, encoding="utf-8")
    server = Server(tmp_path, rules)
    of_the_node = agent(tmp_path, server, "--interval", "0.2", "--slurm", str(jobs), node="whole-node")
    with ending(of_the_node, server), SlurmCluster(tmp_path, tmp_path / "prolog", tmp_path / "epilog") as slurm:
        job = slurm.submit(
            f". {FOLDER}/job-agent.sh\ntouch {tmp_path}/begun\nwhile [ ! -e {tmp_path}/enough ]; do sleep 0.1; done\n",
            "--job-name=qwen7b-grpo",
            environ={
                "PYTHONPATH": ENVIRON["PYTHONPATH"],
                "OOMWATCH_AGENT": write_program(tmp_path),
                "OOMWATCH_SERVER": server.url,
                "OOMWATCH_NODE": "of-the-job",
                "OOMWATCH_SIMULATE": "demo",
                "OOMWATCH_AGENT_LOG": str(tmp_path),
            },
        )
        until("the job on the node", lambda: f"job {job} of root" in told(server, "whole-node"), seconds=120)
        until("the job's agent", lambda: run_of(server, "of-the-job") == f"qwen7b-grpo-{job}", seconds=120)
        (tmp_path / "enough").touch()
        until("its goodbye", lambda: node(server, "of-the-job").get("state") == "stopped", seconds=120)
        until("the job's end on the node", lambda: "no job is here" in told(server, "whole-node"), seconds=120)


def write_program(folder: Path) -> str:
    """As installed: one word."""
    path = folder / "oomwatch-agent"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m oomwatch_agent "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def node(server: Server, name: str) -> dict[str, object]:
    return next((one for one in server.get("/api/v1/nodes") if one["node"] == name), {})


def told(server: Server, name: str) -> str:
    return str(node(server, name).get("facts", ""))


def run_of(server: Server, name: str) -> object:
    return node(server, name).get("run")
