"""Every way in which people have a configuration at hand is recognised by its content, and gives the same settings."""

import json
import pprint
from pathlib import Path
from typing import Any

import pytest
import yaml

from oomwatch.doctor.read import Origin, Reading, Source, read
from oomwatch.plan.verlkeys import keys_of

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
GIVEN = {
    "actor_rollout_ref": {
        "actor": {"ppo_micro_batch_size_per_gpu": 8, "optim": {"lr": 1e-06}},
        "rollout": {"n": 12, "name": "vllm", "gpu_memory_utilization": 0.6},
    },
    "data": {"train_batch_size": 60},
    "trainer": {"logger": ["console", "wandb"], "n_gpus_per_node": 6},
}
FLAT: dict[str, object] = {
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 8,
    "actor_rollout_ref.actor.optim.lr": 1e-06,
    "actor_rollout_ref.rollout.n": 12,
    "actor_rollout_ref.rollout.name": "vllm",
    "actor_rollout_ref.rollout.gpu_memory_utilization": 0.6,
    "data.train_batch_size": 60,
    "trainer.logger": "console,wandb",
    "trainer.n_gpus_per_node": 6,
}
OVERRIDES = [
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
    "actor_rollout_ref.actor.optim.lr=1e-6",
    "actor_rollout_ref.rollout.n=12",
    "actor_rollout_ref.rollout.name=vllm",
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.6",
    "data.train_batch_size=60",
    'trainer.logger=\'["console","wandb"]\'',
    "trainer.n_gpus_per_node=6",
]
PRINTED = pprint.pformat(GIVEN)
IN_RAY = "\n".join(f"\x1b[36m(TaskRunner pid=7)\x1b[0m {line}" for line in PRINTED.splitlines())
WITH_OTHERS = "a line before\n" + IN_RAY.replace("\n", "\n(WorkerDict pid=8) other } text {\n") + "\nafter\n"
WORD = "python3 -m verl.trainer.main_ppo "


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("run.yaml", yaml.safe_dump(GIVEN), "yaml"),
        ("anything", "# a comment\n\n" + yaml.safe_dump(GIVEN), "yaml"),
        ("-", "---\n" + yaml.safe_dump(GIVEN), "yaml"),
        ("-", yaml.safe_dump(GIVEN, default_flow_style=True), "json"),
        ("run.json", json.dumps(GIVEN, indent="\t"), "json"),
        ("-", json.dumps(GIVEN), "json"),
        ("-", PRINTED, "printed"),
        ("-", pprint.pformat(GIVEN["actor_rollout_ref"]).replace("{", "{'actor_rollout_ref': {", 1) + "}", "printed"),
        ("driver.log", IN_RAY, "printed"),
        ("driver.log", WITH_OTHERS, "printed"),
        ("driver.log", PRINTED.replace("\n", "\r\n"), "printed"),
        ("train.sh", "#!/bin/bash\n" + WORD + " \\\n  ".join(OVERRIDES), "script"),
        ("-", WORD + " ".join(OVERRIDES), "script"),
        ("-", "\n".join(OVERRIDES), "overrides"),
        ("-", " ".join(OVERRIDES), "overrides"),
        ("-", "\ufeff" + yaml.safe_dump(GIVEN), "yaml"),
    ],
)
def test_the_kind_is_told_by_the_content(name: str, text: str, kind: str) -> None:
    reading = read([Source(name, text)], (), "0.9.1")
    (taken_for,) = reading.inputs
    assert taken_for.kind == kind
    told = FLAT if "data" in text else {key: value for key, value in FLAT.items() if "actor_rollout_ref" in key}
    assert {key: reading.config.get(key) for key in told} == told


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_bytes_are_read_in_the_encodings_that_say_so(encoding: str) -> None:
    source = Source("run.yaml", yaml.safe_dump(GIVEN).encode(encoding))
    assert read([source], (), "0.9.1").config["data.train_batch_size"] == 60


def test_another_encoding_in_a_comment_does_no_harm_and_is_said() -> None:
    text = "# 批大小\ndata:\n  train_batch_size: 60\n".encode("gbk")
    reading = read([Source("run.yaml", text)], (), "0.9.1")
    assert reading.config["data.train_batch_size"] == 60
    assert [(one.what, one.line) for one in reading.complaints] == [("encoding", 1), ("must_be_told", None)]


def test_a_printed_configuration_stands_for_itself_and_names_the_logs_lines() -> None:
    reading = read([Source("driver.log", WITH_OTHERS)])
    found = reading.setting("actor_rollout_ref.rollout.n")
    assert found is not None
    line = next(number for number, text in enumerate(WITH_OTHERS.split("\n"), 1) if "'n': 12" in text)
    assert found.origin == Origin(kind="printed", name="driver.log", line=line)
    assert {setting.origin.kind for setting in reading.settings} == {"printed"}


@pytest.mark.parametrize("folder", sorted(FIXTURES.glob("verl-0.9.1-*")), ids=lambda path: path.name)
def test_a_real_log_tells_its_release_by_what_it_printed(folder: Path) -> None:
    reading = read([Source("driver.log", (folder / "driver.log").read_bytes())])
    assert (reading.version, reading.version_from, reading.sharding) == ("0.9.1", "keys", "fsdp")
    assert reading.unknown == ()
    assert reading.complaints == ()
    assert len(reading.settings) >= 890
    assert not [key for key, value in reading.config.items() if "${" in str(value)]


def hydra_folder(*overrides: str) -> tuple[Reading, dict[str, Any]]:
    """What Hydra leaves of a run with these overrides of two settings."""
    nested: dict[str, Any] = {}
    for key, value in {**keys_of("0.9.1", "fsdp"), "data.train_batch_size": 60, "trainer.nnodes": 2}.items():
        *sections, last = key.split(".")
        level = nested
        for section in sections:
            level = level.setdefault(section, {})
        level[last] = value
    sources = [
        Source("outputs/.hydra/config.yaml", yaml.safe_dump(nested)),
        Source("outputs/.hydra/overrides.yaml", yaml.safe_dump(["data.train_batch_size=60", "trainer.nnodes=2"])),
        Source("outputs/.hydra/hydra.yaml", "hydra:\n  run:\n    dir: outputs\n"),
    ]
    return read(sources, overrides), nested


def test_a_hydra_folder_says_what_was_overridden_and_what_by() -> None:
    reading, _ = hydra_folder()
    found = reading.setting("data.train_batch_size")
    assert found is not None
    assert (found.value, found.origin) == (60, Origin(kind="override", name="outputs/.hydra/overrides.yaml", line=1))
    assert [(one.value, one.origin.kind) for one in found.shadows] == [(1024, "default")]
    assert reading.version == "0.9.1"
    assert reading.unknown == ()
    assert "given_twice" not in [one.what for one in reading.complaints]


def test_overrides_by_hand_go_over_a_hydra_folder() -> None:
    reading, _ = hydra_folder("data.train_batch_size=5")
    found = reading.setting("data.train_batch_size")
    assert found is not None
    assert [found.value, *(one.value for one in found.shadows)] == [5, 60, 1024]


def test_overrides_of_a_hydra_folder_stand_for_it_where_it_is_alone() -> None:
    reading = read([Source(".hydra/overrides.yaml", "- data.train_batch_size=60\n- +data.seed2=1\n")], (), "0.9")
    assert reading.config["data.train_batch_size"] == 60
    assert reading.inputs[0].kind == "hydra_overrides"


@pytest.mark.parametrize(
    ("defaults", "missing"),
    [
        ("[ppo_trainer, _self_]", []),
        ("[{actor@actor_rollout_ref.actor: dp_actor}, {data@data: legacy_data}, _self_]", []),
        ("[mine, _self_]", ["mine"]),
        ("[{actor@actor_rollout_ref.actor: my_actor}]", ["actor@actor_rollout_ref.actor: my_actor"]),
        ("[ppo_trainer, {override model_engine: megatron}]", []),
    ],
)
def test_a_defaults_list_is_followed_to_verls_own_files_and_others_are_asked_for(
    defaults: str, missing: list[str]
) -> None:
    text = f"defaults: {defaults}\nactor_rollout_ref: {{rollout: {{name: vllm}}}}\ndata: {{train_batch_size: 60}}\n"
    reading = read([Source("mine/run.yaml", text)], (), "0.9.1")
    assert [one.values["file"] for one in reading.complaints] == missing
    assert reading.sharding == ("megatron" if "megatron" in defaults else "fsdp")
    assert reading.setting("defaults.0") is None


def test_an_anchor_is_merged_as_yaml_has_it() -> None:
    text = "x: &x {seed: 1, shuffle: false}\ndata:\n  <<: *x\n  seed: 2\n"
    config = read([Source("run.yaml", text)], (), "0.9.1").config
    assert (config["data.seed"], config["data.shuffle"]) == (2, False)


def test_a_key_that_stands_twice_is_an_error_of_verls_loader() -> None:
    reading = read([Source("run.yaml", "data:\n  seed: 1\n  seed: 2\n")], (), "0.5")
    assert [(one.what, one.line, one.severity) for one in reading.complaints] == [("duplicate_key", 3, "error")]


@pytest.mark.parametrize(
    ("written", "value"),
    [("1e-6", 1e-06), ("1.", 1.0), ("0.6", 0.6), ("yes", True), ("off", False), ("~", None),
     ("2024-01-01", "2024-01-01"), ("0x10", 16), ("1_000", 1000), ("'8'", "8"), ("text", "text"), ("3:20", 200)],
)  # fmt: skip
def test_a_scalar_is_what_omegaconf_takes_it_for(written: str, value: object) -> None:
    found = read([Source("run.yaml", f"data:\n  seed: {written}\n")], (), "0.5").setting("data.seed")
    assert found is not None
    assert (found.value, type(found.value)) == (value, type(value))
