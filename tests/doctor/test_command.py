"""`oomwatch doctor`: from files, folders and pipes to text, JSON and an exit status."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.doctor.cases import ACTOR, ARTICLE, ROLLOUT

from oomwatch.__main__ import main
from oomwatch.commands.doctor.here import parse
from oomwatch.doctor.show.layout import COLUMNS, width
from oomwatch.options import SettingError

MICRO = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
HF_CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18944,
    "vocab_size": 152064,
}


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "train.sh"
    path.write_text(ARTICLE)
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    status = main(["doctor", "--json", *words])
    return status, json.loads(capsys.readouterr().out)


def test_the_articles_example_from_end_to_end(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, report = told(capsys, "--verl", "0.9.1", "--gpu", "H100", script)
    assert status == 0
    derived = report["derived"]
    assert derived["sequences_per_step"] == 720
    assert derived["ppo_mini_batch_size_per_gpu"] == 120
    assert derived["micro_batches_per_update"] == 15
    assert (derived["rollout_replicas"], derived["prompts_per_replica"], derived["sequences_per_replica"]) == (
        3,
        20,
        240,
    )
    assert [row["phase"] for row in report["memory"]][:2] == ["rollout", "old_log_prob"]
    assert report["problems"] == []


def test_flags_may_stand_behind_the_overrides(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, report = told(capsys, script, f"{MICRO}=7", "--gpu", "H100", f"--{ROLLOUT}.n=8")
    assert status == 1
    assert report["verdict"] == "refused"
    assert report["derived"]["sequences_per_step"] == 480
    assert [one["key"] for one in report["problems"] if one["severity"] == "error"] == [MICRO]


def test_a_text_report_begins_with_the_verdict_and_keeps_to_its_columns(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--gpu", "A100-40GB", script]) == 1
    out = capsys.readouterr().out
    assert out.startswith("Will not fit: old log-prob needs ")
    for part in ("The arithmetic", "60 × 12", "Memory of the fullest GPU", "What to change", "To be copied"):
        assert part in out
    keyless = [line for line in out.splitlines() if "actor_rollout_ref." not in line]
    assert max(width(line) for line in keyless) <= COLUMNS


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_section_is_told_in_either_language(
    script: str, language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [script, f"{MICRO}=7", "+data.unheard=1", "--gpu", "A100-40GB", "--host-memory", "100GiB"]
    assert main(["doctor", "--language", language, *words]) == 1
    out = capsys.readouterr().out
    assert "✗" in out
    assert "data.unheard" in out
    assert ("启动时会被拒绝" in out) == (language == "zh")
    assert "{" not in out


def test_what_comes_through_a_pipe_is_read(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ARTICLE.encode())))
    status, report = told(capsys, "-", "--gpu", "H200")
    assert (status, report["inputs"][0]["name"]) == (0, "-")


def test_a_runs_folder_is_read_with_what_its_command_line_had_put_over_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".hydra"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "data: {train_batch_size: 60}\n"
        "actor_rollout_ref: {rollout: {n: 12, name: vllm}, actor: {ppo_mini_batch_size: 60}}\n"
    )
    (folder / "overrides.yaml").write_text("- data.train_batch_size=60\n")
    _, report = told(capsys, str(tmp_path), "--gpus", "6")
    assert report["derived"]["sequences_per_step"] == 720
    assert report["kind"] == "hydra_folder"
    main(["doctor", str(tmp_path / "nowhere")])
    assert "cannot read" in capsys.readouterr().err
    assert main(["doctor", str(tmp_path.parent)]) == 2
    assert "has no .hydra folder" in capsys.readouterr().err


def test_gpus_and_nodes_of_the_flags_go_over_the_configuration(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, report = told(capsys, script, "--gpus", "4", "--nodes", "3")
    assert report["derived"]["gpus"] == 12
    assert [row["key"] for row in report["shadowed"]] == ["trainer.n_gpus_per_node", "trainer.nnodes"]
    assert main(["doctor", script, "--gpus", "0"]) == 2
    assert "--gpus" in capsys.readouterr().err


def test_a_model_is_known_by_its_config_json(script: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(HF_CONFIG))
    _, by_file = told(capsys, script, "--gpu", "H100", "--model", str(tmp_path / "config.json"))
    _, by_name = told(capsys, script, "--gpu", "H100")
    assert by_file["model"]["parameters"] == by_name["model"]["parameters"]
    assert by_file["model"]["source"] == "config.json"
    _, beside = told(capsys, script, f"actor_rollout_ref.model.path={tmp_path}")
    assert beside["model"]["source"] == "config.json"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gpu", "G80"], 'flag --gpu: "G80" is no known card; known are '),
        (["--gpu", "79"], "with its unit, for example 79GiB"),
        (["--model", "nobodys-model"], "is no known model and no config.json"),
        (["--verl", "17.x.y"], "17.x.y"),
        (["--host-memory", "lots"], "flag --host-memory"),
        (["--run", "qwen7b"], "say with --server URL"),
        (["--server", "http://127.0.0.1:1"], "say with --run NAME"),
    ],
)
def test_a_flag_that_cannot_be_used_is_status_2_and_says_why(
    script: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OOMWATCH_SERVER", raising=False)
    assert main(["doctor", script, *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"\x00\x01\x02" * 300, b"a: [b\n", b"just prose, and nothing else\n", b""])
def test_what_cannot_be_read_is_status_2_and_says_where(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    assert main(["doctor", str(path)]) == 2
    assert "odd.yaml" in capsys.readouterr().err


def test_without_anything_to_read_it_says_how_to_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 2
    assert "name a file" in capsys.readouterr().err


def test_a_card_is_known_by_its_memory_too(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, report = told(capsys, script, "--gpu", "60GiB")
    assert report["card"]["usable_bytes"] == 60 * 2**30


def test_the_cards_of_this_machine_are_told_by_nvidia_smi() -> None:
    here = parse("NVIDIA H200, 143771\nNVIDIA H200, 143771\n")
    assert (here.card.name, here.gpus) == ("H200 141GB", 2)
    unheard = parse("NVIDIA Z900, 100000\n")
    assert (unheard.card.name, unheard.card.verified) == ("NVIDIA Z900", False)
    assert 0 < unheard.card.usable_bytes < 100000 * 2**20
    with pytest.raises(SettingError, match="one kind of card is needed, found are NVIDIA A, NVIDIA B"):
        parse("NVIDIA A, 1\nNVIDIA B, 2\n")
    with pytest.raises(SettingError, match="tells no memory"):
        parse("NVIDIA Z900, [N/A]\n")
