"""What an agent does before a process dies: only what it permits, once, and in a time that has an end."""

import os
import queue
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.acts.cabinet import SETS_KEPT, Cabinet, folder_for_process
from oomwatch_agent.acts.desk import DEEDS, PAUSE_SECONDS, Desk
from oomwatch_agent.acts.permit import Permit
from oomwatch_agent.acts.watched import Watched
from oomwatch_agent.probe.asking import Asking

DEADLINE_SECONDS = 30.0
RUN = "demo/qwen"


def request(alert: str = "a1", *, gpu: str | None = "3", acts: tuple[str, ...] = ("hook",)) -> wire.ActRequest:
    labels = {"node": "n1", "run": RUN, **({"gpu": gpu} if gpu else {})}
    said = wire.Alert(
        id=alert, alert="memory_forecast", severity="critical", state="firing", labels=labels, started_at=1.0, texts={}
    )
    return wire.ActRequest(id=alert, alert=said, acts=acts, gpu=gpu)


class Node:
    """A desk with what it tells, and a clock that a test sets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1000.0
        self.told: queue.SimpleQueue[wire.Event] = queue.SimpleQueue()
        self.watched = Watched()
        self.desk = self.permit()

    def permit(self, *acts: str, hook: Path | None = None, hook_seconds: float = 20.0) -> Desk:
        permit = Permit(acts=acts, folder=self.folder / "acts", hook=hook, hook_seconds=hook_seconds)
        self.desk = Desk(permit, self.watched, Asking(), self.told.put, clock=lambda: self.now)
        return self.desk

    def done(self) -> wire.ActDone:
        """The next that it tells."""
        event = self.told.get(timeout=DEADLINE_SECONDS)
        assert isinstance(event.body, wire.ActDone)
        assert event.run == RUN
        return event.body

    def script(self, text: str) -> Path:
        path = self.folder / "hook.py"
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
        return path

    def hook(self, text: str, *, seconds: float = 20.0) -> wire.ActDone:
        """What comes of a hook."""
        self.permit("hook", hook=self.script(text), hook_seconds=seconds).take(request())
        return self.done()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.desk.close()


# ---------------------------------------------------------------- what is permitted


def test_every_act_of_the_protocol_is_known_to_the_agent() -> None:
    assert set(DEEDS) == set(wire.ACTS)


def test_an_agent_does_nothing_that_it_was_not_told_to_permit(node: Node) -> None:
    node.desk.take(request(acts=wire.ACTS))
    told = [node.done() for _ in wire.ACTS]
    assert [(one.act, one.ok) for one in told] == [(act, False) for act in wire.ACTS]
    assert told[2].detail == "not allowed on this node; start its agent with --allow-acts hook"
    assert not (node.folder / "acts").exists()


def test_an_act_of_a_later_version_is_refused_in_words(node: Node) -> None:
    node.permit("hook").take(request(acts=("reboot",)))
    assert "does not know it" in (node.done().detail or "")


def test_the_same_alert_is_served_once(node: Node) -> None:
    for _ in range(3):
        node.desk.take(request("a1"))
    node.desk.take(request("a2"))
    assert [node.done().id, node.done().id] == ["a1", "a2"]
    assert node.told.empty()


def test_a_gpu_is_left_in_peace_for_ten_minutes_and_others_are_not(node: Node) -> None:
    node.permit("hook", hook=node.script("print('saved')"))
    node.desk.take(request("a1"))
    assert node.done().ok
    node.now += PAUSE_SECONDS - 1
    node.desk.take(request("a2"))
    assert node.done().detail == "not done: acts were done on GPU 3 less than 10 minutes ago"
    node.desk.take(request("a3", gpu="4"))
    assert node.done().ok
    node.now += 1
    node.desk.take(request("a4"))
    assert node.done().ok


def test_what_another_machine_sends_makes_no_lines_of_its_own_in_the_log(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    node.desk.take(request("a1\nroot logged in", acts=("x\ny",)))
    node.done()
    assert len(caplog.messages) == 2, "asked and refused: the node's record of it"
    assert not any("\n" in message for message in caplog.messages)


# ---------------------------------------------------------------- hook


def test_a_hook_gets_the_alert_as_json_on_its_standard_input_and_no_argument(node: Node) -> None:
    told = node.hook("import sys; print(sys.argv[1:]); print(sys.stdin.read())")
    assert (told.ok, (told.detail or "")[:19]) == (True, "ended with status 0")
    assert told.path is not None
    arguments, alert = Path(told.path).read_text().splitlines()[:2]
    assert arguments == "[]"
    assert alert.encode() == wire.encode(request().alert)
    files = Path(told.path).parent.iterdir()
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in files} == {"alert.json": 0o600, "hook.txt": 0o600}


def test_the_settings_of_the_agent_are_kept_from_its_hook(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OOMWATCH_TOKEN", "secret")
    monkeypatch.setenv("CHECKPOINTS", "/ckpt")
    told = node.hook("import os; print(sorted(n for n in os.environ if n in ('OOMWATCH_TOKEN', 'CHECKPOINTS')))")
    assert Path(told.path or "").read_text() == "['CHECKPOINTS']\n"


def test_the_status_of_a_hook_that_fails_is_told_and_what_it_said_is_kept(node: Node) -> None:
    told = node.hook("import sys; print('no such trainer', file=sys.stderr); sys.exit(3)")
    assert (told.ok, (told.detail or "").startswith("ended with status 3")) == (False, True)
    assert Path(told.path or "").read_text() == "no such trainer\n"


def test_a_hook_that_hangs_is_killed_when_its_time_is_over(node: Node) -> None:
    told = node.hook("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)", seconds=0.5)
    assert (told.ok, told.detail) == (False, "killed after 0.5 s, with all that it had started")
    assert 0.5 <= (told.seconds or 0) < DEADLINE_SECONDS


@pytest.mark.parametrize("hangs", [True, False])
def test_what_a_hook_has_forked_goes_with_it(hangs: bool, node: Node) -> None:
    """The child holds the hook's output open, so that who waits for its end waits for ever."""
    code = """
import os, sys, time
child = os.fork()
if not child:
    time.sleep(600)
print(child, flush=True)
"""
    told = node.hook(code + ("time.sleep(600)" if hangs else ""), seconds=1.0 if hangs else 20.0)
    assert told.ok is not hangs
    child = int(Path(told.path or "").read_text())
    _until_gone(child)


def _until_gone(pid: int) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < deadline, "it lives on"
        time.sleep(0.01)


def test_a_hook_that_floods_is_read_and_what_it_says_is_cut(node: Node) -> None:
    told = node.hook("import sys\nfor _ in range(4000): sys.stdout.write('x' * 4096)")
    assert told.ok
    assert (told.detail or "").endswith("output cut after 1 MiB")
    assert Path(told.path or "").stat().st_size == 2**20


def test_a_hook_that_reads_nothing_and_closes_its_output_is_waited_for(node: Node) -> None:
    told = node.hook("import os, time\nos.close(0); os.close(1); os.close(2)\ntime.sleep(0.3)\nos._exit(4)")
    assert (told.detail or "").startswith("ended with status 4")
    assert (told.seconds or 0) >= 0.3


def test_a_hook_that_is_gone_is_said_to_be_so(node: Node) -> None:
    node.permit("hook", hook=node.folder / "gone").take(request())
    assert "cannot be started: No such file" in (node.done().detail or "")


def test_an_agent_that_stops_ends_its_hook(node: Node) -> None:
    node.permit("hook", hook=node.script("import time; print('here', flush=True); time.sleep(600)"), hook_seconds=600)
    node.desk.take(request())
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not list(node.folder.glob("acts/*/hook.txt")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    node.desk.close(within_seconds=DEADLINE_SECONDS)
    assert node.done().detail == "killed, since the agent was stopped"


# ---------------------------------------------------------------- stacks


@pytest.fixture
def program() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as running:
        yield running.pid
        running.kill()


def _on_gpu(node: Node, *pids: int) -> None:
    processes = tuple(wire.GpuProcess(pid=pid, used_bytes=1, run=RUN) for pid in pids)
    node.watched.see(wire.Sample(seq=0, at=0.0, gpus=(wire.GpuSample(gpu="3", processes=processes),)))


def _py_spy(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program of that name, first on the PATH."""
    path = folder / "bin" / "py-spy"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\nimport sys, time\n{text}")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")


def test_stacks_are_taken_by_py_spy_of_every_process_on_the_gpu(
    node: Node, program: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _py_spy(node.folder, "print('Thread 1', sys.argv[1:])", monkeypatch)
    _on_gpu(node, program, os.getpid())
    node.permit("stacks").take(request(acts=("stacks",)))
    told = node.done()
    assert (told.ok, told.detail) == (True, f"process {program}: by py-spy; process {os.getpid()}: by py-spy")
    (folder,) = (node.folder / "acts").iterdir()
    assert told.path == str(folder)
    assert (folder / f"stacks-{program}.txt").read_text() == f"Thread 1 ['dump', '--pid', '{program}']\n"


def test_a_py_spy_that_may_not_look_is_told_of_in_its_own_words(
    node: Node, program: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _py_spy(
        node.folder, "print('Permission Denied: Try running again as root', file=sys.stderr); sys.exit(1)", monkeypatch
    )
    _on_gpu(node, program)
    node.permit("stacks").take(request(acts=("stacks",)))
    told = node.done()
    assert not told.ok
    assert told.detail == (
        f"process {program}: py-spy: Permission Denied: Try running again as root; no probe is in it"
    )


def test_without_any_process_there_is_nothing_to_take(node: Node) -> None:
    node.permit("stacks", "memory_snapshot").take(request(acts=("stacks", "memory_snapshot")))
    told = {one.act: one.detail or "" for one in (node.done(), node.done())}
    assert told["stacks"] == "no process is known there"
    assert told["memory_snapshot"].startswith("no process there has the probe inside")


# ---------------------------------------------------------------- which processes


def _gpu(label: str, **used_bytes_by_pid: int) -> wire.GpuSample:
    found = (wire.GpuProcess(pid=int(pid[1:]), used_bytes=used) for pid, used in used_bytes_by_pid.items())
    return wire.GpuSample(gpu=label, processes=tuple(found))


def test_processes_are_those_on_the_gpu_by_driver_and_probe_the_largest_first() -> None:
    watched = Watched()
    watched.see(wire.Sample(seq=0, at=0.0, gpus=(_gpu("3", p1=5, p2=9), _gpu("4", p3=99))))
    # The driver's table is not read every second; probes are.
    torch = (wire.TorchSample(pid=7, gpu="3", reserved_bytes=50, run=RUN), wire.TorchSample(pid=1, gpu="3"))
    watched.see(wire.Sample(seq=0, at=1.0, gpus=(wire.GpuSample(gpu="3"),), torch=torch))
    assert watched.processes("3", None) == [7, 2, 1]
    assert watched.processes("5", None) == []


def test_where_no_gpu_is_named_it_is_the_processes_of_the_run() -> None:
    watched = Watched()
    host = wire.HostSample(
        processes=(
            wire.HostProcess(pid=1, name="ray::TaskRunner", rss_bytes=900, run=RUN),
            wire.HostProcess(pid=2, name="sshd", rss_bytes=5),
            wire.HostProcess(pid=3, name="ray::TaskRunner", rss_bytes=7, run="other"),
        )
    )
    watched.see(wire.Sample(seq=0, at=0.0, host=host))
    assert watched.processes(None, RUN) == [1]
    assert watched.processes(None, None) == [1, 3], "every run's; what belongs to none is none of ours"


# ---------------------------------------------------------------- where the files lie


def _alert(name: str) -> wire.Alert:
    return wire.Alert(id=name, alert="x", severity="critical", state="firing", labels={}, started_at=0.0, texts={})


def test_the_latest_sets_are_kept_and_nothing_of_anybody_else(tmp_path: Path) -> None:
    folder = tmp_path / "acts"
    folder.mkdir()
    (folder / "notes").mkdir()
    for number in range(30):
        (folder / f"20260101T0000{number:02}Z-x-old").mkdir()
    made = Cabinet(folder).open_set(_alert("new"))
    kept = sorted(path.name for path in folder.iterdir())
    assert kept[0] == "20260101T000011Z-x-old"
    assert kept[-2:] == [made.name, "notes"]
    assert len(kept) == SETS_KEPT + 1


def test_sets_that_are_too_large_together_go(tmp_path: Path) -> None:
    for name, size in (("20260101T000001Z-x-a", 10), ("20260101T000002Z-x-b", 60), ("20260101T000003Z-x-c", 60)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "memory.pickle").write_bytes(b"x" * size)
    made = Cabinet(tmp_path, bytes_kept=100).open_set(_alert("new"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["20260101T000003Z-x-c", made.name]


def test_a_name_from_the_server_leads_nowhere_else(tmp_path: Path) -> None:
    made = Cabinet(tmp_path / "acts").open_set(_alert("../../etc/cron.d/x"))
    assert made.parent == tmp_path / "acts"
    assert made.name.endswith("-x-______etc_cron_d_x")
    assert stat.S_IMODE(made.stat().st_mode) == 0o711


@pytest.mark.parametrize("uid", [os.getuid(), *([12345] if os.geteuid() == 0 else [])])
def test_a_process_of_another_user_gets_a_folder_of_its_own(uid: int, tmp_path: Path) -> None:
    """It can write there and see nothing else; others can see nothing of it."""
    with subprocess.Popen(["sleep", "600"], user=uid) as running:
        made = folder_for_process(Cabinet(tmp_path / "acts").open_set(_alert("new")), "stacks", running.pid)
        running.kill()
    assert (made.stat().st_uid, stat.S_IMODE(made.stat().st_mode)) == (uid, 0o700)


def test_a_file_takes_a_part_of_the_free_disk_at_most(tmp_path: Path) -> None:
    room = Cabinet(tmp_path).bytes_for_a_file()
    assert 0 < room <= min(256 * 2**20, shutil.disk_usage(tmp_path).free)


def test_a_folder_that_cannot_be_made_is_told_of(node: Node) -> None:
    (node.folder / "acts").write_text("a file")
    node.permit("stacks", "hook", hook=node.script("")).take(request(acts=("stacks", "hook")))
    for _ in range(2):
        told = node.done()
        assert not told.ok
        assert (told.detail or "").startswith("no file can be kept: ")


def test_acts_do_not_wait_for_each_other(node: Node) -> None:
    """A hook that hangs, and stacks that come meanwhile."""
    node.permit("stacks", "hook", hook=node.script("import time; time.sleep(600)"), hook_seconds=600)
    node.desk.take(request(acts=("hook", "stacks")))
    assert node.done().act == "stacks"
    node.desk.close(within_seconds=DEADLINE_SECONDS)
    assert node.done().act == "hook"
