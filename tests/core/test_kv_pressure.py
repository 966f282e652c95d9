"""A full KV cache slows a rollout down: by the engines' pages, or by what the trainer counts."""

import pytest
from tests.core.story import Story, rules_of, shipped

from oomwatch import wire
from oomwatch.core.preemptions import LATELY_SECONDS, Preemptions
from oomwatch.rulefile import RuleFileError

RULES = shipped("kv_cache_pressure")


def engine(
    kv: float, *, waiting: int = 0, running: int = 200, preemptions: int = 0, address: str = "127.0.0.1:8000"
) -> wire.EngineSample:
    return wire.EngineSample(
        engine="vllm", address=address, kv_used_ratio=kv, requests_running=running, requests_waiting=waiting,
        preemptions_total=preemptions,
    )  # fmt: skip


def tell(story: Story, seconds: int, *engines: wire.EngineSample) -> Story:
    """The same page, read every ten seconds."""

    def read(told: Story) -> None:
        if told.now % 10 == 0:
            told._observe(wire.Sample(seq=int(told.now), at=told.now, engines=engines), "n")

    return story.wait(seconds, read)


def test_a_full_cache_with_more_waiting_than_running_is_told_of_after_a_minute() -> None:
    story = tell(Story(RULES, run="r"), 100, engine(0.99, waiting=300))
    (told,) = story.heard
    assert (told.severity, told.state, told.labels) == ("info", "firing", {"node": "n", "run": "r"})
    assert (told.value, told.facts["requests_waiting"], told.facts["engines"]) == (0.99, 300, 1)


def test_requests_that_are_put_back_count_as_well() -> None:
    story = Story(RULES, run="r")
    for minute in range(4):
        tell(story, 60, engine(0.98, preemptions=5 + 7 * minute))
    assert story.heard[0].facts["preemptions"] == 7


def test_a_full_cache_in_which_everybody_runs_is_well_used() -> None:
    assert tell(Story(RULES, run="r"), 300, engine(0.99, waiting=10, preemptions=40)).heard == []


def test_waiting_before_an_empty_cache_is_no_pressure() -> None:
    assert tell(Story(RULES, run="r"), 300, engine(0.4, waiting=900)).heard == []


def test_of_several_engines_the_one_is_named_that_suffers_most() -> None:
    worse, fine = engine(0.97, waiting=500, address="127.0.0.1:8001"), engine(0.5, address="127.0.0.1:8002")
    story = tell(Story(RULES, run="r"), 100, engine(0.99, waiting=300), worse, fine)
    assert (story.heard[0].facts["address"], story.heard[0].facts["engines"]) == ("127.0.0.1:8001", 2)


def test_where_it_eases_the_alert_ends() -> None:
    story = tell(Story(RULES, run="r"), 100, engine(0.99, waiting=300))
    tell(story, 700, engine(0.6))
    assert story.states == ["firing", "resolved"]


def step(story: Story, number: int, mean: float | None) -> None:
    story.wait(100).event(wire.Step(step=number, step_seconds=100.0, preemptions_mean=mean))


def test_where_engines_have_no_page_the_trainers_count_speaks() -> None:
    story = Story(RULES, run="r")
    for number, mean in enumerate((0.0, 0.0, 0.0, 0.0, 1.5, 2.0, 2.5), start=1):
        step(story, number, mean)
    (told,) = story.heard
    assert told.labels == {"run": "r"}
    assert (told.value, told.facts["step"]) == (2.0, 6)


def test_one_step_with_sequences_put_back_is_nothing_to_tell() -> None:
    story = Story(RULES, run="r")
    for number, mean in enumerate((0.0, 0.0, 0.0, 0.0, 1.5, 0.0, 0.0, 0.0), start=1):
        step(story, number, mean)
    assert story.heard == []


def test_a_counter_that_began_anew_has_not_risen() -> None:
    counters = Preemptions()
    counters.observe([engine(0.9, preemptions=50)], 0.0)
    counters.observe([engine(0.9, preemptions=60)], 10.0)
    assert counters.lately("127.0.0.1:8000", 20.0) == 10
    assert counters.lately("127.0.0.1:8000", 11.0 + LATELY_SECONDS) == 0
    counters.observe([engine(0.9, preemptions=3)], 20.0)
    assert counters.lately("127.0.0.1:8000", 20.0) == 0


def test_a_bound_that_is_no_share_is_refused() -> None:
    with pytest.raises(RuleFileError, match="no share"):
        rules_of("    when: {kind: kv_pressure, above: 95}\n")
