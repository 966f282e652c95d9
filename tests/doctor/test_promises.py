"""What the doctor promises only as far as it knows: of phases, GPUs and releases that a configuration does not tell."""

import pytest
from tests.doctor.cases import ACTOR, ARTICLE, ROLLOUT, given, report

from oomwatch.doctor.read import Source, read
from oomwatch.doctor.report import make_report
from oomwatch.doctor.result import Report

OLD = f"""\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo data.train_batch_size=64 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-3B-Instruct {ACTOR}.ppo_mini_batch_size=64 \\
    {ACTOR}.ppo_micro_batch_size=64 {ROLLOUT}.log_prob_micro_batch_size=64 {ROLLOUT}.name=vllm
"""
RECIPE = f"""\
ray job submit -- python3 -m recipe.dapo.main_dapo algorithm.adv_estimator=grpo \\
    data.train_batch_size=512 {ROLLOUT}.n=16 {ACTOR}.ppo_mini_batch_size=32 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-32B {ACTOR}.use_dynamic_bsz=True \\
    trainer.n_gpus_per_node=8 trainer.nnodes=16
"""


def told_by(text: str, *overrides: str) -> Report:
    """Of a script whose release nobody tells."""
    return make_report(read([Source("train.sh", text)], overrides), given("H100"))


def test_nothing_is_promised_of_phases_whose_passes_have_no_known_size() -> None:
    text = ARTICLE.replace(f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=8", "")
    micro = f"{ACTOR}.ppo_micro_batch_size_per_gpu=4"
    made = told_by(text, f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=$MICRO", micro)
    assert "old_log_prob" not in [one.phase for one in made.memory]
    assert "Fits" not in made.headline
    assert f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu" in made.headline
    assert made.verdict in ("unknown", "refused")
    assert "phases" in [one.what for one in made.missing]


def test_nothing_is_estimated_for_a_number_of_gpus_that_nobody_tells() -> None:
    made = told_by(ARTICLE.replace("trainer.nnodes=1", "trainer.nnodes=$NODES"))
    assert (made.verdict, made.memory) == ("unknown", ())
    assert [one.what for one in made.missing] == ["gpus"]
    assert "--nodes" in made.headline
    assert told_by(ARTICLE.replace("trainer.nnodes=1", "trainer.nnodes=$NODES"), "trainer.nnodes=1").memory


def test_a_release_that_no_longer_reads_a_deprecated_setting_is_not_taken_for_the_one() -> None:
    made = told_by(OLD)
    assert made.version.value < "0.8"
    assert made.verdict != "refused"
    newer = told_by(OLD, f"{ACTOR}.ppo_micro_batch_size_per_gpu=8", f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=8")
    assert newer.version.value > "0.8"


@pytest.mark.parametrize(
    ("text", "version", "severity"),
    [(RECIPE, None, "warning"), (ARTICLE, None, "warning"), (ARTICLE, "0.9", "error"), (ARTICLE, "0.5", None)],
)
def test_a_missing_engine_stops_only_releases_and_programs_without_a_default_for_it(
    text: str, version: str | None, severity: str | None
) -> None:
    reading = read([Source("train.sh", text.replace(f"{ROLLOUT}.name=vllm", ""))], version=version)
    found = [one for one in reading.complaints if one.values.get("key") == f"{ROLLOUT}.name"]
    assert [one.severity for one in found] == ([severity] if severity else [])


def test_a_path_whose_last_part_is_known_is_no_matter() -> None:
    text = ARTICLE.replace("Qwen/Qwen2.5-7B-Instruct", "$HOME/models/Qwen2.5-7B-Instruct")
    made = told_by(text, f"{ROLLOUT}.n=12")
    assert made.model is not None
    assert [one for one in made.problems if "HOME" in one.message] == []
    unclear = told_by(ARTICLE.replace("Qwen/Qwen2.5-7B-Instruct", "/models/$NAME"))
    assert [one.severity for one in unclear.problems if "NAME" in one.message] == ["info"]


def test_the_length_is_no_limit_where_the_data_are_known_to_be_shorter() -> None:
    made = report("data.train_files=/data/gsm8k/train.parquet")
    assert "data.max_response_length" not in [one.key for one in made.largest]
    assert "data.max_response_length" in [one.key for one in report().largest]


@pytest.mark.parametrize(
    ("overrides", "known"),
    [
        (("data.train_files=/data/gsm8k/train.parquet",), True),
        (("data.train_files=[/data/gsm8k/train.parquet,/data/math/train.parquet]",), False),
        (("data.train_files=/data/gsm8k/train.parquet", "actor_rollout_ref.model.path=Qwen/Qwen3-8B"), False),
        (
            (
                "data.train_files=/data/gsm8k/train.parquet",
                "actor_rollout_ref.model.path=deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
            ),
            False,
        ),
    ],
)
def test_only_answers_without_thoughts_to_known_questions_have_a_known_length(
    overrides: tuple[str, ...], known: bool
) -> None:
    assert any("usually" in one for one in report(*overrides).assumed) is known


def test_a_sentence_within_the_headline_ends_once() -> None:
    made = report(text=ARTICLE.replace(f"{ROLLOUT}.name=vllm", ""))
    assert made.verdict == "refused"
    assert ".." not in made.headline
    assert ". (" not in made.headline


def test_the_number_of_cards_is_not_made_up() -> None:
    made = told_by(ARTICLE.replace("trainer.nnodes=1", "trainer.nnodes=$NODES"))
    assert made.derived["gpus"] is None


def test_code_in_a_page_is_read_without_the_page() -> None:
    page = f"# How to train\n\nRun *this*:\n\n```bash\n{ARTICLE}```\n\nIt's that simple.\n"
    reading = read([Source("README.md", page)])
    found = reading.setting("data.train_batch_size")
    assert found is not None
    assert (found.value, found.origin.line) == (60, 8)


def test_an_array_that_doubles_itself_is_stopped_before_it_takes_long() -> None:
    doubling = "\n".join(f'A{n}=("${{A{n - 1}[@]}}" "${{A{n - 1}[@]}}")' for n in range(1, 40))
    script = f'A0=(x x x x)\n{doubling}\npython -m verl.trainer.main_ppo "${{A39[@]}}"\n'
    with pytest.raises(Exception, match="expands_too_far") as stopped:
        read([Source("train.sh", script)])
    assert getattr(stopped.value, "line", 99) < 16
