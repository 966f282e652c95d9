"""Ray's own log folder, as real Ray left it and as it may be found."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.follower import LogFrom
from oomwatch_agent.ray_session import RaySource
from oomwatch_agent.source import Found, Identity, KnownBy, SourceMissingError

REAL = Path(__file__).resolve().parents[1] / "fixtures" / "verl-0.9.1-leak" / "ray-session-logs"
ID = "1ce6c9ef858f4b2253bf185fb45dc8aed2980ef4f014427835b23af3"
MEMORY = "After resume kv_cache, memory allocated (GB): 2.01, memory reserved (GB): 4.01\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.\n"
CONFIG = " 'trainer': {'experiment_name': 'grpo',\n             'project_name': 'demo',\n"

NOWHERE = Path("/nonexistent")

Make = Callable[..., RaySource]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes sources of a machine with the given raylets; every one is closed at the end."""
    made: list[RaySource] = []

    def source(
        mode: Path | str,
        log_from: LogFrom = "auto",
        run: str | None = None,
        raylets: tuple[Path, ...] = (),
        most_files: int = 2000,
    ) -> RaySource:
        made.append(
            RaySource(
                str(mode),
                log_from,
                run,
                environ={},
                sessions=lambda: raylets,
                usual_place=NOWHERE,
                most_files=most_files,
            )
        )
        return made[-1]

    yield source
    for one in made:
        one.close()


def session(folder: Path, name: str = "session_2026-11-29_1") -> Path:
    """An empty session; gives its folder of logs."""
    logs = folder / name / "logs"
    logs.mkdir(parents=True)
    return logs


def worker(
    logs: Path, pid: int, text: str, *, job: str = "ffffffff", head: str = ":job_id:01000000\n", ext: str = "err"
) -> Path:
    path = logs / f"worker-{ID}-{job}-{pid}.{ext}"
    with path.open("a", encoding="utf-8") as file:
        file.write(head + text)
    return path


def read(source: RaySource) -> tuple[Found, ...]:
    return source.read(slow=True).found


def test_a_real_sessions_events_are_all_found(make: Make) -> None:
    source = make(REAL)
    facts = source.open()
    assert facts.sources == (wire.SourceFacts(name="ray", state="ok", detail="6 files of ray-session-logs"),)
    found = read(source)
    counts = Counter((type(one.body).__name__, one.origin.pid, one.origin.actor) for one in found)
    assert counts == {
        ("TorchMemory", 25520, "WorkerDict"): 61,
        ("Reshard", 25520, "WorkerDict"): 18,
        ("Step", 25521, "TaskRunnerV1"): 8,
        ("DeviceOom", 25520, "WorkerDict"): 1,  # printed by the TaskRunner of its worker
        ("Config", 25521, "TaskRunnerV1"): 1,
        ("RunNamed", None, None): 1,
    }
    assert {one.run for one in found} == {"demo/qwen7b_grpo"}


@pytest.mark.parametrize("given", [".", "logs", ".."], ids=["the session", "its logs", "the folder of sessions"])
def test_every_folder_that_means_the_session_will_do(tmp_path: Path, make: Make, given: str) -> None:
    logs = session(tmp_path)
    worker(logs, 7, MEMORY)
    (tmp_path / "session_latest").symlink_to(logs.parent)
    source = make(logs.parent / given)
    source.open()
    assert len(read(source)) == 2


def test_a_copy_of_the_files_in_any_folder_will_do(tmp_path: Path, make: Make) -> None:
    shutil.copytree(REAL, tmp_path / "copy")
    source = make(tmp_path / "copy")
    source.open()
    assert len(read(source)) == 90


def test_a_folder_without_ray_logs_says_what_is_wanted(tmp_path: Path, make: Make) -> None:
    with pytest.raises(SourceMissingError, match="--ray wants a session's folder"):
        make(tmp_path).open()


def test_the_session_of_a_running_raylet_is_found(tmp_path: Path, make: Make) -> None:
    logs = session(tmp_path)
    worker(logs, 7, MEMORY)
    source = make("auto", raylets=(logs.parent,))
    source.open()
    assert {(one.run, one.origin.pid) for one in read(source)} == {("session_2026-11-29_1 job 01000000", 7)}


def test_the_temporary_folder_of_the_environment_is_looked_at(tmp_path: Path) -> None:
    logs = session(tmp_path / "ray")
    worker(logs, 7, MEMORY)
    (tmp_path / "ray" / "session_latest").symlink_to(logs.parent)
    source = RaySource("auto", "auto", None, environ={"RAY_TMPDIR": str(tmp_path)}, sessions=lambda: ())
    source.open()
    assert len([one for one in read(source) if one.origin.pid == 7]) == 2
    source.close()


def test_a_session_that_ended_long_ago_is_not_taken_for_this_one(tmp_path: Path) -> None:
    logs = session(tmp_path)
    old = worker(logs, 7, MEMORY)
    os.utime(old, (1_000_000, 1_000_000))
    (tmp_path / "session_latest").symlink_to(logs.parent)
    source = RaySource("auto", "auto", None, environ={}, sessions=lambda: (), usual_place=tmp_path)
    with pytest.raises(SourceMissingError):
        source.open()


def test_a_worker_that_starts_later_is_all_news(tmp_path: Path, make: Make) -> None:
    logs = session(tmp_path)
    worker(logs, 7, MEMORY)
    source = make(logs)
    source.open()
    assert {one.backlog for one in read(source)} == {True}
    worker(logs, 8, MEMORY)
    assert {(one.origin.pid, one.backlog) for one in read(source)} == {(8, False)}


def test_a_session_that_began_after_the_agent_is_all_news(tmp_path: Path) -> None:
    source = RaySource("auto", "auto", None, environ={}, sessions=lambda: (), usual_place=tmp_path)
    with pytest.raises(SourceMissingError, match="no Ray session on this node"):
        source.open()
    logs = session(tmp_path)
    worker(logs, 7, MEMORY)
    (tmp_path / "session_latest").symlink_to(logs.parent)
    source.open()
    assert {one.backlog for one in read(source)} == {False}
    source.close()


def test_the_next_session_is_picked_up(tmp_path: Path, make: Make) -> None:
    first, latest = session(tmp_path), tmp_path / "session_latest"
    worker(first, 7, MEMORY)
    latest.symlink_to(first.parent)
    source = make(tmp_path)
    source.open()
    read(source)
    second = session(tmp_path, "session_2026-11-29_2")
    worker(second, 9, MEMORY)
    latest.unlink()
    latest.symlink_to(second.parent)
    assert {(one.run, one.origin.pid, one.backlog) for one in read(source)} == {
        ("session_2026-11-29_2 job 01000000", 9, False)
    }


def test_the_name_in_the_task_runners_file_holds_for_its_job_alone(tmp_path: Path, make: Make) -> None:
    logs = session(tmp_path)
    worker(logs, 1, MEMORY)  # ffffffff in the name, 01000000 in its first line
    worker(logs, 2, MEMORY, job="02000000", head="")
    worker(logs, 3, CONFIG, job="01000000", head=":job_id:01000000\n:actor_name:TaskRunner\n", ext="out")
    source = make(logs)
    source.open()
    runs = {one.origin.pid: one.run for one in read(source)}
    assert runs == {None: "demo/grpo", 1: "demo/grpo", 2: "session_2026-11-29_1 job 02000000"}


def test_the_name_of_a_job_is_told_to_those_who_know_only_the_job(tmp_path: Path, make: Make) -> None:
    """Lines that came before the TaskRunner's configuration, here and on nodes that never see it."""
    logs = session(tmp_path)
    worker(logs, 1, MEMORY)
    source = make(logs)
    source.open()
    provisional = "session_2026-11-29_1 job 01000000"
    assert {(one.run, one.run_by) for one in read(source)} == {(provisional, KnownBy.RAY_JOB)}
    worker(logs, 3, CONFIG, ext="out")
    (named, *_) = read(source)
    assert (named.body, named.run) == (wire.RunNamed(provisional=provisional), "demo/grpo")
    worker(logs, 1, MEMORY, head="")
    assert {(type(one.body), one.run) for one in read(source)} == {
        (wire.TorchMemory, "demo/grpo"),
        (wire.Reshard, "demo/grpo"),
    }


def test_a_worker_is_known_by_its_files_before_it_says_anything(tmp_path: Path, make: Make) -> None:
    logs = session(tmp_path)
    worker(logs, 1, "", head=":job_id:01000000\n:actor_name:CriticWorker\n")
    source = make(logs)
    source.open()
    stand_in = "session_2026-11-29_1 job 01000000"
    critic = Identity(pid=1, run=stand_in, run_by=KnownBy.RAY_JOB, role="critic")
    assert source.read(slow=False).identities == (critic,)
    assert source.read(slow=False).identities == ()
    worker(logs, 3, CONFIG, ext="out")
    assert source.read(slow=False).identities == (
        Identity(pid=1, run="demo/grpo", run_by=KnownBy.LOG, role="critic"),
        Identity(pid=3, run="demo/grpo", run_by=KnownBy.LOG),
    )


def test_what_a_daemon_says_is_of_the_only_job_or_of_none(tmp_path: Path, make: Make) -> None:
    killed = (
        "[2026-05-03 07:23:59,445 E 395 395] (raylet) node_manager.cc:3049: {} Workers (tasks / actors) killed due to "
        "memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: e5d9)\n"
    )
    logs = session(tmp_path)
    worker(logs, 3, CONFIG, ext="out")
    raylet = logs / "raylet.err"
    raylet.write_text(killed.format(2))
    source = make(logs)
    source.open()
    assert {one.run for one in read(source) if isinstance(one.body, wire.HostOom)} == {"demo/grpo"}
    worker(logs, 4, MEMORY, head=":job_id:02000000\n")
    read(source)
    with raylet.open("a") as file:
        file.write(killed.format(3))
    assert {one.run for one in read(source) if isinstance(one.body, wire.HostOom)} == {None}


def test_the_run_that_a_person_named_wins(tmp_path: Path, make: Make) -> None:
    logs = session(tmp_path)
    worker(logs, 1, CONFIG + MEMORY)
    source = make(logs, "auto", "mine")
    source.open()
    assert {one.run for one in read(source)} == {"mine"}


def test_a_workers_error_takes_its_phase_from_the_other_files(tmp_path: Path, make: Make) -> None:
    logs = session(tmp_path)
    worker(logs, 1, MEMORY)
    source = make(logs)
    source.open()
    read(source)
    worker(logs, 2, OOM)
    (one,) = read(source)
    assert isinstance(one.body, wire.DeviceOom)
    assert (one.origin.pid, one.body.phase) == (2, "rollout")


def test_the_raylets_own_log_tells_of_killed_workers(tmp_path: Path, make: Make) -> None:
    logs = session(tmp_path)
    (logs / "raylet.err").write_text(
        "[2026-05-03 07:23:59,445 E 395 395] (raylet) node_manager.cc:3049: 2 Workers (tasks / actors) killed due to "
        "memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: e5d9)\n"
    )
    source = make(logs, "start")
    source.open()
    assert [one.body for one in read(source)] == [wire.HostOom(reporter="ray", kills=2)]


def test_files_of_workers_long_done_make_room_for_new_ones(tmp_path: Path, make: Make) -> None:
    logs = session(tmp_path)
    for pid in (1, 2):
        worker(logs, pid, MEMORY)
    source = make(logs, most_files=2)
    source.open()
    for _ in range(70):
        source.read(slow=False)
    worker(logs, 3, MEMORY)
    assert {one.origin.pid for one in read(source)} == {3}
    assert read(source) == ()
