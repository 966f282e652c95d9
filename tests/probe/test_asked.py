"""What an agent asks of a process with the probe inside: real processes, a stand-in for torch, real files."""

import json
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.probe.guests import CUDA_IN_USE, DEADLINE_SECONDS, FASTER, UNTIL_END_OF_INPUT, Ear, Guest, guest

from oomwatch_agent.probe.asking import Asking, NoAnswerError
from oomwatch_agent.probe.report import Answer, decode
from oomwatch_agent.probe.source import ProbeSource

START = FASTER + "import oomwatch_probe\n" + CUDA_IN_USE
# The program goes on allocating, so that there is a history.
ALLOCATES = """
import threading, time
from torch.cuda import memory
threading.Thread(target=lambda: [(memory.take(5), time.sleep(0.01)) for _ in range(6000)], daemon=True).start()
"""


class Node(Ear):
    """An agent's ear that listens by itself, and the way to ask."""

    def __init__(self, path: Path) -> None:
        self.asking = Asking(interval_seconds=0.05)
        super().__init__(path)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _make(self, path: Path) -> ProbeSource:
        return ProbeSource(str(path), asking=self.asking)

    def _listen(self) -> None:
        while not self._done.wait(0.02):
            self.source.read(slow=False)

    def ask(self, running: Guest, act: str, place: Path, **more: Any) -> Answer:
        """Once the process is known."""
        _until(lambda: self.asking.knows(running.pid))
        place.mkdir(exist_ok=True)
        what = {"id": "a1", "folder": str(place), "seconds": 0.2, "max_entries": 1000, "max_bytes": 2**20, **more}
        return self.asking.ask(running.pid, act, what, DEADLINE_SECONDS)

    def close(self) -> None:
        self.asking.close()
        self._done.set()
        self._thread.join()
        self.source.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    listening = Node(tmp_path / "probe.sock")
    yield listening
    listening.close()


@pytest.fixture
def to(tmp_path: Path) -> dict[str, str]:
    return {"OOMWATCH_PROBE_SOCKET": str(tmp_path / "probe.sock")}


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.01)


def _snapshot(path: Path) -> Any:
    return pickle.loads(path.read_bytes())  # noqa: S301 - our own


# ---------------------------------------------------------------- memory


def test_one_step_of_history_is_recorded_and_written_down_while_the_process_lives(
    node: Node, to: dict[str, str], tmp_path: Path
) -> None:
    told = "sys.stdin.readline(); print(memory.calls, flush=True)\n"
    with guest(START + ALLOCATES + "import sys\n" + told, **to) as running:
        answer = node.ask(running, "memory_snapshot", tmp_path / "files")
        assert running.process.stdin is not None
        running.process.stdin.write("\n")
        running.process.stdin.flush()
        calls = running.says()
    assert (answer.state, answer.files) == ("done", ("memory-at-once.pickle", "memory.pickle"))
    (trace,) = _snapshot(tmp_path / "files/memory.pickle")["device_traces"]
    assert {entry["action"] for entry in trace} == {"alloc"}
    assert trace[0]["frames"][0]["name"] == "update_actor"
    assert _snapshot(tmp_path / "files/memory-at-once.pickle")["device_traces"] == [[]]
    how = "{'max_entries': 1000, 'context': 'alloc', 'stacks': 'python'}"
    assert calls == f"[('all', {how}), (None, {{}})]", "bounded, and switched off again"


def test_a_program_that_records_by_itself_goes_on_recording(node: Node, to: dict[str, str], tmp_path: Path) -> None:
    code = START + ALLOCATES + "memory._record_memory_history(max_entries=7)\n"
    told = "import sys, torch; sys.stdin.readline(); print(torch._C.recording, len(memory.calls), flush=True)\n"
    with guest(code + told, **to) as running:
        answer = node.ask(running, "memory_snapshot", tmp_path / "files")
        assert running.process.stdin is not None
        running.process.stdin.write("\n")
        running.process.stdin.flush()
        assert running.says() == "True 1"
    assert answer.state == "done"
    assert "records by itself" in answer.detail
    assert _snapshot(tmp_path / "files/memory.pickle")["device_traces"] != [[]]


def test_a_process_that_dies_within_the_step_leaves_what_it_held(
    node: Node, to: dict[str, str], tmp_path: Path
) -> None:
    dies = "import os\nwhile not os.path.exists('files/memory-at-once.pickle'): time.sleep(0.01)\nos._exit(9)\n"
    with guest(START + ALLOCATES + f"import os; os.chdir({str(tmp_path)!r})\n" + dies, **to) as running:
        threading.Thread(target=running.process.wait).start()  # as its parent would
        with pytest.raises(NoAnswerError, match="ended meanwhile"):
            node.ask(running, "memory_snapshot", tmp_path / "files", seconds=600)
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["memory-at-once.pickle"]


def test_an_agent_that_stops_ends_the_recording(node: Node, to: dict[str, str], tmp_path: Path) -> None:
    told = """
import torch
until = time.monotonic() + 20
while not torch._C.recording and time.monotonic() < until: time.sleep(0.01)
print("recording", torch._C.recording, flush=True)
while torch._C.recording and time.monotonic() < until: time.sleep(0.01)
print("recording", torch._C.recording, len(memory.calls), flush=True)
"""
    with guest(START + ALLOCATES + told + UNTIL_END_OF_INPUT, **to) as running:
        failed: list[NoAnswerError] = []
        thread = threading.Thread(target=_ask_in_vain, args=(node, running, tmp_path / "files", failed))
        thread.start()
        assert running.says() == "recording True"
        node.asking.close()
        assert running.says() == "recording False 2"
        thread.join()
    assert "the agent was stopped" in str(failed[0])
    assert list(tmp_path.glob("ask-*")) == []


def _ask_in_vain(node: Node, running: Guest, folder: Path, failed: list[NoAnswerError]) -> None:
    try:
        node.ask(running, "memory_snapshot", folder, seconds=600)
    except NoAnswerError as error:
        failed.append(error)


@pytest.mark.parametrize(
    ("trouble", "word"),
    [
        ("memory.refuses = True", "TypeError"),
        ("import torch; del torch._C._cuda_isHistoryEnabled", "AttributeError"),
        ("memory._snapshot = None", "TypeError"),
        ("del torch.cuda.memory", "AttributeError"),
    ],
)
def test_a_torch_of_another_shape_is_told_of_and_goes_on(
    trouble: str, word: str, node: Node, to: dict[str, str], tmp_path: Path
) -> None:
    with guest(START + ALLOCATES + trouble + "\n" + UNTIL_END_OF_INPUT, **to) as running:
        answer = node.ask(running, "memory_snapshot", tmp_path / "files")
        assert answer.state == "failed"
        assert word in answer.detail
        assert running.end() == (0, "", "")


@pytest.mark.parametrize(
    ("more", "word"), [({"max_bytes": 10}, "larger than may be written"), ({"folder": "/nowhere"}, "No such file")]
)
def test_a_snapshot_that_cannot_be_kept_leaves_no_file_and_no_recording(
    more: dict[str, Any], word: str, node: Node, to: dict[str, str], tmp_path: Path
) -> None:
    told = "import sys, torch; sys.stdin.read(); print(torch._C.recording, memory.calls)\n"
    with guest(START + ALLOCATES + told, **to) as running:
        answer = node.ask(running, "memory_snapshot", tmp_path / "files", **more)
        assert (answer.state, word in answer.detail) == ("failed", True), answer
        assert running.end() == (0, "False []\n", "")
    assert list((tmp_path / "files").iterdir()) == []


def test_a_full_disk_ends_the_recording_and_leaves_no_file(node: Node, to: dict[str, str], tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: the write fails in the same place."""
    code = START + ALLOCATES + "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
    told = "import sys, torch; sys.stdin.read(); print(torch._C.recording, len(memory.calls))\n"
    with guest(code + limit + told, **to) as running:
        answer = node.ask(running, "memory_snapshot", tmp_path / "files", seconds=1.0)
        assert (answer.state, answer.files) == ("failed", ("memory-at-once.pickle",))
        assert running.end() == (0, "False 2\n", "")
    assert [path.name for path in (tmp_path / "files").iterdir()] == ["memory-at-once.pickle"]


# ---------------------------------------------------------------- stacks


def test_the_stacks_of_every_thread_are_written_down(node: Node, to: dict[str, str], tmp_path: Path) -> None:
    code = "import threading\ndef stuck_in_a_collective(): threading.Event().wait()\n"
    thread = "threading.Thread(target=stuck_in_a_collective, daemon=True).start()\n"
    with guest(START + code + thread + UNTIL_END_OF_INPUT, **to) as running:
        answer = node.ask(running, "stacks", tmp_path / "files")
        assert running.end() == (0, "", "")
    assert (answer.state, answer.files) == ("done", ("stacks.txt",))
    written = (tmp_path / "files/stacks.txt").read_text()
    assert "in stuck_in_a_collective" in written
    assert written.count("hread 0x") == 3


def test_both_can_be_asked_at_once(node: Node, to: dict[str, str], tmp_path: Path) -> None:
    with guest(START + ALLOCATES + UNTIL_END_OF_INPUT, **to) as running:
        answers: list[Answer] = []
        asks = [
            threading.Thread(target=lambda a=act: answers.append(node.ask(running, a, tmp_path / a)))
            for act in ("memory_snapshot", "stacks")
        ]
        for ask in asks:
            ask.start()
        for ask in asks:
            ask.join()
    assert sorted((answer.act, answer.state) for answer in answers) == [("memory_snapshot", "done"), ("stacks", "done")]


# ---------------------------------------------------------------- who may ask


def _place(tmp_path: Path, running: Guest, node: Node) -> Path:
    _until(lambda: node.asking.knows(running.pid))
    report = node.source._guests[running.pid].report
    return tmp_path / f"ask-{report.pid}-{int(report.started_at * 1000)}"


OTHERS = ["another user's"] if os.geteuid() == 0 else []  # only root can make such a file


@pytest.mark.parametrize(
    "how", ["writable by all", "a link", "a pipe", "no JSON", "no request", "deep", "huge", *OTHERS]
)
def test_what_no_agent_of_this_user_has_written_is_not_done(
    how: str, node: Node, to: dict[str, str], tmp_path: Path
) -> None:
    content = json.dumps({"stacks": {"id": "x", "folder": str(tmp_path)}})
    real = tmp_path / "real"
    real.write_text(
        {"no JSON": "{", "no request": '{"stacks": 7}', "deep": "[" * 4000, "huge": content + " " * 5000}.get(
            how, content
        )
    )
    real.chmod(0o666 if how == "writable by all" else 0o600)
    with guest(START + UNTIL_END_OF_INPUT, **to) as running:
        place = _place(tmp_path, running, node)
        if how == "a link":
            place.symlink_to(real)
        elif how == "a pipe":
            os.mkfifo(place, 0o600)
        else:
            if how == "another user's":
                os.chown(real, 12345, 12345)
            real.rename(place)
        heard = node.source._guests[running.pid].heard_at
        _until(lambda: node.source._guests[running.pid].heard_at > heard + 0.3)
        assert node.source._guests[running.pid].report.acts == ()
        assert not (tmp_path / "stacks.txt").exists()
        assert running.end() == (0, "", "")


def test_what_is_not_asked_any_more_is_not_told_any_more(node: Node, to: dict[str, str], tmp_path: Path) -> None:
    with guest(START + UNTIL_END_OF_INPUT, **to) as running:
        for number in range(3):
            node.ask(running, "stacks", tmp_path / str(number), id=f"a{number}")
        _until(lambda: node.source._guests[running.pid].report.acts == ())
    assert all((tmp_path / f"{number}/stacks.txt").exists() for number in range(3))


def test_what_a_killed_agent_has_asked_is_taken_away_by_the_next(tmp_path: Path) -> None:
    left, other = tmp_path / "ask-1-1795972430123", tmp_path / "ask-for-a-checkpoint"
    left.touch()
    other.touch()
    source = ProbeSource(str(tmp_path / "probe.sock"), asking=Asking())
    source.open()
    source.close()
    assert (left.exists(), other.exists()) == (False, True)


def test_a_process_without_a_probe_or_with_an_older_one_is_said_to_be_so(tmp_path: Path) -> None:
    asking = Asking(taken_seconds=0.05, interval_seconds=0.0)
    with pytest.raises(NoAnswerError, match="no probe is in it"):
        asking.ask(4711, "stacks", {"id": "x"}, 1.0)
    asking.hear(tmp_path, {4711: decode(b'{"v":1,"pid":7,"started_at":1.5,"door":"import"}')})
    with pytest.raises(NoAnswerError, match="older version"):
        asking.ask(4711, "stacks", {"id": "x"}, 30.0)
    assert list(tmp_path.iterdir()) == []
