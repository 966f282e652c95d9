"""What the doctor would change: tried on the estimate, priced, never refused, and cheap before dear."""

from collections.abc import Mapping

import pytest
from tests.doctor.cases import ACTOR, ARTICLE, ROLLOUT, given, reading, report

from oomwatch import wire
from oomwatch.doctor.case import Case
from oomwatch.doctor.changed import Changeable
from oomwatch.doctor.outcome import line_of
from oomwatch.doctor.read import Source, read
from oomwatch.doctor.report import make_report
from oomwatch.doctor.result import Report

MICRO = f"{ACTOR}.ppo_micro_batch_size_per_gpu"
LOG_PROB = f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"


def again(made: Report, overrides: tuple[str, ...], *more: str) -> Report:
    """The report with changes written as overrides behind the others, as a person would copy them."""
    assert made.card is not None
    return make_report(reading(*overrides, *more), given(made.card.name))


@pytest.mark.parametrize(
    "overrides",
    [
        (f"{LOG_PROB}=40",),
        (f"{MICRO}=40",),
        (f"{ACTOR}.use_dynamic_bsz=True", f"{ACTOR}.ppo_max_token_len_per_gpu=65536"),
        ("actor_rollout_ref.model.path=Qwen/Qwen2.5-32B", f"{ROLLOUT}.gpu_memory_utilization=0.9"),
        ("algorithm.adv_estimator=gae", "critic.ppo_micro_batch_size_per_gpu=40"),
    ],
)
def test_every_advice_does_what_it_says_when_it_is_copied(overrides: tuple[str, ...]) -> None:
    made = report(*overrides)
    assert made.advice
    for advice in made.advice:
        changed = again(made, overrides, advice.override)
        assert [one for one in changed.problems if one.severity == "error"] == []
        assert changed.verdict == advice.outcome.verdict
        assert changed.peak_phase == advice.outcome.peak_phase
        assert (changed.verdict == "fits") == advice.enough
        if advice.frees_bytes is not None:
            before, after = (next(m for m in one.memory if m.phase == advice.phase) for one in (made, changed))
            assert before.expected_bytes - after.expected_bytes == advice.frees_bytes


@pytest.mark.parametrize("card", ["H100", "A100 40GB", "H200"])
def test_the_changes_to_make_together_do_what_they_say_when_they_are_copied(card: str) -> None:
    overrides = (f"{LOG_PROB}=32", f"{MICRO}=7")
    made = report(*overrides, card=card)
    assert made.plan is not None
    changed = again(made, overrides, *made.plan.override.split(" "))
    assert changed.verdict == made.plan.outcome.verdict
    assert (changed.verdict == "fits") == made.plan.enough
    assert [one for one in changed.problems if one.severity == "error"] == []


def test_none_of_the_changes_to_make_together_is_idle() -> None:
    made = report(f"{LOG_PROB}=40", f"{MICRO}=40", card="A100 40GB")
    assert made.plan is not None
    case = Case(reading(f"{LOG_PROB}=40", f"{MICRO}=40"), given("A100 40GB"))
    changes = {change.key: change.value_to for change in made.plan.changes}
    whole = case.look(changes).excess_bytes
    for key in changes:
        assert case.look({one: value for one, value in changes.items() if one != key}).excess_bytes > whole


def test_what_is_enough_comes_first_and_the_cheapest_of_it() -> None:
    advice = report(f"{LOG_PROB}=15").advice
    enough = [one for one in advice if one.enough]
    assert list(advice[: len(enough)]) == enough
    assert [one.price_level for one in enough] == sorted(one.price_level for one in enough)
    assert all(one.price and one.effect and one.source for one in advice)


def test_what_is_refused_is_mended_first() -> None:
    plan = report(f"{MICRO}=7", card="H200").plan
    assert plan is not None
    assert [change.override for change in plan.changes] == [f"{MICRO}=6"]
    assert plan.changes[0].price is None
    assert plan.diff == f"-{MICRO}: 7\n+{MICRO}: 6"
    assert plan.enough


def test_a_refused_configuration_without_a_card_is_mended_too() -> None:
    made = report(f"{MICRO}=7", card=None)
    assert made.plan is not None
    assert made.headline.endswith(f"; with {MICRO}=6 it starts")


def test_a_value_that_verl_would_refuse_gives_way_to_the_nearest_lower_one_that_it_takes() -> None:
    for size in (24, 30, 40, 60):
        smaller = next(one for one in report(f"{LOG_PROB}={size}").advice if one.key == LOG_PROB)
        assert isinstance(smaller.value_to, int)
        assert 120 % smaller.value_to == 0


def test_what_changes_what_is_learned_is_advised_last() -> None:
    made = report("actor_rollout_ref.model.path=Qwen/Qwen2.5-72B", "trainer.n_gpus_per_node=6")
    levels = [one.price_level == 4 for one in made.advice if not one.enough]
    assert levels == sorted(levels)


def test_with_fsdp2_a_model_that_is_too_large_may_work_from_the_host() -> None:
    def remedies(strategy: str) -> set[str]:
        made = report("actor_rollout_ref.model.path=Qwen/Qwen2.5-32B", f"{ACTOR}.strategy={strategy}")
        return {one.remedy for one in made.advice}

    assert "work_from_host" in remedies("fsdp2")
    assert "work_from_host" not in remedies("fsdp")


def test_a_setting_that_is_nowhere_is_added_with_a_plus() -> None:
    case = Case(reading(), given())
    assert line_of(case, MICRO, 4) == f"{MICRO}=4"
    assert line_of(case, "data.unheard_of", 4) == "+data.unheard_of=4"


CHANGED: tuple[Mapping[str, wire.ConfigValue], ...] = (
    {f"{ACTOR}.ppo_max_token_len_per_gpu": 4096},
    {f"{ROLLOUT}.n": 3, "data.train_batch_size": 12},
    {"data.max_response_length": 512},
    {f"{ACTOR}.use_dynamic_bsz": True},
    {"actor_rollout_ref.model.path": "Qwen/Qwen3-8B", "trainer.n_gpus_per_node": 2},
    {f"{ACTOR}.fsdp_config.param_offload": True},
)


@pytest.mark.parametrize("changes", CHANGED, ids=" ".join)
@pytest.mark.parametrize("version", ["0.4", "0.7.1", "0.9.1"])
def test_a_change_has_the_same_consequences_as_the_override_that_is_read(
    changes: Mapping[str, wire.ConfigValue], version: str
) -> None:
    """Settings that refer to the changed one follow it in both ways."""
    sources = [Source("train.sh", ARTICLE)]
    overrides = [f"{key}={value}" for key, value in changes.items()]
    assert Changeable(read(sources, (), version)).config(changes) == read(sources, overrides, version).config
