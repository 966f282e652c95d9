"""The table of verl's settings: which release has which, and what they are by default."""

import pytest

from oomwatch.plan.verlkeys import default_of, having, is_newer, keys_of, minors, nearest, release_of, releases, takes

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("0.9.1", "0.9.1"),
        ("0.9.0", "0.9.0"),
        ("0.9", "0.9.1"),
        ("0.4.2.dev", "0.4.1"),
        ("0.4.0", "0.4.0"),
        ("0.5.0.dev0", "0.5.0"),
        ("0.3.0.post1", "0.3.0"),
        ("0.2", "0.2.0"),
        ("0.10.0", "0.9.1"),
        ("1.2", "0.9.1"),
        ("0.1", None),
        ("newest", None),
        ("", None),
        ("0", None),
        ("0.9x", None),
    ],
)
def test_a_version_has_the_settings_of_one_release(version: str, release: str | None) -> None:
    assert release_of(version) == release
    assert is_newer(version) == (version in ("0.10.0", "1.2"))


def test_the_table_holds_every_minor_version_since_0_2() -> None:
    assert minors() == ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")
    assert {len(keys_of(release, "fsdp")) for release in releases()} >= {141, 899}  # as the files of 0.2 and 0.9.1 hold


def test_an_unknown_version_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r'"0\.1" is no known version of verl; known are 0\.2, 0\.3'):
        keys_of("0.1", "fsdp")


def test_defaults_are_verls_own() -> None:
    assert default_of("data.train_batch_size", "0.9.1", "fsdp") == 1024
    assert default_of(f"{ACTOR}.ppo_micro_batch_size_per_gpu", "0.9.1", "fsdp") is None
    assert default_of(f"{ROLLOUT}.gpu_memory_utilization", "0.5", "megatron") == 0.5
    assert default_of("trainer.logger", "0.9", "fsdp") == ["console", "wandb"]
    with pytest.raises(KeyError):
        default_of(f"{ROLLOUT}.buffer_size", "0.9", "fsdp")


def test_a_strategy_has_settings_of_its_own() -> None:
    assert f"{ACTOR}.fsdp_config.param_offload" in keys_of("0.9", "fsdp")
    assert f"{ACTOR}.fsdp_config.param_offload" not in keys_of("0.9", "megatron")
    assert having(f"{ACTOR}.megatron.param_offload", "megatron")[0] == "0.4.0"


def test_what_is_below_an_empty_mapping_is_for_people_to_name() -> None:
    assert takes("actor_rollout_ref.model.override_config.attn_implementation", "0.9", "fsdp")
    assert not takes("actor_rollout_ref.model.overide_config.attn_implementation", "0.9", "fsdp")
    assert takes("data.train_batch_size", "0.9", "fsdp")


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        (f"{ACTOR}.ppo_micro_batchsize_per_gpu", f"{ACTOR}.ppo_micro_batch_size_per_gpu"),
        (f"{ACTOR}.enable_gradient_checkpointing", "actor_rollout_ref.model.enable_gradient_checkpointing"),
        ("critic.enable_gradient_checkpointing", "critic.model.enable_gradient_checkpointing"),
        (f"{ACTOR}.fsdp_config.cpu_offload", f"{ACTOR}.fsdp_config.param_offload"),
        ("actor_rollout_ref.ref.fsdp_config.offload_params", "actor_rollout_ref.ref.fsdp_config.param_offload"),
        (f"{ROLLOUT}.max_length", "data.max_response_length"),
        (f"{ROLLOUT}.gpu_memory_utilisation", f"{ROLLOUT}.gpu_memory_utilization"),
        ("trainer.n_gpu_per_node", "trainer.n_gpus_per_node"),
        ("train_batch_size", "data.train_batch_size"),
        ("zzz.qqqqqqqqq", None),
    ],
)
def test_the_nearest_setting_is_the_one_that_was_meant(key: str, meant: str | None) -> None:
    assert nearest(key, "0.9.1", "fsdp") == meant
