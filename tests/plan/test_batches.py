"""The arithmetic of verl's batches, with the numbers of the article that users know it from."""

import pytest

from oomwatch.plan.batches import Batches, batches_of
from oomwatch.plan.settings import Config

ACTOR, ROLLOUT, REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"


def grpo(
    prompts: int, gpus: int, *, mini: int, micro: int, n: int, tp: int = 1, log_prob: int, nodes: int = 1
) -> dict[str, int | float | str | bool]:
    """A run as the article's templates give it: no critic, a reference for the loss."""
    return {
        "algorithm.adv_estimator": "grpo",
        "data.train_batch_size": prompts,
        "trainer.nnodes": nodes,
        "trainer.n_gpus_per_node": gpus,
        f"{ACTOR}.ppo_mini_batch_size": mini,
        f"{ACTOR}.ppo_micro_batch_size_per_gpu": micro,
        f"{ACTOR}.use_kl_loss": True,
        f"{ROLLOUT}.n": n,
        f"{ROLLOUT}.tensor_model_parallel_size": tp,
        f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": log_prob,
        f"{REF}.log_prob_micro_batch_size_per_gpu": log_prob,
    }


def line_of(batches: Batches, name: str, phase: str | None = None) -> str:
    """A line as a person reads it: "60 × 12 = 720"."""
    found = next(line for line in batches.working if (line.name, line.phase) == (name, phase))
    return f"{found.formula} = {found.value}"


ARTICLE = grpo(60, 6, mini=60, micro=8, n=12, tp=2, log_prob=8)


def test_the_articles_worked_example_comes_out_as_the_article_says() -> None:
    found = batches_of(ARTICLE)
    assert (found.gpus, found.sequences_per_step, found.ppo_mini_batch_size_per_gpu) == (6, 720, 120)
    assert (found.micro_batches_per_update, found.rollout_replicas) == (15, 3)
    assert (found.prompts_per_replica, found.sequences_per_replica) == (20, 240)


def test_the_working_shows_the_users_own_numbers() -> None:
    found = batches_of(ARTICLE)
    assert line_of(found, "sequences_per_step") == "60 × 12 = 720"
    assert line_of(found, "ppo_mini_batch_size_per_gpu") == "60 × 12 / 6 = 120"
    assert line_of(found, "micro_batches_per_update") == "120 / 8 = 15"
    assert line_of(found, "rollout_replicas") == "6 / 2 = 3"
    assert line_of(found, "sequences_per_replica") == "20 × 12 = 240"


TEMPLATES = {
    # name: (configuration, sequences a step, a GPU's share, engines, sequences an engine)
    "1-2 GPUs, 7-13B": (grpo(16, 2, mini=16, micro=4, n=8, tp=1, log_prob=4), 128, 64, 2, 64),
    "6-8 GPUs, 13-34B": (grpo(48, 8, mini=48, micro=6, n=12, tp=2, log_prob=6), 576, 72, 4, 144),
    "4 nodes of 8 GPUs": (
        {
            **grpo(128, 8, nodes=4, mini=128, micro=8, n=8, tp=2, log_prob=4),
            f"{ACTOR}.ulysses_sequence_parallel_size": 4,
            "actor_rollout_ref.model.use_remove_padding": True,
        },
        1024,
        128,
        16,
        64,
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_articles_templates_come_out_as_the_article_says(name: str) -> None:
    config, sequences, of_gpu, engines, of_engine = TEMPLATES[name]
    found = batches_of(config)
    assert (found.sequences_per_step, found.sequences_per_gpu) == (sequences, of_gpu)
    assert (found.rollout_replicas, found.sequences_per_replica) == (engines, of_engine)
    assert found.ppo_mini_batch_size_per_gpu == of_gpu  # one mini batch a step


def test_what_nobody_told_is_verls_default_and_said_to_be_so() -> None:
    config: Config = {"data.train_batch_size": 64, f"{ROLLOUT}.n": 4}
    line = next(line for line in batches_of(config, "0.7.1").working if line.name == "data_parallel_size")
    assert (line.value, line.formula) == (8, "8 / 1")
    assert line.assumed == ("trainer.nnodes", "trainer.n_gpus_per_node", f"{ACTOR}.ulysses_sequence_parallel_size")


def test_what_has_no_default_is_missing_and_named() -> None:
    found = batches_of({"data.train_batch_size": 64})
    line = next(line for line in found.working if line.name == "micro_batches_per_update")
    assert (line.value, line.formula, line.missing) == (None, "", (f"{ACTOR}.ppo_micro_batch_size_per_gpu",))


def test_the_gpus_that_share_a_sequence_see_the_same_data() -> None:
    found = batches_of({**ARTICLE, f"{ACTOR}.ulysses_sequence_parallel_size": 2})
    assert (found.sequence_parallel_size, found.data_parallel_size, found.ppo_mini_batch_size_per_gpu) == (2, 3, 240)


def test_megatrons_groups_are_tensor_pipeline_and_context_parallel() -> None:
    megatron = {f"{ACTOR}.megatron.{way}_model_parallel_size": 2 for way in ("tensor", "pipeline")}
    found = batches_of({**ARTICLE, "trainer.n_gpus_per_node": 8, f"{ACTOR}.strategy": "megatron", **megatron})
    assert (found.strategy, found.model_parallel_size, found.data_parallel_size) == ("megatron", 4, 2)
    assert line_of(found, "model_parallel_size") == "2 × 2 × 1 = 4"


def test_dynamic_batches_are_cut_by_tokens_in_every_phase() -> None:
    dynamic = {f"{ACTOR}.use_dynamic_bsz": True, f"{ACTOR}.ppo_max_token_len_per_gpu": 12000}
    found = batches_of({**ARTICLE, **dynamic})
    assert [phase.phase for phase in found.phases] == ["old_log_prob", "ref", "update_actor"]
    assert {(phase.is_dynamic, phase.tokens_per_micro_batch) for phase in found.phases} == {(True, 12000)}
    assert found.micro_batches_per_update is None


def test_a_pass_holds_at_most_its_sequences_at_their_longest() -> None:
    lengths = {"data.max_prompt_length": 1024, "data.max_response_length": 3072}
    actor = batches_of({**ARTICLE, **lengths}).phase("update_actor")
    assert actor is not None
    assert (actor.micro_batch_size_per_gpu, actor.tokens_per_micro_batch) == (8, 8 * 4096)


def test_the_deprecated_batch_of_all_gpus_is_divided_among_the_ranks() -> None:
    config = {key: value for key, value in ARTICLE.items() if key != f"{ACTOR}.ppo_micro_batch_size_per_gpu"}
    found = batches_of({**config, f"{ACTOR}.ppo_micro_batch_size": 48}, "0.6.1")
    assert (found.micro_batches_per_update, line_of(found, "micro_batch_size_per_gpu", "update_actor")) == (
        15,
        "48 / 6 = 8",
    )
