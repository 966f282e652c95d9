"""Values that verl cannot count with: of another kind, none at all, or no share of anything."""

from pathlib import Path

import pytest
from tests.plan.test_batches import ACTOR, ARTICLE, ROLLOUT

from oomwatch.doctor.read import Source, read
from oomwatch.plan.checks.kinds import unsettles
from oomwatch.plan.problem import Problem
from oomwatch.plan.problems import problems_of
from oomwatch.plan.settings import Config

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
OF_VALUES = ("counts_are_positive", "number_is_wanted", "share_is_possible", "switch_is_wanted", "whole_is_wanted")
SHARE = f"{ROLLOUT}.gpu_memory_utilization"


def told(config: Config, version: str = "0.9.1") -> list[Problem]:
    return [one for one in problems_of({**ARTICLE, **config}, version) if one.check in OF_VALUES]


@pytest.mark.parametrize("version", ["0.4.0", "0.6.1", "0.9.1"])
@pytest.mark.parametrize(
    ("key", "value", "check", "said", "suggestion"),
    [
        ("data.max_response_length", "x", "whole_is_wanted", '"x"', "512"),
        (f"{ROLLOUT}.tensor_model_parallel_size", True, "whole_is_wanted", "true", "2"),
        (f"{ACTOR}.ppo_mini_batch_size", None, "whole_is_wanted", "null", "256"),
        ("trainer.n_gpus_per_node", 8.5, "whole_is_wanted", "8.5", "8"),
        (f"{ACTOR}.ppo_micro_batch_size_per_gpu", "8", "whole_is_wanted", '"8"', "8"),
        (f"{ACTOR}.optim.lr", "fast", "number_is_wanted", '"fast"', "1e-06"),
        (SHARE, "half", "number_is_wanted", '"half"', "0.5"),
        (SHARE, None, "number_is_wanted", "null", "0.5"),
        (f"{ACTOR}.use_dynamic_bsz", "off", "switch_is_wanted", '"off"', "False"),
    ],
)
def test_a_value_of_another_kind_stops_and_is_told_with_one_that_does_not(
    version: str, key: str, value: bool | float | str | None, check: str, said: str, suggestion: str
) -> None:
    (found,) = [one for one in told({key: value}, version) if one.key == key]
    assert (found.severity, found.check, found.numbers["told"]) == ("error", check, said)
    assert (found.numbers["setting"], found.suggestion) == (key, f"{key}={suggestion}")


def test_what_verl_takes_for_true_or_for_never_is_told_and_does_not_stop() -> None:
    (switch,) = told({f"{ACTOR}.use_kl_loss": 1})
    assert (switch.severity, switch.numbers["taken"], switch.suggestion) == (
        "warning",
        "true",
        f"{ACTOR}.use_kl_loss=True",
    )
    (never,) = told({"trainer.test_freq": False})
    assert (never.severity, never.check, unsettles(never), unsettles(switch)) == (
        "warning",
        "number_is_wanted",
        False,
        True,
    )


@pytest.mark.parametrize(
    "config",
    [
        {f"{ACTOR}.optim.lr": 1},
        {f"{ROLLOUT}.top_p": 0.9},
        {f"{ROLLOUT}.max_num_seqs": None},
        {"trainer.n_gpus_per_node": "$GPUS"},
        {"critic.ppo_mini_batch_size": "x"},
        {f"{ACTOR}.ppo_micro_batch_size": None},
        {f"{ACTOR}.fsdp_config.fsdp_size": -1},
        {SHARE: 1},
    ],
)
def test_what_verl_takes_or_a_run_does_not_use_is_let_alone(config: Config) -> None:
    assert told(config) == []


def test_a_setting_that_follows_a_wrong_one_is_not_told_of_beside_it() -> None:
    config = {"data.max_response_length": "x", f"{ROLLOUT}.response_length": "x"}
    assert [one.key for one in told(config)] == ["data.max_response_length"]


@pytest.mark.parametrize("share", [7, 0, -0.5, 1.01])
@pytest.mark.parametrize("key", [SHARE, "reward.reward_model.rollout.gpu_memory_utilization"])
def test_a_share_that_is_none_is_refused(key: str, share: float) -> None:
    (found,) = told({key: share})
    assert (found.severity, found.check, found.key, found.numbers["within"]) == (
        "error",
        "share_is_possible",
        key,
        "(0, 1]",
    )
    assert unsettles(found)


def test_a_share_in_per_cent_is_taken_for_what_was_meant() -> None:
    (found,) = told({SHARE: 85})
    assert found.suggestion == f"{SHARE}=0.85"


def test_a_part_that_is_offloaded_may_be_nothing() -> None:
    key = f"{ACTOR}.optim.override_optimizer_config.optimizer_offload_fraction"
    assert told({key: 0}) == []
    assert [one.numbers["within"] for one in told({key: 2})] == ["[0, 1]"]


@pytest.mark.parametrize("count", [0, -1])
@pytest.mark.parametrize(
    "key",
    [
        "data.max_response_length",
        "data.train_batch_size",
        "trainer.nnodes",
        f"{ROLLOUT}.n",
        f"{ROLLOUT}.max_num_seqs",
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu",
        f"{ACTOR}.ulysses_sequence_parallel_size",
    ],
)
def test_a_count_of_nothing_is_refused_as_it_was_written(key: str, count: int) -> None:
    (found,) = [one for one in told({key: count}) if one.key == key]
    assert (found.severity, found.check) == ("error", "counts_are_positive")
    assert found.numbers == {"setting": key, "told": count, "least": 1}


def test_a_limit_of_tokens_counts_only_where_batches_are_cut_by_them() -> None:
    limit = {f"{ACTOR}.ppo_max_token_len_per_gpu": 0}
    assert told(limit) == []
    dynamic = told({**limit, f"{ACTOR}.use_dynamic_bsz": True})
    assert f"{ACTOR}.ppo_max_token_len_per_gpu" in {one.key for one in dynamic}


@pytest.mark.parametrize("folder", sorted(FIXTURES.glob("verl-*")), ids=lambda path: path.name)
def test_what_real_runs_were_configured_with_has_no_such_problem(folder: Path) -> None:
    reading = read([Source("driver.log", (folder / "driver.log").read_bytes())])
    config = {**reading.emptied, **reading.config}
    assert [one for one in problems_of(config, reading.version) if one.check in OF_VALUES] == []
