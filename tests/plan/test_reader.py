"""Settings as verl resolves them: what is told, what follows what, and what stands for nothing that is told."""

import pytest

from oomwatch import wire
from oomwatch.plan import verlkeys
from oomwatch.plan.reader import Reader, reader_of, strategy_of
from oomwatch.plan.settings import ACTOR, CRITIC, ROLLOUT

SNAPSHOTS = f"{ROLLOUT}.profiler.tool_config.precision_debugger.strict"


def test_a_setting_follows_what_it_names_and_its_release_s_default_last() -> None:
    assert reader_of({f"{ACTOR}.ppo_mini_batch_size": 60}, "0.9.1").value(f"{CRITIC}.ppo_mini_batch_size") == 60
    assert reader_of({}, "0.9.1").value(f"{CRITIC}.ppo_mini_batch_size") == 256


def test_what_follows_one_of_two_takes_the_first_that_there_is() -> None:
    first, second = (
        "actor_rollout_ref.actor.profiler.tool_config.precision_debugger.strict",
        "global_profiler.global_tool_config.precision_debugger.strict",
    )
    assert reader_of({first: True, second: False}, "0.8.0").value(SNAPSHOTS) is True
    assert reader_of({second: True}, "0.8.0").value(SNAPSHOTS) is True
    assert reader_of({}, "0.8.0").value(SNAPSHOTS) is False


@pytest.mark.parametrize("strategy", verlkeys.STRATEGIES)
@pytest.mark.parametrize("release", verlkeys.releases())
def test_no_reference_is_taken_for_a_value(release: str, strategy: verlkeys.Strategy) -> None:
    here = Reader({f"{ACTOR}.strategy": strategy}, release)
    values = [(key, here.value(key)) for key in verlkeys.keys_of(release, strategy)]
    assert [(key, value) for key, value in values if isinstance(value, str) and ("${" in value or value == "???")] == []


def test_of_several_keys_one_that_is_told_comes_before_a_default() -> None:
    keys = (f"{ROLLOUT}.n", "trainer.nnodes")
    assert reader_of({"trainer.nnodes": 3}, None).positive(*keys, otherwise=9) == 3
    assert reader_of({}, None).positive(*keys, otherwise=9) == 1
    assert reader_of({"trainer.nnodes": 0}, None).positive(*keys, otherwise=9) == 9


def test_what_is_of_another_kind_is_as_good_as_not_told() -> None:
    told: dict[str, wire.ConfigValue] = {f"{ROLLOUT}.n": "many", f"{ROLLOUT}.name": 3}
    here = reader_of(told, None)
    assert here.number(f"{ROLLOUT}.n") is None
    assert here.ratio(f"{ROLLOUT}.n", otherwise=0.5) == 0.5
    assert here.text(f"{ROLLOUT}.name") == ""


def test_a_strategy_is_told_or_shows_in_the_settings() -> None:
    pipeline = f"{ACTOR}.megatron.pipeline_model_parallel_size"
    assert strategy_of({pipeline: 2}) == "megatron"
    assert strategy_of({pipeline: 2, f"{ACTOR}.strategy": "fsdp2"}) == "fsdp"
    assert strategy_of({}) == "fsdp"


def test_only_releases_of_the_table_can_be_asked_for() -> None:
    assert reader_of({}, "0.8").since("0.7.1")
    assert not reader_of({}, "0.7.0").since("0.7.1")
    with pytest.raises(ValueError, match="not in tuple"):
        reader_of({}, "0.7.0").since("0.7.2")
