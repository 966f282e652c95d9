"""Which keys may be named to which run."""

import pytest
from tests.advice.runs import ACTOR, CONFIG, FORK, MEGATRON, OLD, ROLLOUT

from oomwatch import wire
from oomwatch.advice.keys import RELEASES, key_for, releases_of

BUCKETS = (f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes", f"{ROLLOUT}.update_weights_bucket_megabytes")


@pytest.mark.parametrize(
    ("version", "releases"),
    [("0.9.1", ("0.9",)), ("0.5.0.dev", ("0.5",)), ("0.10.0", ("0.9",)), ("1.2", ("0.9",))],
)
def test_a_version_is_one_release(version: str, releases: tuple[str, ...]) -> None:
    assert releases_of({}, version) == releases


def test_a_run_without_a_version_is_dated_by_the_keys_that_it_has() -> None:
    assert releases_of(CONFIG, None) == ("0.8", "0.9")  # critic.fsdp
    assert releases_of({BUCKETS[1]: 512}, None) == ("0.5", "0.6")
    assert releases_of({}, None) == RELEASES


def test_a_forks_own_keys_do_not_date_it() -> None:
    assert releases_of(FORK, None) == releases_of(OLD, None)


def test_a_key_that_the_run_has_goes_before_one_that_its_version_knows() -> None:
    assert key_for(BUCKETS, {BUCKETS[1]: 512}, "0.9.1") == BUCKETS[1]
    assert key_for(BUCKETS, {}, "0.9.1") == BUCKETS[0]
    assert key_for(BUCKETS, {}, "0.5.0") == BUCKETS[1]


def test_a_key_that_the_version_lacks_is_not_named() -> None:
    assert key_for(BUCKETS, {}, "0.3.0") is None
    assert key_for(BUCKETS, {}, None) is None  # not all releases know either
    assert key_for([f"{ROLLOUT}.buffer_size"], CONFIG, "0.9.1") is None


@pytest.mark.parametrize(("config", "known"), [(CONFIG, "fsdp_config"), (MEGATRON, "megatron")])
def test_megatron_has_other_keys(config: dict[str, wire.ConfigValue], known: str) -> None:
    keys = [f"{ACTOR}.fsdp_config.param_offload", f"{ACTOR}.megatron.param_offload"]
    here = {key: value for key, value in config.items() if key not in keys}
    assert known in (key_for(keys, here, "0.9.1") or "")
