"""What leaves a node of a run's models: sizes, and public names. Never a path, nor a name of one's own."""

import json
import os
import pprint
from pathlib import Path

import pytest

from oomwatch import wire
from oomwatch_agent.dedup import Deduplicator
from oomwatch_agent.hydra import config_in
from oomwatch_agent.logs.model_keys import ModelPaths, model_paths, public_name, told_of
from oomwatch_agent.logsource import LogSource
from oomwatch_agent.model_files import Here, with_models
from oomwatch_agent.run_files import RunFiles
from oomwatch_agent.scenario import STORIES
from oomwatch_agent.simulated_config import configured
from oomwatch_agent.source import Found

SIZES: dict[str, wire.ConfigValue] = {
    "model_type": "qwen3",
    "num_hidden_layers": 36,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "vocab_size": 151936,
    "tie_word_embeddings": False,
    "attention_bias": False,
}
QWEN = {**SIZES, "architectures": ["Qwen3ForCausalLM"], "_name_or_path": "/home/someone/secret", "rope_theta": 1000000}
CONFIG = wire.Config(values={"data.train_batch_size": 60}, framework="verl")


def model(folder: Path, content: object = QWEN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def settings(path: object, critic: object = None) -> dict[str, object]:
    told: dict[str, object] = {"actor_rollout_ref": {"model": {"path": path}}, "data": {"train_batch_size": 60}}
    return told if critic is None else {**told, "critic": {"model": {"path": critic}}}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/models/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("Qwen/Qwen3-30B-A3B/", "Qwen3-30B-A3B"),
        ("meta-llama/Meta-Llama-3-8B", "Meta-Llama-3-8B"),
        ("/c/models--deepseek-ai--DeepSeek-R1-Distill-Qwen-7B/snapshots/0a1b2c", "DeepSeek-R1-Distill-Qwen-7B"),
        ("mistralai/Mixtral-8x7B-v0.1", "Mixtral-8x7B-v0.1"),
        ("google/gemma-2-9b-it", "gemma-2-9b-it"),
        ("hdfs://store/x/qwen2.5-7b", "qwen2.5-7b"),
        # From here on with words of one's own: they, and all that follows them, stay.
        ("/models/acme/qwen2.5-7b-acme-v3", "qwen2.5-7b"),
        ("/models/Qwen3-8B-project-x-math", "Qwen3-8B"),
        ("/models/qwenacme-7b", None),
        ("/models/Qwen2.5-7B/global_step_100", None),
        ("/models/my-qwen-7b", None),
        ("/home/someone/secret", None),
        ("/", None),
    ],
)
def test_a_name_is_told_as_far_as_it_is_public(path: str, name: str | None) -> None:
    assert public_name(path) == name


def test_of_a_models_file_the_sizes_leave_and_nothing_else() -> None:
    assert told_of(QWEN) == SIZES
    assert told_of({"model_type": "acme_v2", "hidden_size": "4096", "vocab_size": -1, "num_experts": 10**9}) == {}


def test_of_a_model_that_sees_the_text_part_is_told() -> None:
    text = {"hidden_size": 2560, "num_hidden_layers": 34, "model_type": "gemma3_text"}
    told = told_of({"text_config": text, "vision_config": {"hidden_size": 1152}, "tie_word_embeddings": True})
    assert told == {**text, "tie_word_embeddings": True}


def test_a_critic_has_a_model_of_its_own_where_its_path_is_another() -> None:
    assert model_paths(settings("/m/a", "/m/b")) == ModelPaths("/m/a", "/m/b")
    assert model_paths(settings("/m/a", "${actor_rollout_ref.model.path}")) == ModelPaths("/m/a")
    assert model_paths(settings("${oc.env:MODEL}")) == model_paths(settings(7)) == ModelPaths()


def test_sizes_come_from_the_models_folder(tmp_path: Path) -> None:
    path = model(tmp_path / "Qwen3-8B")
    told = with_models(CONFIG, ModelPaths(str(path), str(model(tmp_path / "mine", {"hidden_size": 64}))))
    assert told == wire.Config(
        values=CONFIG.values, framework="verl", model={"name": "Qwen3-8B", **SIZES}, critic_model={"hidden_size": 64}
    )


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"])
def test_sizes_of_a_model_of_the_hub_come_from_its_cache(tmp_path: Path, variable: str) -> None:
    below = {
        "HF_HUB_CACHE": "",
        "HF_HOME": "hub",
        "XDG_CACHE_HOME": "huggingface/hub",
        "HOME": ".cache/huggingface/hub",
    }
    snapshots = tmp_path / below[variable] / "models--acme--secret" / "snapshots"
    os.utime(model(snapshots / "old", {"hidden_size": 1}), (1, 1))
    model(snapshots / "new")
    here = Here(environ={"HOME": "/nowhere", variable: str(tmp_path)})
    assert with_models(CONFIG, ModelPaths("acme/secret"), here).model == SIZES


def test_a_path_within_a_container_is_looked_up_there(tmp_path: Path) -> None:
    model(tmp_path / "models" / "secret")
    here = Here((tmp_path / "elsewhere", tmp_path), {"HOME": "/models"})
    assert with_models(CONFIG, ModelPaths("/models/secret"), here).model == SIZES
    assert with_models(CONFIG, ModelPaths("~/secret"), here).model == SIZES


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "{", '{"hidden_size": 1e999}', " " * 300_000 + "{}", "\xff"])
def test_a_file_that_is_none_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    assert with_models(CONFIG, ModelPaths(str(tmp_path))) == CONFIG


def test_a_disk_that_hangs_costs_the_sizes_and_no_more(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")  # whoever opens it waits for a writer
    try:
        assert with_models(CONFIG, ModelPaths(str(tmp_path), "Qwen/Qwen3-8B")).critic_model["name"] == "Qwen3-8B"
    finally:
        os.close(os.open(tmp_path / "config.json", os.O_RDWR | os.O_NONBLOCK))


def test_a_printed_configuration_is_told_with_its_model_and_without_its_path(tmp_path: Path) -> None:
    path = model(tmp_path / "secret")
    log = tmp_path / "driver.log"
    log.write_text(pprint.pformat(settings(str(path))).replace("{'actor", "{'actor", 1) + "\n", encoding="utf-8")
    source = LogSource(str(log), "start", "mine")
    source.open()
    (found,) = source.read(slow=True).found
    source.close()
    assert isinstance(found.body, wire.Config)
    assert found.body.model == SIZES
    assert "secret" not in str(found.body)


def test_hydras_configuration_is_told_with_its_model(tmp_path: Path) -> None:
    path, folder = model(tmp_path / "secret"), tmp_path / "work" / ".hydra"
    folder.mkdir(parents=True)
    (folder / "overrides.yaml").write_text(f"- data.train_batch_size=60\n- actor_rollout_ref.model.path={path}\n")
    expected = wire.Config(values=CONFIG.values, framework="verl", model=SIZES)
    assert config_in(folder) == expected
    process = tmp_path / "proc" / "41"
    process.mkdir(parents=True)
    (process / "cwd").symlink_to(tmp_path / "work")
    assert RunFiles(tmp_path, {41: {"HOME": "/x"}}.get).config_of(41) == expected


def test_whoever_knows_the_model_is_heard_beside_whoever_does_not() -> None:
    first, second = (Found(body=body, origin=wire.Origin(source=name)) for body, name in (
        (CONFIG, "a.log"), (wire.Config(values=CONFIG.values, framework="verl", model=SIZES), "config.yaml"),
    ))  # fmt: skip
    news = Deduplicator()
    assert news.fresh(first, 0.0)
    assert news.fresh(second, 1.0)
    assert not news.fresh(Found(body=second.body, origin=wire.Origin(source="c.log")), 2.0)


@pytest.mark.parametrize(("gpus", "name"), [(1, "Qwen3-1.7B"), (2, "Qwen3-4B"), (8, "Qwen3-8B")])
def test_a_simulated_run_tells_its_model(gpus: int, name: str) -> None:
    assert configured(STORIES["healthy"], gpus).model["name"] == name
