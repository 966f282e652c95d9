"""Which sources an agent has, and which of two ways to read GPUs is taken."""

import functools
from collections.abc import Sequence

import pytest

from oomwatch import wire
from oomwatch_agent.assemble import FirstThatWorks, sources
from oomwatch_agent.settings import load
from oomwatch_agent.source import Reading, SourceMissingError

FACTS = wire.NodeFacts(gpus=(wire.GpuFacts(gpu="0", uuid="GPU-0", name="H100", total_bytes=1),))


class FakeSource:
    """Opens, or is missing."""

    def __init__(self, name: str, *, missing: str | None = None, reading: Reading | None = None) -> None:
        self.name = name
        self.missing = missing
        self.reading = reading or Reading(gpus=(wire.GpuSample(gpu="0"),))
        self.closed = 0

    def open(self) -> wire.NodeFacts:
        if self.missing is not None:
            raise SourceMissingError(self.missing)
        return FACTS

    def read(self, *, slow: bool) -> Reading:  # noqa: ARG002 - the seam's shape
        return self.reading

    def close(self) -> None:
        self.closed += 1


def _first(candidates: Sequence[FakeSource]) -> FirstThatWorks:
    return FirstThatWorks([functools.partial(_itself, candidate) for candidate in candidates])


def _itself(source: FakeSource) -> FakeSource:
    return source


def _names(*argv: str) -> list[str]:
    return [source.name.split(" ")[0] for source in sources(load(argv, {}).settings)]


def test_an_agent_reads_gpus_and_host_and_engines_and_the_logs_of_ray() -> None:
    assert _names() == ["nvml", "host", "engine", "probe", "ray"]


def test_logs_that_are_named_are_followed_after_rays_own() -> None:
    assert _names("--log", "a.log", "--log", "b.log") == ["nvml", "host", "engine", "probe", "ray", "log", "log"]


def test_ray_can_be_left_out() -> None:
    assert _names("--ray", "off") == ["nvml", "host", "engine", "probe"]


def test_engines_metrics_can_be_left_out() -> None:
    assert _names("--engine-metrics", "off") == ["nvml", "host", "probe", "ray"]


def test_probes_can_be_left_out() -> None:
    assert _names("--probe", "off") == ["nvml", "host", "engine", "ray"]


def test_a_simulation_replaces_every_other_source() -> None:
    assert _names("--simulate", "leak", "--log", "a.log") == ["simulated"]


def test_the_best_way_that_works_is_taken() -> None:
    source = _first([FakeSource("nvml"), FakeSource("nvidia-smi")])
    assert (source.open(), source.name) == (FACTS, "nvml")


def test_the_next_way_says_why_the_better_one_is_missing() -> None:
    source = _first([FakeSource("nvml", missing="no library"), FakeSource("nvidia-smi")])
    facts = source.open()
    assert source.name == "nvidia-smi"
    assert facts.gpus == FACTS.gpus
    assert facts.sources == (
        wire.SourceFacts(name="nvml", state="missing", detail="no library"),
        wire.SourceFacts(name="nvidia-smi", state="ok"),
    )


def test_new_facts_still_say_why_the_better_one_is_missing() -> None:
    smi = FakeSource("nvidia-smi", reading=Reading(facts=FACTS))
    source = _first([FakeSource("nvml", missing="no library"), smi])
    source.open()
    facts = source.read(slow=False).facts
    assert facts is not None
    assert [told.state for told in facts.sources] == ["missing", "ok"]


def test_when_none_works_every_reason_is_told() -> None:
    source = _first([FakeSource("nvml", missing="no library"), FakeSource("nvidia-smi", missing="no tool")])
    with pytest.raises(SourceMissingError, match=r"no GPU is watched.*\(nvml: no library; nvidia-smi: no tool\)"):
        source.open()
    assert source.name == "nvml"


def test_a_better_way_that_comes_back_is_taken_at_the_next_opening() -> None:
    nvml = FakeSource("nvml", missing="no library")
    source = _first([nvml, FakeSource("nvidia-smi")])
    source.open()
    nvml.missing = None
    assert (source.open(), source.name) == (FACTS, "nvml")
