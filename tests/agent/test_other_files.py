"""Files beside the console: packed logs, Hydra's configuration, what a process' environment names."""

import gzip
import os
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.archive import Archive
from oomwatch_agent.hydra import config_beside, config_in, folders_of
from oomwatch_agent.logs.scan import every
from oomwatch_agent.logsource import LogSource
from oomwatch_agent.ray_session import RaySource
from oomwatch_agent.run_files import RunFiles

STEP = "step:{} - timing_s/gen:30.5 - timing_s/step:95.5\n"
YAML = """
actor_rollout_ref:
  model: {path: /models/secret}
  rollout: {n: 8, gpu_memory_utilization: 0.6, name: "${oc.env:ENGINE}"}
data: {train_batch_size: 64, train_files: /data/x.parquet}
"""
VALUES: dict[str, wire.ConfigValue] = {
    "actor_rollout_ref.rollout.n": 8,
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
    "data.train_batch_size": 64,
}


def test_a_packed_log_is_read_once_as_backlog(tmp_path: Path) -> None:
    (tmp_path / "train.log.1.gz").write_bytes(gzip.compress(STEP.format(1).encode() * 2 + STEP.format(2).encode()))
    (tmp_path / "train.log").write_text(STEP.format(3), encoding="utf-8")
    source = LogSource(str(tmp_path / "train.log*"), "start", None)
    source.open()
    found = source.read(slow=True).found
    told = [(one.body.step, one.backlog) for one in found if isinstance(one.body, wire.Step)]
    assert sorted(told) == [(1, True), (1, True), (2, True), (3, False)]
    assert source.read(slow=True).found == ()
    source.close()


def test_a_packed_log_is_left_alone_where_only_news_are_wanted(tmp_path: Path) -> None:
    (tmp_path / "old.log.gz").write_bytes(gzip.compress(STEP.format(1).encode()))
    source = LogSource(str(tmp_path / "*.gz"), "now", None)
    source.open()
    assert source.read(slow=True).found == ()
    source.close()


def test_a_packed_log_is_read_within_a_budget(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"0123456789\n" * 50))
    archive = Archive(path)
    rows = [row.text for _ in range(20) for part in archive.poll(100) for row in every(part.chunk)]
    assert rows == ["0123456789"] * 50
    assert archive.resting


@pytest.mark.parametrize(
    "content", [b"no gzip at all", gzip.compress(b"x" * 10000)[:-20], b""], ids=("other", "cut off", "empty")
)
def test_a_damaged_archive_says_so_and_stops_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(content)
    archive = Archive(path)
    archive.poll(1 << 20)
    assert archive.resting
    assert (archive.problem is None) == (content == b"")
    assert archive.problem is None or "is it a whole gzip file?" in archive.problem


def hydra(folder: Path, name: str = "config.yaml", text: str = YAML) -> Path:
    (folder / ".hydra").mkdir(parents=True, exist_ok=True)
    (folder / ".hydra" / name).write_text(text, encoding="utf-8")
    return folder / ".hydra"


def test_hydras_configuration_gives_the_allowed_keys(tmp_path: Path) -> None:
    assert config_in(hydra(tmp_path)) == wire.Config(values=VALUES, framework="verl")


def test_overrides_serve_where_the_whole_is_missing(tmp_path: Path) -> None:
    text = "- actor_rollout_ref.rollout.n=8\n- +actor_rollout_ref.rollout.gpu_memory_utilization=0.6\n- x\n- a=[\n"
    folder = hydra(tmp_path, "overrides.yaml", text + "- data.train_batch_size=64\n- data.train_files=/x\n")
    assert config_in(folder) == wire.Config(values=VALUES, framework="verl")


@pytest.mark.parametrize("text", ["[", "!!python/object/apply:os.getpid []", "- 1", "5", "x: " * 3, "\x00"])
def test_a_file_that_is_no_configuration_gives_none(tmp_path: Path, text: str) -> None:
    assert config_in(hydra(tmp_path, text=text)) is None


def test_the_newest_of_hydras_dated_folders_counts(tmp_path: Path) -> None:
    dated = [tmp_path / "outputs" / "2026-05-01" / time / ".hydra" for time in ("10-00-00", "11-00-00")]
    for folder in dated:
        folder.mkdir(parents=True)
    assert list(folders_of(tmp_path)) == [tmp_path / ".hydra", dated[1]]


def test_a_configuration_beside_a_followed_log_is_told_once(tmp_path: Path) -> None:
    hydra(tmp_path)
    log = tmp_path / "main_ppo.log"
    log.write_text(STEP.format(1), encoding="utf-8")
    assert config_beside(log) == wire.Config(values=VALUES, framework="verl")
    source = LogSource(str(log), "start", "mine")
    source.open()
    found = source.read(slow=True).found
    assert [(type(one.body), one.run) for one in found] == [(wire.Step, "mine"), (wire.Config, "mine")]
    assert source.read(slow=True).found == ()
    source.close()


def process(root: Path, pid: int, working: Path) -> Path:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "cwd").symlink_to(working)
    (folder / "root").symlink_to("/")
    return folder


def test_a_process_tells_where_its_files_are(tmp_path: Path) -> None:
    working, metrics = tmp_path / "work", tmp_path / "metrics.jsonl"
    hydra(working)
    metrics.touch()
    process(tmp_path, 41, working)
    files = RunFiles(tmp_path, {41: {"VERL_FILE_LOGGER_PATH": str(metrics)}, 42: {}}.get)
    assert files.metrics_of(41) == metrics
    assert files.config_of(41) == wire.Config(values=VALUES, framework="verl")
    assert files.metrics_of(42) is None
    assert files.config_of(43) is None


def test_metrics_that_a_drivers_environment_names_are_followed(tmp_path: Path) -> None:
    logs = tmp_path / "session_1" / "logs"
    logs.mkdir(parents=True)
    (tmp_path / "work").mkdir()
    process(tmp_path, 41, tmp_path / "work")
    config = "             'experiment_name': 'grpo',\n             'project_name': 'demo',\n"
    worker = logs / f"worker-{'a' * 16}-01000000-41.out"
    head = ":job_id:01000000\n:actor_name:TaskRunner\n 'trainer': {'balance_batch': True,\n"
    worker.write_text(head + config, encoding="utf-8")
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"step": 3, "data": {"timing_s/gen": 30.5}}\n', encoding="utf-8")
    files = RunFiles(tmp_path, {41: {"VERL_FILE_LOGGER_PATH": str(metrics)}}.get)
    source = RaySource(str(logs), "start", None, run_files=files)
    source.open()
    found = [one for _ in range(3) for one in source.read(slow=True).found]
    source.close()
    assert [(one.body.step, one.run, one.origin.source) for one in found if isinstance(one.body, wire.Step)] == [
        (3, "demo/grpo", "metrics.jsonl")
    ]
    assert os.listdir(logs) == [worker.name]  # noqa: PTH208
