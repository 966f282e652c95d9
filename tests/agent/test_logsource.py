"""Training logs that a person named: what is news, what is backlog, and what the log source says of itself."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.follower import BUDGET_BYTES, HELPING_BYTES, LogFrom, state_of
from oomwatch_agent.logsource import LogSource
from oomwatch_agent.purse import GIFT_SECONDS, RATIO, Purse
from oomwatch_agent.source import Found
from oomwatch_agent.tail import Tail

NOW = 1_800_000_000.0
STEP = "step:{} - timing_s/gen:30.5 - timing_s/step:95.5\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.\n"
CONFIG = " 'trainer': {'experiment_name': 'grpo',\n             'project_name': 'demo',\n"

Make = Callable[..., LogSource]


@pytest.fixture
def make() -> Iterator[Make]:
    """Opens a source over a pattern; every one is closed at the end."""
    made: list[LogSource] = []

    def open_source(
        pattern: Path, log_from: LogFrom = "auto", run: str | None = None, purse: Purse | None = None
    ) -> LogSource:
        source = LogSource(str(pattern), log_from, run, clock=lambda: NOW, purse=purse)
        made.append(source)
        source.open()
        return source

    yield open_source
    for source in made:
        source.close()


class Times:
    """Of a machine on which each helping costs 5 ms: of CPU is asked at the beginning, and then before each helping."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0
        self.asked = 0

    def now(self) -> float:
        self.asked = 0
        return self.seconds

    def cpu_seconds(self) -> float:
        self.asked += 1
        if self.asked > 2:
            self.cpu += 0.005
        return self.cpu


def quiet(count: int) -> str:
    """So many bytes of what is no event."""
    return ("e" * 999 + "\n") * (count // 1000)


def huge(steps: int) -> str:
    """Each step followed by two helpings of what is no event."""
    return "".join(STEP.format(step) + quiet(2 * HELPING_BYTES) for step in range(steps))


def write(path: Path, text: str, *, age_seconds: float = 3600.0) -> Path:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
    os.utime(path, (NOW - age_seconds, NOW - age_seconds))
    return path


def told(found: tuple[Found, ...]) -> list[tuple[str, bool]]:
    """Kind and backlog of every finding; steps by their number."""
    return [
        (f"step {one.body.step}" if isinstance(one.body, wire.Step) else type(one.body).__name__, one.backlog)
        for one in found
    ]


def source_facts(facts: wire.NodeFacts | None) -> wire.SourceFacts:
    assert facts is not None
    return facts.sources[0]


def test_a_log_that_does_not_exist_is_waited_for_and_then_all_news(tmp_path: Path) -> None:
    path = tmp_path / "driver.log"
    source = LogSource(str(path), "auto", None, clock=lambda: NOW)
    assert source_facts(source.open()) == wire.SourceFacts(
        name="log driver.log", state="waiting", detail="no such file yet; it is followed once it appears"
    )
    write(path, STEP.format(1) + OOM)
    reading = source.read(slow=False)
    assert told(reading.found) == [("step 1", False), ("DeviceOom", False)]
    assert source_facts(reading.facts) == wire.SourceFacts(name="log driver.log", state="ok")
    source.close()


def test_what_was_in_the_log_is_backlog_and_what_comes_is_news(tmp_path: Path, make: Make) -> None:
    path = write(tmp_path / "driver.log", STEP.format(1) + OOM)
    source = make(path)
    assert told(source.read(slow=False).found) == [("step 1", True), ("DeviceOom", True)]
    write(path, STEP.format(2))
    assert told(source.read(slow=False).found) == [("step 2", False)]


def test_an_error_at_the_end_of_a_log_of_minutes_ago_is_news(tmp_path: Path, make: Make) -> None:
    path = write(tmp_path / "driver.log", STEP.format(1) + OOM, age_seconds=299)
    assert told(make(path).read(slow=False).found) == [("step 1", True), ("DeviceOom", False)]


def test_an_error_that_training_went_on_after_is_none(tmp_path: Path, make: Make) -> None:
    path = write(tmp_path / "driver.log", OOM + STEP.format(1), age_seconds=10)
    assert told(make(path).read(slow=False).found) == [("DeviceOom", True), ("step 1", True)]


def test_from_the_start_everything_is_news(tmp_path: Path, make: Make) -> None:
    path = write(tmp_path / "driver.log", OOM + STEP.format(1))
    assert told(make(path, "start").read(slow=False).found) == [("DeviceOom", False), ("step 1", False)]


def test_from_now_on_the_past_is_passed_over_but_for_the_runs_name(tmp_path: Path, make: Make) -> None:
    path = write(tmp_path / "driver.log", CONFIG + OOM + STEP.format(1))
    source = make(path, "now")
    assert source.read(slow=False).found == ()
    write(path, STEP.format(2))
    (one,) = source.read(slow=False).found
    assert (told((one,)), one.run) == ([("step 2", False)], "demo/grpo")


@pytest.mark.parametrize(
    ("given", "config", "run"),
    [(None, "", "driver"), (None, CONFIG, "demo/grpo"), ("mine", CONFIG, "mine")],
)
def test_the_run_is_what_was_said_or_what_the_log_says_or_the_files_name(
    tmp_path: Path, make: Make, given: str | None, config: str, run: str
) -> None:
    path = write(tmp_path / "driver.log", config + STEP.format(1))
    assert [one.run for one in make(path, "auto", given).read(slow=False).found] == [run]


def test_the_origin_names_the_file_without_its_folder(tmp_path: Path, make: Make) -> None:
    path = write(tmp_path / "driver.log", "(TaskRunner pid=7) " + STEP.format(1))
    (one,) = make(path).read(slow=False).found
    assert one.origin == wire.Origin(source="driver.log", line=1, pid=7, actor="TaskRunner")


def test_a_glob_takes_up_files_that_come_later(tmp_path: Path, make: Make) -> None:
    write(tmp_path / "a.log", STEP.format(1))
    source = make(tmp_path / "*.log")
    assert told(source.read(slow=False).found) == [("step 1", True)]
    write(tmp_path / "b.log", STEP.format(2))
    assert told(source.read(slow=False).found) == []
    reading = source.read(slow=True)
    assert told(reading.found) == [("step 2", False)]
    assert (source.name, reading.found[0].run) == ("log *.log", "b")


def test_a_file_whose_name_looks_like_a_glob_is_that_file(tmp_path: Path, make: Make) -> None:
    path = write(tmp_path / "run[1].log", STEP.format(1))
    assert told(make(path).read(slow=False).found) == [("step 1", True)]


def test_a_huge_backlog_is_read_in_parts_and_tells_how_far(tmp_path: Path, make: Make) -> None:
    line = STEP.format(1)
    path = write(tmp_path / "driver.log", line + quiet(2 * BUDGET_BYTES))
    source = make(path)
    reading = source.read(slow=False)
    assert told(reading.found) == [("step 1", True)]
    assert source_facts(reading.facts).detail == "reading backlog: 50 %"
    source.read(slow=False)
    assert source_facts(source.read(slow=False).facts or source.open()).detail is None


def test_a_huge_backlog_is_read_no_faster_than_the_cpu_budget_allows_and_loses_nothing(
    tmp_path: Path, make: Make
) -> None:
    steps = 150
    path = write(tmp_path / "driver.log", huge(steps))
    times = Times()
    source = make(path, purse=Purse(0.01, cpu=times.cpu_seconds, clock=times.now))
    found, details, seconds = list[Found](), set[str | None](), 0
    while len(found) < steps:
        reading = source.read(slow=False)
        found += reading.found
        details.add(source_facts(reading.facts).detail if reading.facts else None)
        times.seconds += 1.0
        seconds += 1
        assert seconds < 1000
    assert told(tuple(found)) == [(f"step {step}", True) for step in range(steps)]
    assert seconds > 40
    assert (times.cpu - GIFT_SECONDS * RATIO * 0.01) / seconds < 0.01, "beside what is given at the start"
    held_back = re.compile(r"reading backlog: \d+ %, \d MB to go, as fast as the CPU budget allows \(--cpu-budget\)")
    assert any(held_back.fullmatch(detail or "") for detail in details), details


@pytest.mark.parametrize(
    ("size_bytes", "to_go"), [(300_000, "1 MB"), (98_700_000, "99 MB"), (12_345_000_000, "12,000 MB")]
)
def test_how_much_is_to_go_changes_seldom_for_each_change_is_sent_and_logged(
    size_bytes: int, to_go: str, tmp_path: Path
) -> None:
    path = tmp_path / "driver.log"
    with path.open("wb") as file:
        file.truncate(size_bytes)
    tail = Tail(path, "backlog")
    tail.poll(1000)
    assert state_of([tail], held_back=True) == (
        "ok",
        f"reading backlog: 0 %, {to_go} to go, as fast as the CPU budget allows (--cpu-budget)",
    )
    tail.close()


def test_new_lines_do_not_wait_for_a_huge_backlog_of_another_log(tmp_path: Path, make: Make) -> None:
    write(tmp_path / "a.log", STEP.format(1) + quiet(40 * HELPING_BYTES))
    new = write(tmp_path / "b.log", STEP.format(2))
    times = Times()
    source = make(tmp_path / "*.log", purse=Purse(0.0001, cpu=times.cpu_seconds, clock=times.now))
    source.read(slow=False)
    write(new, OOM)
    assert told(source.read(slow=False).found) == [("DeviceOom", False)]


@pytest.mark.parametrize("dense", [1, 30])  # the helpings of one reading are 20: of 30 logs not all have one
def test_new_lines_do_not_wait_for_many_new_lines_of_other_logs(dense: int, tmp_path: Path, make: Make) -> None:
    times = Times()
    source = make(tmp_path / "*.log", purse=Purse(0.01, cpu=times.cpu_seconds, clock=times.now))
    many = quiet(60 * HELPING_BYTES // dense)
    found = list[Found]()
    for reading in range(3):
        for number in range(dense):
            write(tmp_path / f"a{number}.log", many)
        write(tmp_path / "b.log", STEP.format(reading))
        found += source.read(slow=True).found
        times.seconds += 1.0
    found += source.read(slow=False).found
    assert told(tuple(found)) == [(f"step {reading}", False) for reading in range(3)]


def test_a_huge_backlog_is_read_to_its_end_beside_another_source_however_busy_the_agent_is(
    tmp_path: Path, make: Make
) -> None:
    steps = 4
    path = write(tmp_path / "huge.log", huge(steps))
    times = Times()
    purse = Purse(0.0001, cpu=times.cpu_seconds, clock=times.now)
    source, other = make(path, purse=purse), make(write(tmp_path / "other.log", ""), purse=purse)
    found = list[Found]()
    for _ in range(11 * 2 * (steps + 1)):
        found += source.read(slow=False).found
        other.read(slow=False)
        times.seconds += 1.0
        times.cpu += 0.1
    assert told(tuple(found)) == [(f"step {step}", True) for step in range(steps)]


def test_a_folder_in_place_of_a_log_is_reported(tmp_path: Path, make: Make) -> None:
    reading = make(tmp_path).read(slow=False)
    assert source_facts(reading.facts).state == "failed"
    assert (source_facts(reading.facts).detail or "").startswith(
        f"cannot follow {tmp_path.name}: it is a folder; name "
    )


@pytest.mark.parametrize("name", ["driver.log", "driver.log.gz"])
def test_a_pipe_in_place_of_a_log_is_reported_and_keeps_nobody_waiting(name: str, tmp_path: Path, make: Make) -> None:
    os.mkfifo(tmp_path / name)
    facts = source_facts(make(tmp_path / name).read(slow=False).facts)
    assert (facts.state, facts.detail) == (
        "failed",
        f"cannot follow {name}: it is a pipe; read it as standard input: --log - < pipe",
    )


def test_standard_input_is_followed_to_its_end() -> None:
    reading_end, writing_end = os.pipe()
    source = LogSource("-", "auto", None, stdin_fd=reading_end)
    try:
        assert source_facts(source.open()) == wire.SourceFacts(name="log stdin", state="ok")
        os.write(writing_end, STEP.format(1).encode())
        (one,) = source.read(slow=False).found
        assert (told((one,)), one.run, one.origin.source) == ([("step 1", False)], "stdin", "stdin")
        os.close(writing_end)
        facts = source_facts(source.read(slow=False).facts)
        assert (facts.state, facts.detail) == ("missing", "standard input has ended")
    finally:
        os.close(reading_end)
        source.close()
