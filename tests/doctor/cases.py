"""Configurations to be doctored."""

from oomwatch.doctor.read import Reading, Source, read
from oomwatch.doctor.report import Given, Report, make_report
from oomwatch.plan.cards import card_named
from oomwatch.plan.models import shape_named

ACTOR, ROLLOUT, REF = (f"actor_rollout_ref.{part}" for part in ("actor", "rollout", "ref"))
# The worked example of the article on micro batches: 60 prompts, 6 GPUs, 12 samples, tensor parallel 2.
ARTICLE = f"""\
python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=60 data.max_prompt_length=1024 data.max_response_length=4096 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
    {ACTOR}.ppo_mini_batch_size=60 {ACTOR}.ppo_micro_batch_size_per_gpu=8 {ACTOR}.use_kl_loss=True \\
    {ROLLOUT}.name=vllm {ROLLOUT}.n=12 {ROLLOUT}.tensor_model_parallel_size=2 \\
    {ROLLOUT}.log_prob_micro_batch_size_per_gpu=8 {REF}.log_prob_micro_batch_size_per_gpu=8 \\
    trainer.n_gpus_per_node=6 trainer.nnodes=1
"""


def reading(*overrides: str, text: str = ARTICLE, name: str = "train.sh", version: str = "0.9.1") -> Reading:
    return read([Source(name, text)], overrides, version)


def given(card: str | None = "H100", model: str | None = None) -> Given:
    return Given(
        card=card_named(card) if card else None,
        shape=shape_named(model) if model else None,
    )


def report(*overrides: str, card: str | None = "H100", text: str = ARTICLE, version: str = "0.9.1") -> Report:
    return make_report(reading(*overrides, text=text, version=version), given(card))
