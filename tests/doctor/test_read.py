"""Reading a configuration: who wins at each key, where it comes from, and what has no effect."""

import pytest

from oomwatch.doctor.read import Complaint, Origin, Reading, Setting, Shadowed, Source, read

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
MICRO = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
YAML = """\
actor_rollout_ref:
  actor:
    ppo_micro_batch_size_per_gpu: 8
  rollout: {n: 12, name: vllm}
data:
  train_batch_size: 60
"""


def read_yaml(text: str, *overrides: str, version: str | None = "0.9.1") -> Reading:
    return read([Source("run.yaml", text)], overrides, version)


def setting(reading: Reading, key: str) -> Setting:
    found = reading.setting(key)
    assert found is not None
    return found


def whats(reading: Reading) -> list[str]:
    return [complaint.what for complaint in reading.complaints]


def test_what_nobody_sets_is_verls_default() -> None:
    found = setting(read_yaml(YAML), f"{ACTOR}.ppo_epochs")
    assert (found.value, found.origin, found.shadows) == (1, Origin(kind="default", name="verl 0.9.1"), ())


def test_what_one_configuration_puts_over_the_defaults_is_not_in_the_next() -> None:
    changes = [
        "data.train_batch_size=7",
        "+data.new=1",
        "~critic.optim",
        "trainer.logger.0=wandb",
        "actor_rollout_ref=1",
    ]
    before = read([], ["data.seed=1"], "0.9.1")
    assert read([], changes, "0.9.1") != before
    assert read([], ["data.seed=1"], "0.9.1") == before


def test_a_file_goes_over_the_default_and_says_on_which_line() -> None:
    found = setting(read_yaml(YAML), "data.train_batch_size")
    assert found.value == 60
    assert found.origin == Origin(kind="file", name="run.yaml", line=6)
    assert found.shadows == (Shadowed(value=1024, origin=Origin(kind="default", name="verl 0.9.1")),)


def test_the_command_line_wins_over_the_micro_batch_in_the_yaml() -> None:
    found = setting(read_yaml(YAML, f"{MICRO}=16"), MICRO)
    assert found.value == 16
    assert found.origin == Origin(kind="override", name="command line", line=1)
    assert found.shadows[0] == Shadowed(value=8, origin=Origin(kind="file", name="run.yaml", line=3))


def test_of_two_overrides_the_last_wins_and_the_first_is_complained_of() -> None:
    reading = read_yaml(YAML, f"{MICRO}=16", f"{MICRO}=2")
    assert setting(reading, MICRO).value == 2
    assert [one.value for one in setting(reading, MICRO).shadows] == [16, 8, None]
    assert reading.complaints == (
        Complaint(
            what="given_twice",
            severity="warning",
            name="command line",
            line=2,
            values={"key": MICRO, "name": "command line", "line": 1},
        ),
    )


def test_a_reference_is_followed_to_what_the_person_set() -> None:
    reading = read_yaml(YAML, "data.max_response_length=2048")
    found = setting(reading, f"{ROLLOUT}.response_length")
    assert (found.value, found.written) == (2048, "${oc.select:data.max_response_length,512}")
    assert reading.config[f"{ROLLOUT}.response_length"] == 2048


@pytest.mark.parametrize(
    ("overrides", "actor", "critic"),
    [
        ((), None, None),
        (("actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct",), "Qwen/Qwen2.5-7B-Instruct", None),
        (("critic.model.path=/models/qwen",), None, "/models/qwen"),
    ],
)
def test_a_model_is_the_one_that_somebody_named(overrides: tuple[str, ...], actor: str, critic: str) -> None:
    reading = read_yaml(YAML, *overrides)
    assert (reading.model_path, reading.critic_model_path) == (actor, critic)


def test_the_configuration_of_a_reading_has_only_what_is_set() -> None:
    config = read_yaml(YAML).config
    assert config[f"{ROLLOUT}.n"] == 12
    assert config["trainer.logger"] == "console,wandb"
    assert f"{ACTOR}.ppo_micro_batch_size" not in config  # null


def test_the_engine_must_be_told_where_verl_has_no_default() -> None:
    assert "must_be_told" in whats(read([], ["data.train_batch_size=60"], "0.9"))
    assert "must_be_told" not in whats(read([], ["data.train_batch_size=60"], "0.5"))


def test_a_key_that_is_not_there_needs_a_plus() -> None:
    reading = read_yaml(YAML, f"{ROLLOUT}.gpu_memory_utilisation=0.6")
    (complaint,) = reading.complaints
    assert (complaint.what, complaint.severity) == ("misspelt", "error")
    assert complaint.suggestion == f"{ROLLOUT}.gpu_memory_utilization=0.6"
    (unknown,) = reading.unknown
    assert unknown.nearest == f"{ROLLOUT}.gpu_memory_utilization"
    assert whats(read_yaml(YAML, f"+{ROLLOUT}.gpu_memory_utilisation=0.6")) == []


def whats_of(text: str, version: str | None) -> list[tuple[str, str]]:
    reading = read([Source("train.sh", text)], [f"{ROLLOUT}.name=vllm"], version)
    return [(one.what, one.severity) for one in reading.complaints]


def test_what_hydra_stops_at_is_certain_for_a_version_that_is_told() -> None:
    key = "trainer.val_before_train"  # since 0.4
    program = "python3 -m verl.trainer.main_ppo"
    assert whats_of(f"{program} {key}=True", "0.2") == [("not_in_struct", "error")]
    assert whats_of(f"{program} +{key}=True", "0.9") == [("already_there", "error")]
    assert whats_of(f"{program} +{key}=True", "0.2") == []
    assert whats_of(f"{program} +{key}=True trainer.foo=1", None) == [("not_in_struct", "error")]


def test_a_recipes_program_may_have_settings_of_its_own() -> None:
    text = "python3 -m recipe.dapo.main_dapo data.oversampling=5 +data.train_batch_size=5"
    assert whats_of(text, "0.9") == [("perhaps_not_in_struct", "warning"), ("perhaps_already_there", "warning")]
    assert whats_of("python3 -m recipe.dapo.main_dapo data.gen_batch_size2=5", "0.9") == [
        ("perhaps_misspelt", "warning")
    ]


def test_what_is_added_dates_a_configuration_too() -> None:
    assert read([], ["+trainer.val_before_train=True"]).version == "0.3.0"


def test_an_unknown_key_says_which_release_or_strategy_has_it() -> None:
    reading = read_yaml(YAML, "+critic.fsdp.param_offload=True", version="0.5")
    (unknown,) = reading.unknown
    assert unknown.releases == ("0.8.0", "0.9.0", "0.9.1")
    megatron = read_yaml(YAML, f"{ACTOR}.strategy=megatron", f"+{ACTOR}.fsdp_config.param_offload=True")
    assert megatron.unknown[0].strategy == "fsdp"


def test_a_version_is_known_by_keys_where_it_is_not_told() -> None:
    reading = read([], [f"{ROLLOUT}.update_weights_bucket_megabytes=512"])
    assert (reading.version, reading.version_from) == ("0.7.0", "keys")
    assert reading.versions == ("0.5.0", "0.6.0", "0.6.1", "0.7.0")
    assert read([], ["data.train_batch_size=60"]).version_from == "assumed"
    assert read([], ["data.train_batch_size=60"], "0.7").version_from == "told"


@pytest.mark.parametrize(
    ("overrides", "sharding"),
    [
        (["data.train_batch_size=1"], "fsdp"),
        ([f"{ACTOR}.strategy=fsdp2"], "fsdp2"),
        ([f"{ACTOR}.strategy=megatron"], "megatron"),
        ([f"{ACTOR}.megatron.tensor_model_parallel_size=2"], "megatron"),
        (["model_engine=megatron"], "megatron"),
    ],
)
def test_the_way_of_sharding_is_known(overrides: list[str], sharding: str) -> None:
    assert read([], overrides).sharding == sharding
