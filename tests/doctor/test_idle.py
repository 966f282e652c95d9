"""Settings that another one makes void are told as such, whoever beat whom before."""

import pytest
from tests.doctor.cases import ACTOR, REF, ROLLOUT, given

from oomwatch.doctor.read import Source, read
from oomwatch.doctor.report import Report, make_report

MICRO, TOKENS = f"{ACTOR}.ppo_micro_batch_size_per_gpu", f"{ACTOR}.ppo_max_token_len_per_gpu"
LOG_PROB, DYNAMIC = f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu", f"{ACTOR}.use_dynamic_bsz"
YAML = """\
data: {train_batch_size: 64, max_prompt_length: 1024, max_response_length: 4096}
actor_rollout_ref:
  model: {path: Qwen/Qwen2.5-7B-Instruct}
  actor:
    ppo_mini_batch_size: 64
    ppo_micro_batch_size_per_gpu: 8
    use_dynamic_bsz: true
  rollout: {name: vllm, n: 4, log_prob_micro_batch_size_per_gpu: 8}
algorithm: {adv_estimator: grpo}
trainer: {n_gpus_per_node: 8, nnodes: 1}
"""


def looked_at(*overrides: str, version: str = "0.9.1") -> Report:
    return make_report(read([Source("ppo.yaml", YAML)], overrides, version), given())


def idle(report: Report) -> dict[tuple[str, object], str]:
    return {(one.key, one.value): one.loses_to for one in report.shadowed}


@pytest.mark.parametrize("version", ["0.5", "0.7", "0.9.1"])
def test_dynamic_batches_make_every_micro_batch_void(version: str) -> None:
    by = f"{DYNAMIC}=true (ppo.yaml:7)"
    assert idle(looked_at(version=version)) == {(MICRO, 8): by, (LOG_PROB, 8): by}


def test_neither_of_two_void_values_is_said_to_win() -> None:
    report = looked_at(f"{MICRO}=16")
    by = f"{DYNAMIC}=true (ppo.yaml:7)"
    assert idle(report) == {(MICRO, 16): by, (MICRO, 8): by, (LOG_PROB, 8): by}
    assert [one.message for one in report.shadowed if one.value == 16] == [
        f"{MICRO}: 16 (command line) has no effect with {DYNAMIC}=true (ppo.yaml:7)"
    ]


def test_a_phase_with_a_switch_of_its_own_keeps_its_micro_batch() -> None:
    assert (LOG_PROB, 8) not in idle(looked_at(f"{ROLLOUT}.log_prob_use_dynamic_bsz=False"))


def test_a_limit_of_tokens_is_void_without_dynamic_batches() -> None:
    off = (f"{DYNAMIC}=False", f"{TOKENS}=20000")
    assert idle(looked_at(*off)) == {
        (TOKENS, 20000): f"{DYNAMIC}=false (command line)",
        (DYNAMIC, True): "false (command line)",
    }


def test_a_limit_that_another_phase_follows_is_not_void() -> None:
    found = idle(looked_at(f"{DYNAMIC}=False", f"{TOKENS}=20000", f"{ROLLOUT}.log_prob_use_dynamic_bsz=True"))
    assert (TOKENS, 20000) not in found
    assert found[LOG_PROB, 8] == f"{ROLLOUT}.log_prob_use_dynamic_bsz=true (command line)"


@pytest.mark.parametrize(
    ("override", "loses_to"),
    [
        (f"{REF}.fsdp_config.param_offload=True", f"{ACTOR}.use_kl_loss=false (verl 0.9.1)"),
        ("critic.ppo_max_token_len_per_gpu=9000", "algorithm.adv_estimator=grpo (ppo.yaml:9)"),
        (f"{ACTOR}.kl_loss_coef=0.01", f"{ACTOR}.use_kl_loss=false (verl 0.9.1)"),
    ],
)
def test_what_belongs_to_a_part_that_the_run_has_not_is_void(override: str, loses_to: str) -> None:
    key = override.partition("=")[0]
    assert [by for (name, _), by in idle(looked_at(override)).items() if name == key] == [loses_to]


def test_what_works_is_not_told() -> None:
    works = (f"{TOKENS}=20000", f"{ACTOR}.use_kl_loss=True", f"{ACTOR}.kl_loss_coef=0.01")
    assert not {key for key, _ in idle(looked_at(*works))} & {one.partition("=")[0] for one in works}
