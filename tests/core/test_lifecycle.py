"""Episodes: when an alert fires, when it ends, and what neither fires nor ends it."""

from tests.core.story import SHIPPED, Story, rules_of

from oomwatch import wire
from oomwatch.core.rule import RuleSet
from oomwatch.core.subject import Subject

HIGH = rules_of(
    "    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}\n    for: 30s\n    keep_firing_for: 60s\n"
)
FULL, FREE = 75.0, 20.0  # GiB of 80


def full(story: Story) -> None:
    story.used(FULL)


def free(story: Story) -> None:
    story.used(FREE)


def silent(story: Story) -> None:
    del story


def test_a_full_gpu_fires_after_its_hold_time() -> None:
    story = Story(HIGH).wait(29, full)
    assert story.heard == []
    story.wait(5, full)
    assert story.said == [(31.0, "it", "firing")]
    assert story.heard[0].started_at == 1.0


def test_a_free_gpu_is_not_mentioned() -> None:
    assert Story(HIGH).wait(600, free).heard == []


def test_an_alert_ends_after_it_has_not_been_met_for_its_time() -> None:
    story = Story(HIGH).wait(60, full).wait(120, free)
    assert [state for _, _, state in story.said] == ["firing", "resolved"]
    # The first quiet second is told at 61 s; sixty quiet seconds after it the alert is over.
    assert story.heard[1].at == 121.0
    assert story.heard[1].reason == "recovered"


def test_all_transitions_of_an_alert_carry_one_id_and_a_later_alert_another() -> None:
    story = Story(HIGH).wait(60, full).wait(1200, free).wait(60, full)
    first, ended, second = story.heard
    assert first.id == ended.id != second.id


def test_a_short_spell_leads_to_nothing() -> None:
    assert Story(HIGH).wait(20, full).wait(300, free).wait(20, full).wait(300, free).heard == []


def test_the_sawtooth_of_a_step_neither_resets_the_hold_time_nor_flaps() -> None:
    """Steps of 94 s, 12 s of them above the bound: once the rhythm is known, 30 s add up over three."""
    story = Story(HIGH)
    for number in range(1, 11):
        story.wait(12, full).wait(82, free).step(number)
    assert story.states == ["firing"]
    assert 3 * 94 < story.heard[0].at <= 4 * 94


def test_without_a_trainer_the_gap_between_spells_is_learned() -> None:
    """A gap longer than keep_firing_for ends the alert once; from then on the rhythm is known."""
    story = Story(HIGH)
    for _ in range(10):
        story.wait(40, full).wait(100, free)
    assert story.states == ["firing", "resolved", "firing"]


def test_missing_data_never_resolves_an_alert() -> None:
    story = Story(HIGH).wait(60, full).wait(3600, silent)
    assert story.states == ["firing"]
    story.wait(200, free)
    assert story.states == ["firing", "resolved"]


def test_missing_data_does_not_count_towards_the_hold_time() -> None:
    """Ten seconds above, then a blind minute, then above again: only what was seen counts."""
    story = Story(HIGH).wait(10, full).wait(60, silent).wait(10, full)
    assert story.heard == []
    story.wait(10, full)
    assert story.states == ["firing"]


def test_a_gpu_that_does_not_answer_is_unknown_and_not_empty() -> None:
    story = Story(HIGH).wait(60, full)
    story.wait(600, lambda s: s.sample(wire.GpuSample(gpu="0", status="no_data")))
    assert story.states == ["firing"]


def test_each_gpu_has_its_own_alert() -> None:
    story = Story(HIGH, gpus=8)
    gpus = [wire.GpuSample(gpu=str(index), used_bytes=(75 if index < 3 else 20) * 2**30) for index in range(8)]
    story.wait(40, lambda s: s.sample(*gpus))
    assert [one.labels for one in story.heard] == [{"node": "n", "gpu": str(index)} for index in range(3)]


def test_a_late_sample_does_not_replace_a_newer_one() -> None:
    story = Story(HIGH).wait(60, full)
    story.sample(wire.GpuSample(gpu="0", used_bytes=0), at=story.now - 30)
    gpu = story.engine.fleet.nodes["n"].gpus["0"]
    assert gpu.sample is not None
    assert gpu.sample.used_bytes == int(FULL * 2**30)


def test_the_value_and_the_facts_are_those_of_the_latest_time_it_held() -> None:
    story = Story(HIGH).wait(40, lambda s: s.used(70.0)).wait(5, lambda s: s.used(76.0))
    assert story.heard[0].value == 70 / 80
    assert story.heard[0].limit == 0.85
    assert story.heard[0].unit == "ratio"
    (episode,) = story.engine.episodes()
    assert episode.verdict.facts == {"used_bytes": 76 * 2**30, "usable_bytes": 80 * 2**30}


def test_removing_a_rule_resolves_its_alerts_and_says_why() -> None:
    story = Story(HIGH).wait(60, full)
    (ended,) = story.engine.replace_rules(RuleSet(), story.now)
    assert (ended.state, ended.reason) == ("resolved", "rule removed")
    assert story.engine.episodes() == []


def test_changing_a_bound_keeps_the_alert_and_judges_it_anew() -> None:
    story = Story(HIGH).wait(60, full)
    higher = rules_of(
        "    when: {kind: threshold, metric: gpu_used_ratio, above: 99%}\n    for: 30s\n    keep_firing_for: 60s\n"
    )
    assert story.engine.replace_rules(higher, story.now) == []
    story.wait(120, full)
    assert story.states == ["firing", "resolved"]
    assert story.heard[0].id == story.heard[1].id


def test_an_open_alert_is_continued_after_a_restart_and_not_raised_again() -> None:
    before = Story(HIGH).wait(60, full)
    (firing,) = before.heard

    after = Story(HIGH)
    after.now = before.now + 20
    after.engine.recall(
        wire.Sample(seq=1, at=before.now, gpus=(wire.GpuSample(gpu="0", used_bytes=75 * 2**30),)), "n", after.now
    )
    assert after.engine.restore([firing], after.now) == []
    after.wait(60, full)
    assert after.heard == []
    after.wait(200, free)
    assert [(one.id, one.state) for one in after.heard] == [(firing.id, "resolved")]


def test_an_open_alert_whose_rule_is_gone_is_resolved_at_the_restart() -> None:
    (firing,) = Story(HIGH).wait(60, full).heard
    (ended,) = Story(RuleSet()).engine.restore([firing], 100.0)
    assert (ended.id, ended.state, ended.reason) == (firing.id, "resolved", "rule removed")


def test_recalling_stored_messages_raises_nothing() -> None:
    story = Story(SHIPPED)
    oom = wire.Event(seq=1, at=0.5, body=wire.DeviceOom(error="torch.OutOfMemoryError"), run="r")
    story.engine.recall(oom, "n", 1.0)
    assert story.heard == []


def test_the_same_story_told_twice_says_the_same() -> None:
    def tell() -> list[wire.Transition]:
        story = Story(SHIPPED, gpus=2)
        for number in range(1, 8):
            story.wait(20, full).wait(30, free).step(number, 200.0 if number == 6 else 30.0)
        return story.wait(900, silent).heard

    assert [wire.encode(one) for one in tell()] == [wire.encode(one) for one in tell()]
    assert len(tell()) > 2


def test_a_rule_that_needs_no_data_is_judged_of_every_kind_of_subject() -> None:
    """A run's signal that time alone moves would be judged on the grid as the node's silence is."""
    story = Story(RuleSet(), gpus=2, run="r")
    assert [list(story.engine.fleet.subjects(scope)) for scope in ("gpu", "node", "run")] == [
        [Subject("gpu", "n", "0"), Subject("gpu", "n", "1")],
        [Subject("node", "n")],
        [Subject("run", "r")],
    ]


def test_what_is_long_gone_is_forgotten_but_for_what_has_an_open_alert() -> None:
    story = Story(HIGH, run="r").wait(60, full)
    story.run = None
    story.hello("idle")
    assert story.engine.forget(before=30.0) == ([], ["r"])
    assert story.engine.forget(before=1000.0) == (["idle"], [])
    story.wait(200, free)
    assert story.engine.forget(before=1000.0) == (["n"], [])
    assert story.states == ["firing", "resolved"]
