"""What processes are called, and which run they belong to."""

import os
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.source import Identity, KnownBy
from oomwatch_agent.who.processes import Described, Processes, display_name, run_of


@pytest.mark.parametrize(
    ("command_line", "name"),
    [
        (b"/usr/bin/python3\0-m\0verl.trainer.main_ppo\0trainer.n_gpus=8\0", "python3 -m verl.trainer.main_ppo"),
        (b"python\0-u\0/home/me/train.py\0--hf-token\0secret\0", "python train.py"),
        (b"python3.12\0-c\0import secrets\0", "python3.12 -c"),
        (b"python\0", "python"),
        (b"ray::WorkerDict.actor_rollout_update_actor\0\0\0\0", "ray::WorkerDict.actor_rollout_update_actor"),
        (b"VLLM::EngineCore_DP0\0\0", "VLLM::EngineCore_DP0"),
        (b"/opt/bin/raylet\0--redis-password=secret\0", "raylet"),
        (b"sshd: me@pts/0\0", "sshd:"),
        (b"\xff\xfe\0", "\ufffd\ufffd"),
    ],
)
def test_a_process_is_called_by_its_program_and_never_by_all_arguments(command_line: bytes, name: str) -> None:
    assert display_name(command_line) == name


@pytest.mark.parametrize(
    ("variables", "run"),
    [
        ({"OOMWATCH_RUN": "mine", "SLURM_JOB_ID": "7"}, "mine"),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "grpo"}, "grpo-7"),
        ({"SLURM_JOB_ID": "7"}, "7"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "3", "HOSTNAME": "grpo-3"}, "grpo"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "some-pod-x7k2p"}, None),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "grpo-worker-12"}, "grpo"),
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "grpo-master-0"}, "grpo"),
        ({"HOSTNAME": "gpu-worker-3"}, None),
        ({"JOB_COMPLETION_INDEX": "3", "HOSTNAME": "grpo-3"}, None),
        ({}, None),
    ],
)
def test_a_run_is_named_by_the_environment(variables: dict[str, str], run: str | None) -> None:
    assert run_of(variables)[0] == run


def test_a_name_that_a_person_gave_is_told_from_that_of_a_job() -> None:
    assert run_of({"OOMWATCH_RUN": "mine", "SLURM_JOB_ID": "7"})[1] > run_of({"SLURM_JOB_ID": "7"})[1]


def test_this_process_is_described() -> None:
    described = Processes().describe([os.getpid()])[os.getpid()]
    assert described.name is not None
    assert "py" in described.name


def test_a_process_that_is_gone_is_nothing(tmp_path: Path) -> None:
    assert Processes(tmp_path).describe([5]) == {5: Described()}


def test_a_process_whose_memory_is_stuck_is_called_by_its_short_name(tmp_path: Path) -> None:
    """Reading a named pipe without a writer blocks, as reading the command line of such a process does."""
    folder = tmp_path / "proc/5"
    folder.mkdir(parents=True)
    (folder / "stat").write_text("5 (raylet) D " + " ".join(str(field) for field in range(4, 53)))
    (folder / "comm").write_text("raylet\n")
    os.mkfifo(folder / "cmdline")
    processes = Processes(tmp_path, limit_seconds=0.05)
    assert processes.describe([5]) == {5: Described("raylet")}
    with (folder / "cmdline").open("wb"):  # lets the blocked thread go
        pass


def test_a_process_id_that_is_given_again_gets_the_new_run(tmp_path: Path) -> None:
    folder = tmp_path / "proc/5"
    folder.mkdir(parents=True)
    (folder / "cmdline").write_text("python\0")
    processes = Processes(tmp_path)
    for started, run in (("100", "first"), ("100", "first"), ("200", "second")):
        (folder / "stat").write_text("5 (a (strange) name) S " + "0 " * 18 + started)
        (folder / "environ").write_text(f"OOMWATCH_RUN={'second' if started == '200' else 'first'}\0")
        assert processes.describe([5])[5].run == run


def test_what_ray_renames_is_called_by_its_new_name(tmp_path: Path) -> None:
    folder = tmp_path / "proc/5"
    folder.mkdir(parents=True)
    (folder / "stat").write_text("5 (ray) S " + "0 " * 18 + "100")
    processes = Processes(tmp_path)
    for title in ("ray::IDLE", "ray::WorkerDict.actor_rollout_generate_sequences"):
        (folder / "cmdline").write_text(title)
        assert processes.describe([5])[5].name == title


def _process(root: Path, pid: int, title: str, environ: str = "", status: str = "") -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (ray) S " + "0 " * 18 + "100")
    (folder / "cmdline").write_text(title)
    (folder / "environ").write_text(environ)
    (folder / "status").write_text(status)


@pytest.mark.parametrize(
    ("status", "inner"),
    [
        ("Name:\tray\nNSpid:\t312345\t77\nThreads:\t9\n", 77),
        ("NSpid:\t312345\t412\t77\n", 77),
        ("NSpid:\t312345\n", None),
        ("NSpid:\n", None),
        ("", None),
    ],
    ids=["a container", "a container in a container", "none", "an odd kernel", "an old kernel"],
)
def test_a_process_is_known_by_its_number_within_its_container(tmp_path: Path, status: str, inner: int | None) -> None:
    _process(tmp_path, 312345, "ray::WorkerDict", status=status)
    assert Processes(tmp_path).describe([312345])[312345].inner_pid == inner


@pytest.mark.parametrize(("given", "rank"), [("RANK=5\0", 5), ("RANK=\0", None), ("RANK=-1\0", None), ("", None)])
def test_a_rank_is_read_from_the_environment(tmp_path: Path, given: str, rank: int | None) -> None:
    _process(tmp_path, 5, "ray::WorkerDict", given)
    assert Processes(tmp_path).describe([5])[5].rank == rank


def test_a_process_table_is_filled_with_what_is_known(tmp_path: Path) -> None:
    _process(tmp_path, 312345, "ray::CriticWorker.update", "RANK=5\0OOMWATCH_RUN=mine\0", "NSpid: 312345 77\n")
    processes = Processes(tmp_path)
    (sample,) = processes.named((wire.GpuSample(gpu="3", processes=(wire.GpuProcess(pid=312345),)),))
    assert sample.processes == (
        wire.GpuProcess(pid=312345, name="ray::CriticWorker.update", run="mine", rank=5, role="critic"),
    )
    assert processes.identities == (
        Identity(pid=312345, inner_pid=77, run="mine", run_by=KnownBy.PERSON, rank=5, role="critic"),
    )
