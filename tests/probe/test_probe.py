"""The probe inside real processes: what it tells, what it leaves alone, and that nobody notices it."""

import ast
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.probe.guests import (
    AGENT,
    CUDA_IN_USE,
    DEADLINE_SECONDS,
    FASTER,
    GIB,
    ROOT,
    UNTIL_END_OF_INPUT,
    UUID,
    Ear,
    environment,
    guest,
)

START = FASTER + "import oomwatch_probe\n"
# Waits until the probe's own thread has sampled so many times.
ROUNDS = """
import time
from oomwatch_probe.sampling import _sampling

def rounds(number, done=[], sample=_sampling.sample):
    def counted():
        try:
            sample()
        finally:
            done.append(None)
    _sampling.sample = counted
    deadline = time.monotonic() + 20
    while len(done) < number:
        assert time.monotonic() < deadline, "the probe's thread does not run"
        time.sleep(0.001)
"""
SAMPLES = "import oomwatch_probe.sampling as sampling\nsample = sampling._sampling.sample\n"


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    listening = Ear(tmp_path / "probe.sock")
    yield listening
    listening.source.close()


@pytest.fixture
def to(tmp_path: Path) -> dict[str, str]:
    """The environment that names the socket of `ear`."""
    return {"OOMWATCH_PROBE_SOCKET": str(tmp_path / "probe.sock")}


def _run(code: str, **environ: str) -> tuple[int, str, str]:
    """A program from beginning to end."""
    with guest(code, **environ) as running:
        return running.end()


# ---------------------------------------------------------------- what it tells


def test_the_agent_hears_what_torch_holds_in_the_process(ear: Ear, to: dict[str, str]) -> None:
    with guest(START + CUDA_IN_USE + UNTIL_END_OF_INPUT, RANK="3", OOMWATCH_RUN="qwen", **to) as running:
        sample = ear.hears(running.pid)
    assert (sample.reserved_bytes, sample.allocated_bytes, sample.active_bytes) == (3 * GIB, 2 * GIB, 0)
    assert (sample.reserved_peak_bytes, sample.allocated_peak_bytes) == (3 * GIB, 2 * GIB)
    assert (sample.alloc_retries_total, sample.ooms_total, sample.inactive_split_bytes) == (4, 0, 0)
    assert (sample.rank, sample.run, sample.gpu) == (3, "qwen", UUID)


def test_a_process_introduces_itself_once(ear: Ear, to: dict[str, str]) -> None:
    where = {"RANK": "5", "WORLD_SIZE": "16", "CUDA_VISIBLE_DEVICES": "5", **to}
    with guest(START + CUDA_IN_USE + UNTIL_END_OF_INPUT, **where) as running:
        ear.hears(running.pid)
        heard = ear.source._guests[running.pid].heard_at
        ear.until(lambda ear: ear.source._guests[running.pid].heard_at > heard)
        probe = ear.probe_of(running.pid)
    assert (probe.door, probe.torch_version, probe.rank, probe.world_size) == ("import", "2.13.0+standin", 5, 16)
    assert probe.gpus == (UUID,)


def test_only_devices_that_were_used_are_told_of_and_then_for_good(ear: Ear, to: dict[str, str]) -> None:
    code = f"""
{START}
{CUDA_IN_USE}
import sys
fill, devices = torch.cuda.fill, torch.cuda.devices
devices[:] = [fill(reserved=0), fill(reserved=7), fill(reserved=0)]
print("second", flush=True)
sys.stdin.readline()
devices[1] = fill(reserved=0)
{UNTIL_END_OF_INPUT}
"""
    with guest(code, CUDA_VISIBLE_DEVICES="4,5,6", **to) as running:
        assert running.says() == "second"
        ear.until(lambda ear: [sample.reserved_bytes for sample in ear.torch] == [7])
        assert [sample.gpu for sample in ear.torch] == ["5"], "torch without UUIDs: what the process was given"
        assert running.process.stdin is not None
        running.process.stdin.write("\n")
        running.process.stdin.flush()
        ear.until(lambda ear: [sample.reserved_bytes for sample in ear.torch] == [0])


@pytest.mark.parametrize(
    ("title", "role"),
    [
        ("ray::WorkerDict.actor_rollout_update_actor", "actor"),
        ("ray::WorkerDict.critic_compute_values", "critic"),
        ("ray::ActorRolloutRefWorker", "actor"),
        ("VLLM::EngineCore_DP0", "rollout"),
        ("ray::vLLMHttpServer.generate", "rollout"),
        ("sglang::scheduler_TP0", "rollout"),
        ("ray::RewardLoopWorker.compute_score", "reward"),
        ("ray::TaskRunner.run", "driver"),
        ("ray::WorkerDict", None),
        ("ray::Something", None),
    ],
)
def test_a_process_title_tells_its_role(title: str, role: str | None) -> None:
    code = f"from oomwatch_probe.identity import role_of; print(role_of({title!r}))"
    assert _run(code) == (0, f"{role}\n", "")


def test_a_role_is_read_from_the_title_and_only_becomes_better(ear: Ear, to: dict[str, str]) -> None:
    """A colocated worker computes for the critic too; what it is for is the actor."""
    code = f"""
{START}
import oomwatch_probe.identity as identity
identity.REFRESH_SECONDS = 0
titles = iter(["ray::WorkerDict.critic_compute_values", "ray::WorkerDict.actor_rollout_update_actor"])
identity.title = lambda: next(titles, "ray::WorkerDict.critic_update_critic")
{CUDA_IN_USE}
{UNTIL_END_OF_INPUT}
"""
    with guest(code, **to) as running:
        ear.until(lambda ear: any(sample.pid == running.pid and sample.role == "actor" for sample in ear.torch))
        before = ear.source._guests[running.pid].heard_at
        ear.until(lambda ear: ear.source._guests[running.pid].heard_at > before + 0.2)
        assert ear.torch[0].role == "actor"


def test_the_arguments_of_a_program_never_leave_it() -> None:
    code = "from oomwatch_probe.identity import title; print(title())"
    done = subprocess.run(
        [sys.executable, "-c", code, "critic.token=secret"],
        env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "-c\n"


# ---------------------------------------------------------------- what it leaves alone


def test_nothing_of_torch_is_touched_before_the_program_has_initialised_cuda(ear: Ear, to: dict[str, str]) -> None:
    code = f"""
{START}
import torch, torch.cuda
from oomwatch_probe import sampling
{SAMPLES}
for _ in range(100):
    sample()
{ROUNDS}
rounds(10)
print(torch.cuda.touched, sampling._sampling._errors)
"""
    assert _run(code, **to) == (0, "[] 0\n", "")
    ear.listen()
    assert ear.torch == ()


def test_torch_is_never_imported_by_it(to: dict[str, str]) -> None:
    code = f"{START}{SAMPLES}sample(); import sys; print('torch' in sys.modules)"
    assert _run(code, **to) == (0, "False\n", "")


def test_a_half_imported_torch_is_left_alone() -> None:
    code = f"""
{SAMPLES}
import sys, types, importlib.machinery
for name in ("torch", "torch.cuda"):
    module = sys.modules[name] = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
sys.modules["torch.cuda"].__spec__._initializing = True
sample()
print("fine")
"""
    assert _run(code) == (0, "fine\n", "")


def test_no_statistic_is_reset_and_nothing_is_waited_for(ear: Ear, to: dict[str, str]) -> None:
    code = START + CUDA_IN_USE + "import sys; sys.stdin.readline(); print(torch.cuda.touched, flush=True)\n"
    with guest(code, **to) as running:
        ear.hears(running.pid)
        assert running.process.stdin is not None
        running.process.stdin.write("\n")
        running.process.stdin.flush()
        assert running.says() == "[]"


def test_a_process_that_never_imports_torch_gets_no_thread() -> None:
    code = f"{START}import os; print(len(os.listdir('/proc/self/task')))"
    assert _run(code) == (0, "1\n", "")


def test_the_thread_starts_when_torch_is_imported_and_is_in_nobodys_list() -> None:
    code = f"{START}import torch, os, threading; print(len(os.listdir('/proc/self/task')), threading.active_count())"
    assert _run(code) == (0, "2 1\n", "")


@pytest.mark.parametrize("off", ["0", "off", " No "])
def test_it_can_be_switched_off(off: str) -> None:
    code = "import oomwatch_probe, torch, sys, os; print(len(os.listdir('/proc/self/task')), sys.meta_path[0])"
    status, out, err = _run(code, OOMWATCH_PROBE=off)
    assert (status, err) == (0, "")
    assert out.startswith("1 ")
    assert "TorchWatch" not in out


def test_a_program_that_ends_prints_nothing_of_ours(ear: Ear, to: dict[str, str]) -> None:
    """At the pace of a hundred samples a second, so that some end in the middle of one."""
    code = START.replace("0.02", "0.0001") + CUDA_IN_USE + ROUNDS + "rounds(20)\n"
    for _ in range(10):
        assert _run(code, **to) == (0, "", "")
    ear.listen()


@pytest.mark.parametrize("ending", ["raise SystemExit(7)", "import os; os._exit(7)", "import sys; sys.exit(7)"])
def test_however_a_program_ends_the_status_is_its_own(ending: str, ear: Ear, to: dict[str, str]) -> None:
    assert _run(START + CUDA_IN_USE + ending, **to) == (7, "", "")
    ear.listen()


def test_errors_within_are_counted_and_told_and_nothing_else(ear: Ear, to: dict[str, str]) -> None:
    code = START + CUDA_IN_USE + "torch.cuda.broken = True\n" + UNTIL_END_OF_INPUT
    with guest(code, **to) as running:
        ear.until(lambda ear: running.pid in ear.source._guests)
        ear.until(lambda ear: ear.source._guests[running.pid].report.errors > 2)
        assert ear.torch == ()
        assert running.end() == (0, "", "")


def test_a_torch_of_another_shape_does_no_harm(ear: Ear, to: dict[str, str]) -> None:
    code = f"""
{START}
{CUDA_IN_USE}
del torch.cuda.device_count
{ROUNDS}
rounds(2)
print(oomwatch_probe.sampling._sampling._errors > 0)
"""
    assert _run(code, **to) == (0, "True\n", "")
    ear.listen()


# ---------------------------------------------------------------- doors


def test_two_doors_lead_to_one_thread_and_the_first_that_names_itself_is_told(ear: Ear, to: dict[str, str]) -> None:
    doors = "import oomwatch_probe.verl_plugin\noomwatch_probe.vllm_plugin()\noomwatch_probe.vllm_plugin()\n"
    code = START + CUDA_IN_USE + doors + "import os; print(len(os.listdir('/proc/self/task')), flush=True)\n"
    with guest(code + UNTIL_END_OF_INPUT, **to) as running:
        assert running.says() == "2"
        ear.hears(running.pid)
        assert ear.probe_of(running.pid).door == "verl.plugins"


def test_many_threads_at_the_door_start_one() -> None:
    code = """
import threading, torch
import oomwatch_probe.sampling as sampling
started = []
sampling.start_new_thread = lambda run, arguments: started.append(run)
sampling._sampling._begin()
threads = [threading.Thread(target=sampling.start) for _ in range(50)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(started))
"""
    assert _run(code) == (0, "1\n", "")


def test_the_door_of_verls_environment_variable_is_known_by_it(ear: Ear, to: dict[str, str]) -> None:
    code = f"import importlib; importlib.import_module('oomwatch_probe')\n{START}{CUDA_IN_USE}{UNTIL_END_OF_INPUT}"
    with guest(code, VERL_USE_EXTERNAL_MODULES="my_module, oomwatch_probe", **to) as running:
        ear.hears(running.pid)
        assert ear.probe_of(running.pid).door == "VERL_USE_EXTERNAL_MODULES"


def test_the_installed_package_has_both_entry_points() -> None:
    """verl loads what its group names and calls nothing; vLLM calls what it has loaded, without arguments."""
    code = """
import importlib.metadata as metadata
for group in ("verl.plugins", "vllm.general_plugins"):
    for point in metadata.entry_points(group=group):
        if point.name == "oomwatch":
            loaded = point.load()
            print(group, loaded.__name__, callable(loaded) and loaded())
"""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points."verl.plugins"]\noomwatch = "oomwatch_probe.verl_plugin"' in text
    assert '[project.entry-points."vllm.general_plugins"]\noomwatch = "oomwatch_probe:vllm_plugin"' in text
    status, out, err = _run(code)
    assert (status, err) == (0, "")
    for line in out.splitlines():  # what is installed here: none in a checkout that was installed before there were any
        assert line in (
            "verl.plugins oomwatch_probe.verl_plugin False",
            "vllm.general_plugins vllm_plugin None",
        )


# ---------------------------------------------------------------- forks

# From 3.12 on Python warns of a fork beside threads. It does so of torch without the probe, too: numpy has threads.
FORKS = {"PYTHONWARNINGS": "ignore:This process:DeprecationWarning"}


def test_a_forked_child_has_its_own_thread_and_its_own_identity(ear: Ear, to: dict[str, str]) -> None:
    code = f"""
{START}
import os, sys, torch
child = os.fork()
if not child:
    {CUDA_IN_USE.strip().replace(chr(10), chr(10) + "    ")}
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
os.waitpid(child, 0)
"""
    with guest(code, **to, **FORKS) as running:
        child = int(running.says())
        sample = ear.hears(child)
        assert sample.reserved_bytes == 3 * GIB
        assert all(found.origin.pid != running.pid for found in ear.found), "the parent uses no CUDA"
        assert running.end() == (0, "", "")


def test_the_child_of_a_process_that_uses_cuda_is_silent(ear: Ear, to: dict[str, str]) -> None:
    code = f"""
{START}
{CUDA_IN_USE}
{ROUNDS}
import os, sys
child = os.fork()
if not child:
    rounds(5)
    print(torch.cuda.touched, flush=True)
    sys.stdin.read()
    os._exit(0)
os.waitpid(child, 0)
"""
    with guest(code, **to, **FORKS) as running:
        ear.hears(running.pid)
        assert running.says() == "[]"
        ear.listen()
        assert {sample.pid for sample in ear.torch} == {running.pid}


def test_forks_in_quick_succession_all_end_well(ear: Ear, to: dict[str, str]) -> None:
    code = f"""
{START.replace("0.02", "0.0001")}
{CUDA_IN_USE}
import os
for _ in range(100):
    child = os.fork()
    if not child:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    assert _run(code, **to, **FORKS) == (0, "", "")
    ear.listen()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing_are_told_of(method: str, ear: Ear, to: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    body = CUDA_IN_USE.strip().replace("\n", "\n    ")
    program.write_text(
        f"import multiprocessing\n{START}\ndef work(conn):\n    {body}\n    conn.recv()\n\n"
        "if __name__ == '__main__':\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    here, there = context.Pipe()\n"
        "    worker = context.Process(target=work, args=(there,), name='EngineCore_DP0')\n"
        "    worker.start()\n"
        "    print(worker.pid, flush=True)\n"
        "    input()\n"
        "    here.send(None)\n"
        "    worker.join()\n"
        "    print(worker.exitcode)\n"
    )
    code = f"import sys, subprocess; sys.exit(subprocess.call([sys.executable, {str(program)!r}]))"
    with guest(code, **to, **FORKS) as running:
        worker = int(running.says())
        assert ear.hears(worker).role == "rollout"
        out, err = running.process.communicate("\n", timeout=DEADLINE_SECONDS)
        assert (out, err) == ("0\n", "")


# ---------------------------------------------------------------- the way to the agent


def test_without_an_agent_nothing_is_read_and_nothing_happens(tmp_path: Path) -> None:
    code = f"""
{START}
{CUDA_IN_USE}
torch.cuda.memory_stats_as_nested_dict = lambda device: torch.cuda.touched.append("read")
{SAMPLES}
sample()
print(torch.cuda.touched)
"""
    assert _run(code, OOMWATCH_PROBE_SOCKET=str(tmp_path / "nobody.sock")) == (0, "[]\n", "")


def test_an_agent_that_comes_later_and_one_that_is_restarted_are_found(tmp_path: Path) -> None:
    path = tmp_path / "probe.sock"
    with guest(START + CUDA_IN_USE + UNTIL_END_OF_INPUT, OOMWATCH_PROBE_SOCKET=str(path)) as running:
        for _ in range(3):
            ear = Ear(path)
            try:
                assert ear.hears(running.pid).reserved_bytes == 3 * GIB
                assert ear.probe_of(running.pid).gpus == (UUID,)
            finally:
                ear.source.close()
        assert running.end() == (0, "", "")


def test_a_full_queue_never_makes_the_program_wait(tmp_path: Path) -> None:
    """A socket that nobody empties: every call comes back at once, and so many more than fit into any queue."""
    path = tmp_path / "probe.sock"
    code = f"""
{CUDA_IN_USE}
{SAMPLES}
import time
longest = 0.0
for _ in range(2000):
    before = time.perf_counter()
    sample()
    longest = max(longest, time.perf_counter() - before)
print(longest)
"""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(path))
        status, out, err = _run(code, OOMWATCH_PROBE_SOCKET=str(path))
    assert (status, err) == (0, "")
    assert float(out) < 1.0, "an agent's queue that is full would hold a blocking sender for ever"


def test_a_path_that_is_no_socket_or_too_long_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    long = tmp_path / ("x" * 120)
    long.touch()
    for path in (file, long, tmp_path):
        code = START + CUDA_IN_USE + SAMPLES + "sample(); sample(); print('fine')"
        assert _run(code, OOMWATCH_PROBE_SOCKET=str(path)) == (0, "fine\n", "")
    assert file.read_text() == "kept"


def test_no_file_is_left_open_between_samples(ear: Ear, to: dict[str, str]) -> None:
    code = f"""
import os
before = len(os.listdir("/proc/self/fd"))
{CUDA_IN_USE}
{SAMPLES}
for _ in range(20):
    sample()
print(len(os.listdir("/proc/self/fd")) - before)
"""
    # What only the garbage collector closes is told on standard error.
    assert _run(code, PYTHONWARNINGS="always::ResourceWarning", **to) == (0, "0\n", "")
    ear.listen()


def test_a_folder_that_another_user_could_have_made_is_not_sent_to(tmp_path: Path) -> None:
    code = """
import sys, oomwatch_probe.sender as sender
print(sender._belongs_to(sys.argv[1], int(sys.argv[2])))
"""
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    path = folder / "probe.sock"
    mine = folder.stat().st_uid

    def trusts(uid: int) -> bool:
        done = subprocess.run(
            [sys.executable, "-c", code, str(path), str(uid)],
            env=environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout == "True\n"

    assert not trusts(mine), "there is no socket yet"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.bind(str(path))
        assert trusts(mine)
        assert not trusts(mine + 1), "somebody else's folder"
        folder.chmod(0o777)
        assert not trusts(mine), "anybody can put a socket into it"


def test_probe_and_agent_look_in_the_same_places() -> None:
    code = """
import oomwatch_probe.sender as sender, oomwatch_agent.probe.receiver as agent, oomwatch_agent.probe.report as report
print(sender.ROOT_SOCKET == str(agent.ROOT_SOCKET), sender.USER_SOCKET == agent.USER_SOCKET,
      sender.MAX_MESSAGE_BYTES == report.MAX_DATAGRAM_BYTES)
"""
    assert _run(code, PYTHONPATH=f"{AGENT}:{ROOT / 'backend'}:{_site_packages()}") == (0, "True True True\n", "")


def _site_packages() -> str:
    return ":".join(entry for entry in sys.path if entry.endswith("site-packages"))


def test_the_syntax_is_that_of_old_trainers_images() -> None:
    files = sorted((AGENT / "oomwatch_probe").rglob("*.py"))
    assert len(files) >= 6
    for file in files:
        ast.parse(file.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_this_process_has_no_probe() -> None:
    """The agent and its tests never import the probe: to import it is to start it."""
    assert "oomwatch_probe" not in sys.modules
