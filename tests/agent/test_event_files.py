"""TensorBoard's files: read where the package is there, and a sentence where it is not."""

import sys
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.event_files import EventFile
from oomwatch_agent.logsource import LogSource


def test_without_the_package_the_source_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # as if it were not installed
    monkeypatch.setitem(sys.modules, "tensorboard.backend.event_processing", None)
    path = tmp_path / "events.out.tfevents.1800000000.node.1.0"
    path.touch()
    source = LogSource(str(path), "start", None)
    source.open()
    facts = source.read(slow=True).facts
    assert facts is not None
    assert facts.sources[0].state == "failed"
    assert 'pip install "oomwatch[tensorboard]"' in (facts.sources[0].detail or "")
    source.close()


def test_steps_are_told_when_the_next_one_begins(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="an optional extra of the agent")
    from tensorboard.compat.proto import event_pb2, summary_pb2  # noqa: PLC0415
    from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: PLC0415

    writer = EventFileWriter(str(tmp_path))

    def add(number: int, **metrics: float) -> None:
        for tag, value in metrics.items():
            summary = summary_pb2.Summary.Value(tag=f"timing_s/{tag}", simple_value=value)
            writer.add_event(event_pb2.Event(step=number, summary=summary_pb2.Summary(value=[summary])))
        writer.flush()

    (path,) = tmp_path.glob("events.out.tfevents.*")
    file = EventFile(path)
    add(1, gen=31.5, step=95.25)
    assert list(file.poll()) == []
    add(2, gen=32.5, step=96.25)
    first = wire.Step(step=1, step_seconds=95.25, rollout_seconds=31.5, phase_seconds={"rollout": 31.5})
    assert list(file.poll()) == [first]
    assert [step.step for step in file.rest()] == [2]
    writer.close()


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="an optional extra of the agent")
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(b"no event file, by far" * 10)
    file = EventFile(path)
    assert list(file.poll()) == []
    assert file.problem is None or file.problem.startswith("cannot read events.out.tfevents.1: ")
