"""Figures that no honest agent sends: the engine goes on, and what it says can be stored and read again."""

import msgspec
import pytest
from tests.advice.runs import CONFIG, ROLLOUT, device
from tests.core.story import GIB, Story, shipped

from oomwatch import wire
from oomwatch.advice import remedies

SHORTEST_SECONDS = 5e-324


def stored_and_read(transition: wire.Transition) -> wire.Transition:
    return msgspec.json.decode(wire.encode(transition), type=wire.Transition)


def test_a_rollout_that_is_infinitely_longer_can_be_stored() -> None:
    story = Story(shipped("rollout_time_jump"))
    for number in range(1, 12):
        story.wait(10).step(number, SHORTEST_SECONDS)
    story.wait(10).step(12, 1e12)
    (jumped,) = (one for one in story.heard if one.state == "firing")
    assert "increase_ratio" not in jumped.facts
    assert stored_and_read(jumped).facts["baseline_steps"] == 8
    assert not story.engine.defects


def test_responses_of_no_tokens_at_all_are_no_reason_for_a_long_rollout() -> None:
    story = Story(shipped("rollout_time_jump"))
    for number in range(1, 12):
        story.wait(30).step(number, 30.0, response_length_mean_tokens=0.0)
    story.wait(300).step(12, 300.0, response_length_mean_tokens=0.0)
    assert [one.state for one in story.heard] == ["firing"]
    assert not story.engine.defects


@pytest.mark.parametrize("key", [f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu", f"{ROLLOUT}.gpu_memory_utilization"])
@pytest.mark.parametrize("value", [1e308, -1e308, -8, 0, 2**53, 2**60, "", "${oc.env:X}", True, None])
def test_a_setting_without_sense_gives_no_advice_and_no_failure(key: str, value: wire.ConfigValue) -> None:
    causes = [
        wire.Cause(cause="log_prob_micro_batch", score=0.5, phase="old_log_prob"),
        wire.Cause(cause="rollout_kv_budget", score=0.4, phase="rollout"),
    ]
    found = remedies(causes, CONFIG | {key: value}, device("old_log_prob", needed_bytes=7.0 * GIB), version="0.9.1")
    assert all(one.frees_bytes is None or one.frees_bytes > 0 for one in found)
    assert key not in {one.key for one in found}


def test_a_driver_that_keeps_more_than_the_card_has_leaves_nothing_and_fails_nothing() -> None:
    story = Story(shipped("out_of_memory"), run="r")
    facts = wire.GpuFacts(gpu="0", uuid="GPU-0", name="H100", total_bytes=GIB, reserved_bytes=2**53)
    story.engine.observe(
        wire.Hello(
            protocol=1, agent_version="1", node="n", session="s2", sent_at=0, interval_seconds=1, run="r",
            facts=wire.NodeFacts(gpus=(facts,)),
        ),
        "n",
        story.now,
    )  # fmt: skip
    record = story.engine.fleet.nodes["n"].gpus["0"]
    assert record.usable_bytes == 0
    story.wait(5, lambda s: s.used(0.5)).event(wire.DeviceOom(error="x", gpu="0"))
    assert "firing" in story.states
    assert not story.engine.defects
