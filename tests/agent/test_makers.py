"""Whose accelerators are looked for, judged by real programs on PATH, and how a node with several makers' is read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.programs import Program

from oomwatch import wire
from oomwatch_agent.assemble import decided, sources
from oomwatch_agent.cards import makers
from oomwatch_agent.sampler import Sampler
from oomwatch_agent.settings import load
from oomwatch_agent.source import Source

FIXTURES = Path(__file__).parent / "fixtures"

pytestmark = pytest.mark.skipif(
    any(sign.exists() for sign in (Path("/dev/nvidiactl"), Path("/proc/driver/nvidia"), Path("/dev/dxg")))
    or Path("/opt/rocm/bin").exists(),
    reason="this machine has accelerators of its own; these tests are of what is found on one that has none",
)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with the shell's programs and whatever a test puts into this folder."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def _npu_smi(path: Path) -> None:
    Program(path, "npu-smi").prints((FIXTURES / "npu_smi_25.5.2_910B4.txt").read_text())


def _amd_smi(path: Path) -> None:
    program = Program(path, "amd-smi")
    for command in ("list", "static", "metric", "process"):
        program.prints((FIXTURES / f"amd_smi_7_{command}.json").read_text(), when=command)


def _rocm_smi(path: Path) -> None:
    Program(path, "rocm-smi").prints((FIXTURES / "rocm_smi.json").read_text())


def _nvidia_smi(path: Path) -> None:
    program = Program(path, "nvidia-smi")
    program.script('case "$*" in *query-gpu*) echo "0, GPU-0, 81559, 1000, NVIDIA H100 80GB HBM3";; esac')


def _accelerators() -> list[Source]:
    """An agent's sources up to the host's."""
    all_of_them = sources(load((), {}).settings)
    return all_of_them[: [source.name for source in all_of_them].index("host")]


def _sampled() -> tuple[wire.NodeFacts, wire.Sample]:
    sampler = Sampler(_accelerators(), answer_within_seconds=10)
    try:
        sample = sampler.collect(1_790_000_000.0, slow=True).sample
        return sampler.facts, sample
    finally:
        sampler.close()


def _states(facts: wire.NodeFacts) -> dict[str, str]:
    return {source.name: source.state for source in facts.sources}


def test_without_any_makers_software_it_is_nvidias_that_is_missing(path: Path) -> None:
    assert list(path.iterdir()) == []
    facts, sample = _sampled()
    assert _states(facts) == {"nvml": "missing"}
    assert sample.gpus == ()


def test_an_ascend_node_has_its_chips_and_no_word_of_nvidia(path: Path) -> None:
    _npu_smi(path)
    facts, sample = _sampled()
    assert _states(facts) == {"npu-smi": "ok"}
    assert [(gpu.gpu, gpu.name) for gpu in facts.gpus] == [("5", "Ascend 910B4")]
    assert [gpu.status for gpu in sample.gpus] == ["ok"]


def test_an_amd_node_is_read_by_the_best_program_and_says_why_not_by_the_library(path: Path) -> None:
    _amd_smi(path)
    _rocm_smi(path)
    facts, sample = _sampled()
    assert _states(facts) == {"amdsmi": "missing", "amd-smi": "ok"}
    assert [gpu.gpu for gpu in sample.gpus] == ["0", "1"]


def test_an_older_rocm_is_read_by_its_own_program(path: Path) -> None:
    _rocm_smi(path)
    facts, sample = _sampled()
    assert _states(facts)["rocm-smi"] == "ok"
    assert len(sample.gpus) == 2


def test_a_node_with_several_makers_cards_has_labels_that_are_unique(path: Path) -> None:
    _amd_smi(path)
    _npu_smi(path)
    facts, sample = _sampled()
    assert [gpu.gpu for gpu in facts.gpus] == ["0", "1", "npu-5"]
    assert [gpu.gpu for gpu in sample.gpus] == ["0", "1", "npu-5"]


def test_beside_nvidias_the_others_have_a_prefix(path: Path) -> None:
    for install in (_nvidia_smi, _amd_smi, _npu_smi):
        install(path)
    labels = [source.open() for source in _accelerators() if source.name == "npu-smi"]
    assert [gpu.gpu for facts in labels for gpu in facts.gpus] == ["npu-5"]
    assert [maker.what for maker in makers.others()] == ["AMD GPU", "Ascend NPU"]
    assert [source.name for source in _accelerators()] == ["nvml", "amdsmi", "npu-smi"]


def test_a_maker_whose_cards_do_not_answer_is_named(path: Path) -> None:
    _npu_smi(path)
    Program(path, "rocm-smi").prints("ERROR: no driver")
    facts, sample = _sampled()
    details = {source.name: source.detail for source in facts.sources}
    assert "no AMD GPU is watched" in (details["amdsmi"] or "")
    assert [gpu.gpu for gpu in sample.gpus] == ["npu-5"]


@pytest.mark.parametrize("there", [_nvidia_smi, _amd_smi, _rocm_smi, _npu_smi])
def test_any_makers_card_is_a_reason_not_to_simulate(path: Path, there: Callable[[Path], None]) -> None:
    there(path)
    assert decided(load(("--simulate", "auto"), {}).settings).simulate == "off"


@pytest.mark.usefixtures("path")
def test_where_there_is_no_card_a_demo_is_sent_and_said_to_be_one(caplog: pytest.LogCaptureFixture) -> None:
    settings = decided(load(("--simulate", "auto"), {}).settings)
    assert (settings.simulate, settings.node) == ("demo", "demo")
    assert "No GPU was found here" in caplog.text
    assert [source.name for source in sources(settings)] == ["simulated"]


@pytest.mark.usefixtures("path")
def test_a_demo_bears_the_name_that_a_person_gave_the_node() -> None:
    assert decided(load(("--simulate", "auto", "--node", "n1"), {}).settings).node == "n1"


@pytest.mark.usefixtures("path")
def test_nothing_is_simulated_unasked(caplog: pytest.LogCaptureFixture) -> None:
    settings = load((), {}).settings
    assert decided(settings) == settings
    assert caplog.text == ""


def test_a_simulation_that_was_asked_for_is_said_to_be_one(caplog: pytest.LogCaptureFixture) -> None:
    assert decided(load(("--simulate", "leak"), {}).settings).simulate == "leak"
    assert "is a simulation" in caplog.text
