"""Run, rank and role of the processes of a node, brought together from whoever knows a part."""

import pytest

from oomwatch import wire
from oomwatch_agent.source import Found, Identity, KnownBy
from oomwatch_agent.who.census import HEARD_OF_SECONDS, Census

GIB = 1024**3
SLURM = Identity(pid=4711, run="grpo-12", run_by=KnownBy.BATCH_JOB)
RAY = Identity(pid=4711, run="session_1 job 01000000", run_by=KnownBy.RAY_JOB)
LOG = Identity(pid=4711, run="demo/qwen", run_by=KnownBy.LOG)
PERSON = Identity(pid=4711, run="mine", run_by=KnownBy.PERSON)


def _table(*pids: int, gpu: str = "3") -> wire.GpuSample:
    return wire.GpuSample(gpu=gpu, processes=tuple(wire.GpuProcess(pid=pid, used_bytes=GIB) for pid in pids))


def _found(
    pid: int | None = None, run: str | None = None, *, by: KnownBy = KnownBy.LOG, backlog: bool = False
) -> Found:
    origin = wire.Origin(source="driver.log", pid=pid)
    return Found(body=wire.Step(step=3), origin=origin, run=run, run_by=by, backlog=backlog)


def _runs(census: Census, sample: wire.GpuSample) -> list[str | None]:
    return [process.run for process in census.named_gpu(sample).processes or ()]


def test_the_run_that_an_event_names_is_given_to_the_process_on_the_gpu() -> None:
    census = Census()
    census.hear_line(_found(4711, "qwen"), 0.0)
    assert _runs(census, _table(4711, 4712)) == ["qwen", None]


def test_a_run_is_known_for_as_long_as_its_process_lives() -> None:
    census = Census()
    census.hear_line(_found(4711, "qwen"), 0.0)
    for now in range(0, 7200, 10):
        census.see([_table(4711)], now=float(now))
    assert _runs(census, _table(4711)) == ["qwen"]


def test_a_process_that_was_only_heard_of_is_forgotten_after_an_hour() -> None:
    census = Census()
    census.hear_line(_found(4711, "qwen"), 0.0)
    census.see([_table(1)], HEARD_OF_SECONDS)
    assert census.identity(4711).run == "qwen"
    census.see([_table(1)], HEARD_OF_SECONDS + 1)
    assert census.identity(4711).run is None


@pytest.mark.parametrize("said", [(SLURM, RAY, LOG, PERSON), (PERSON, LOG, RAY, SLURM), (LOG, PERSON, SLURM, RAY)])
def test_of_several_names_of_a_run_the_best_known_counts_in_whatever_order(said: tuple[Identity, ...]) -> None:
    census = Census()
    census.hear(said, 0.0)
    assert _runs(census, _table(4711)) == ["mine"]
    assert census.run_of(_found(4711, "demo/qwen")) == "mine"


def test_a_later_name_of_the_same_worth_replaces_the_earlier() -> None:
    census = Census()
    census.hear([LOG, Identity(pid=4711, run="demo/next", run_by=KnownBy.LOG)], 0.0)
    assert _runs(census, _table(4711)) == ["demo/next"]


def test_what_goes_by_the_name_of_the_job_is_called_as_its_run_is() -> None:
    """An engine in the same Slurm job, a line that came before the configuration."""
    census = Census()
    census.hear([SLURM], 0.0)
    assert census.named("grpo-12") == "grpo-12"
    census.hear([RAY], 1.0)
    census.hear([LOG], 2.0)
    assert census.named("grpo-12") == "demo/qwen"
    assert census.run_of(_found(None, "session_1 job 01000000", by=KnownBy.RAY_JOB)) == "demo/qwen"
    assert census.named(None) is None


def test_an_event_without_a_run_is_of_its_process_run() -> None:
    census = Census()
    census.hear([SLURM], 0.0)
    assert census.run_of(_found(4711)) == "grpo-12"
    assert census.run_of(_found(4711, backlog=True)) is None


def test_a_log_that_names_no_run_is_of_its_process_run() -> None:
    census = Census()
    census.hear([SLURM], 0.0)
    assert census.run_of(_found(4711, "driver", by=KnownBy.FILE)) == "grpo-12"
    assert census.run_of(_found(4712, "driver", by=KnownBy.FILE)) == "driver"


def test_a_log_that_names_neither_run_nor_process_is_of_the_only_run_there_is() -> None:
    census = Census()
    census.see([_table(4711, 4712, 9)], 0.0)
    assert census.run_of(_found(None, "driver", by=KnownBy.FILE)) == "driver"
    census.hear([SLURM, Identity(pid=4712, run="grpo-12")], 0.0)
    assert census.run_of(_found(None, "driver", by=KnownBy.FILE)) == "grpo-12"
    census.hear([Identity(pid=9, run="another")], 0.0)
    assert census.run_of(_found(None, "driver", by=KnownBy.FILE)) == "driver"


def test_the_run_that_a_person_gave_the_agent_wins() -> None:
    census = Census("told")
    census.hear([PERSON], 0.0)
    assert _runs(census, _table(4711, 4712)) == ["told", None]
    assert census.run_of(_found(4711, "demo/qwen")) == "told"


def test_a_process_table_shows_rank_and_role() -> None:
    census = Census()
    census.hear([Identity(pid=4711, rank=0, role="actor"), Identity(pid=4712, role="rollout")], 0.0)
    processes = census.named_gpu(_table(4711, 4712)).processes or ()
    assert [(process.rank, process.role) for process in processes] == [(0, "actor"), (None, "rollout")]


def test_what_was_once_the_actor_stays_it_while_it_computes_for_others() -> None:
    census = Census()
    for role in ("ref", "actor", "critic", None):
        census.hear([Identity(pid=4711, role=role)], 0.0)
    assert census.identity(4711).role == "actor"


def test_what_a_containers_log_says_of_a_process_is_known_of_it_on_the_host() -> None:
    census = Census()
    census.see([_table(312345)], 0.0)
    census.hear([Identity(pid=312345, inner_pid=77)], 0.0)
    census.hear([Identity(pid=77, run="demo/qwen", run_by=KnownBy.LOG, rank=5, role="actor")], 0.0)
    (process,) = census.named_gpu(_table(312345)).processes or ()
    assert (process.pid, process.run, process.rank, process.role) == (312345, "demo/qwen", 5, "actor")


def test_two_containers_with_the_same_numbers_do_not_share_what_is_said() -> None:
    census = Census()
    census.see([_table(312345), _table(400, gpu="4")], 0.0)
    census.hear([Identity(pid=312345, inner_pid=77), Identity(pid=400, inner_pid=77)], 0.0)
    census.hear([Identity(pid=77, run="demo/qwen", run_by=KnownBy.LOG)], 0.0)
    assert _runs(census, _table(312345, 400)) == [None, None]


def test_the_largest_processes_of_the_host_are_called_by_the_same_names() -> None:
    census = Census()
    census.hear([LOG, SLURM], 0.0)
    told = wire.HostSample(
        processes=(
            wire.HostProcess(pid=4711, name="TaskRunner", rss_bytes=1, run="grpo-12"),
            wire.HostProcess(pid=5, name="helper", rss_bytes=1, run="grpo-12"),
            wire.HostProcess(pid=6, name="sshd", rss_bytes=1),
        )
    )
    runs = [process.run for process in census.named_host(told).processes or ()]
    assert runs == ["demo/qwen", "demo/qwen", None]
