"""From a story to the line that a person copies."""

from collections.abc import Mapping

import pytest
from tests.advice.runs import ACTOR, CONFIG, MEGATRON, ROLLOUT, device
from tests.core.run_story import Shape, tell_steps
from tests.core.story import GIB, SHIPPED, Story, rules_of

from oomwatch import wire
from oomwatch.advice import advise, remedies
from oomwatch.core.parts import Part
from oomwatch.wording import put_into_words

HIGH = "    severity: warning\n    when: {kind: threshold, metric: gpu_used_ratio, above: 90%}\n    for: 5s\n"


def residue_story(config: Mapping[str, wire.ConfigValue]) -> tuple[Story, wire.Transition]:
    story = Story(rules_of(HIGH))
    if config:
        story.event(wire.Config(values=dict(config), framework="verl", version="0.9.1"))
    tell_steps(story, 20, lambda n: Shape(base=30 + 1.2 * n, residue=8 + 1.2 * n, allocated=25.0))
    return story, story.heard[0]


def test_a_growing_residue_comes_with_its_cause_and_a_line_to_copy() -> None:
    story, firing = residue_story(CONFIG | {"trainer.n_gpus_per_node": 1})
    said = put_into_words(advise(firing, story.engine.fleet), SHIPPED, simulated=False)
    assert said.causes[0].cause == "sleep_residue"
    assert said.causes[0].texts["zh"] == "引擎休眠后未释放的显存在增长"
    assert (
        said.causes[0].evidence[0].texts["en"].startswith("what stays in use after the engine slept grew from 11.6 GiB")
    )
    *others, last = said.remedies
    assert last.remedy == "restart_periodically"
    assert last.override == f"trainer.save_freq={last.value_to}"
    assert (last.limits_damage, [one.limits_damage for one in others]) == (True, [False] * len(others))
    share = next(one for one in said.remedies if one.remedy == "lower_engine_share")
    assert share.override == f"{ROLLOUT}.gpu_memory_utilization={share.value_to}"
    assert f"gpu_memory_utilization 0.6 -> {share.value_to}: frees about" in share.texts["en"]


def test_a_run_whose_configuration_was_not_told_gets_keys_and_no_values() -> None:
    story, firing = residue_story({})
    found = advise(firing, story.engine.fleet).remedies
    assert found
    for one in found:
        assert (one.override, one.value_to, one.value_from) == (None, None, None)
    with_key = next(one for one in found if one.key)
    assert "configuration was not told" in with_key.texts["en"]


def test_the_worked_example_says_what_halving_frees() -> None:
    cause = wire.Cause(cause="log_prob_micro_batch", score=0.8, phase="old_log_prob")
    first = remedies([cause], CONFIG, device("old_log_prob", needed_bytes=7.0 * GIB), version="0.9.1")[0]
    assert first.override == f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=4"
    assert first.texts["en"].endswith(
        "log_prob_micro_batch_size_per_gpu 8 -> 4: frees about 23.0 GiB; to be safe 7.0 GiB must come free."
    )
    assert (first.frees_bytes, first.needed_bytes) == (23 * GIB, 7 * GIB)


def test_what_is_more_than_the_card_is_not_said_to_be_needed() -> None:
    facts = device("old_log_prob", needed_bytes=140.0 * GIB, capacity_bytes=80.0 * GIB)
    cause = wire.Cause(cause="log_prob_micro_batch", score=0.9, phase="old_log_prob")
    first = remedies([cause], CONFIG, facts, version="0.9.1")[0]
    assert first.frees_bytes is not None
    assert first.needed_bytes is None
    assert "needed" not in first.texts["en"]


def test_what_is_enough_and_cheap_goes_first() -> None:
    cause = wire.Cause(cause="entropy_logits", score=0.8, phase="update_actor")
    names = [one.remedy for one in remedies([cause], CONFIG, device("update_actor"), version="0.9.1")]
    assert names[0] == "fused_kernels"
    assert "shorter_responses" not in names


def test_one_setting_is_advised_once_though_two_causes_name_it() -> None:
    causes = [
        wire.Cause(cause="actor_update", score=0.5, phase="update_actor"),
        wire.Cause(cause="entropy_logits", score=0.4, phase="update_actor"),
    ]
    keys = [one.key for one in remedies(causes, CONFIG, device("update_actor"), version="0.9.1")]
    assert len(keys) == len(set(keys)) == 3


def test_beside_a_program_that_grows_no_setting_of_the_run_is_called_a_remedy() -> None:
    cause = wire.Cause(cause="other_process", score=0.8, phase="update_actor")
    steady = device("update_actor", parts=(Part("stranger", 10.0 * GIB, 0.0, "python"),))
    assert "lower_engine_share" in [one.remedy for one in remedies([cause], CONFIG, steady, version="0.9.1")]
    growing = device("update_actor", parts=(Part("stranger", 10.0 * GIB, 5.0 * GIB, "python"),), steps_left=20.0)
    assert [one.remedy for one in remedies([cause], CONFIG, growing, version="0.9.1")] == ["move_other_process"]


def test_ranks_are_balanced_first_where_that_is_enough_and_else_what_helps_with_longer_responses_too() -> None:
    """The others peak 17 GiB lower: a balanced batch would give this one 14 of it back, on six cards."""
    causes = [
        wire.Cause(cause="imbalance", score=0.6, phase="update_actor"),
        wire.Cause(cause="length_growth", score=0.3, phase="update_actor"),
    ]
    uneven = device("update_actor", peers_peak_bytes=59.0 * GIB, needed_bytes=8.0 * GIB)
    first, *_ = remedies(causes, CONFIG, uneven, version="0.9.1")
    assert (first.remedy, round((first.frees_bytes or 0) / GIB)) == ("rank_padding_balance", 14)
    longer = device("update_actor", peers_peak_bytes=59.0 * GIB, needed_bytes=30.0 * GIB)
    first, *_ = remedies(causes, CONFIG, longer, version="0.9.1")
    assert first.remedy == "dynamic_batches"


def test_more_room_only_puts_off_what_grows() -> None:
    cause = wire.Cause(cause="weight_sync", score=0.8, phase="update_weights")
    for steps_left, is_put_off in ((None, False), (30.0, True)):
        facts = device("update_weights", needed_bytes=4.0 * GIB, steps_left=steps_left)
        names = [one.remedy for one in remedies([cause], CONFIG, facts, version="0.9.1")]
        assert (names[0], "restart_periodically" in names) == ("wake_in_stages", is_put_off)


def test_what_only_limits_the_damage_stands_behind_what_prevents_little_too() -> None:
    """Nothing frees so much: a checkpoint would be the only thing that is said, as if it kept the run from failing."""
    cause = wire.Cause(cause="weight_sync", score=0.8, phase="update_weights")
    facts = device("update_weights", needed_bytes=400.0 * GIB, steps_left=30.0)
    found = remedies([cause], CONFIG, facts, version="0.9.1")
    assert len(found) > 1
    assert [one.limits_damage for one in found] == [False] * (len(found) - 1) + [True]
    assert found[-1].key == "trainer.save_freq"


def test_what_prevents_nothing_and_only_limits_the_damage_comes_last() -> None:
    cause = wire.Cause(cause="leak", score=0.9)
    found = remedies([cause], CONFIG, device("update_actor", steps_left=30.0), version="0.9.1")
    assert [(one.remedy, one.limits_damage) for one in found] == [
        ("find_what_is_kept", False), ("restart_periodically", True),
    ]  # fmt: skip


def test_megatron_is_told_of_its_own_keys() -> None:
    cause = wire.Cause(cause="weight_sync", score=0.8, phase="update_weights")
    found = remedies([cause], MEGATRON, device("update_weights", MEGATRON), version="0.9.1")
    assert all(".fsdp_config." not in (one.key or "") for one in found)


def test_another_framework_is_told_no_keys_of_verl() -> None:
    cause = wire.Cause(cause="actor_update", score=0.8, phase="update_actor")
    assert remedies([cause], {}, device("update_actor"), framework="trl") == ()


@pytest.mark.parametrize(
    ("event", "english", "chinese"),
    [
        ("", "Save a checkpoint before it is full", "在占满之前保存检查点"),
        ("device_oom", "Start again from the last checkpoint", "从最近的检查点重启"),
        ("host_oom", "Start again from the last checkpoint", "从最近的检查点重启"),
    ],
)
def test_after_the_failure_nobody_is_told_what_to_do_before_it(event: str, english: str, chinese: str) -> None:
    facts = device("update_actor", steps_left=9.0, verdict={"event": event, "eta_steps": 40})
    last = remedies([wire.Cause(cause="leak", score=0.9)], CONFIG, facts, version="0.9.1")[-1]
    assert last.remedy == "restart_periodically"
    assert last.texts["en"].startswith(english)
    assert last.texts["zh"].startswith(chinese)


@pytest.mark.parametrize("state", ["resolved", "pending"])
def test_only_what_fires_is_advised(state: wire.AlertState) -> None:
    story, firing = residue_story(CONFIG)
    other = wire.Transition(
        id=firing.id, alert=firing.alert, severity="warning", state=state, at=1, started_at=1,
        labels=firing.labels, causes=firing.causes,
    )  # fmt: skip
    assert advise(other, story.engine.fleet) is other


def test_remedies_that_were_told_stay_as_they_were() -> None:
    story, firing = residue_story(CONFIG)
    told = advise(firing, story.engine.fleet)
    story.event(wire.Config(values=CONFIG | {f"{ACTOR}.ppo_micro_batch_size_per_gpu": 1}))
    assert advise(told, story.engine.fleet) is told
