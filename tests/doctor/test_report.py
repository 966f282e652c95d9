"""The report: what a configuration means, what would be refused, and whether it fits."""

from pathlib import Path

import msgspec
from msgspec import structs
from tests.doctor.cases import ACTOR, ARTICLE, REF, ROLLOUT, given, reading, report

import oomwatch.doctor
from oomwatch.catalogue import entries
from oomwatch.doctor.report import make_report
from oomwatch.doctor.result import Report
from oomwatch.figures import figure

MICRO = f"{ACTOR}.ppo_micro_batch_size_per_gpu"


def test_the_articles_example_comes_to_the_articles_numbers() -> None:
    derived = report().derived
    told = {
        "gpus": 6,
        "sequences_per_step": 720,
        "ppo_mini_batch_size_per_gpu": 120,
        "micro_batches_per_update": 15,
        "rollout_replicas": 3,
        "prompts_per_replica": 20,
        "sequences_per_replica": 240,
    }
    assert {name: derived[name] for name in told} == told


def test_the_json_has_the_documented_fields_with_the_documented_names() -> None:
    made = report(f"{MICRO}=7", card="A100 40GB")
    told = msgspec.json.decode(msgspec.json.encode(made), type=dict[str, object])
    assert {"derived", "problems", "shadowed", "memory", "advice"} <= set(told)
    rows = msgspec.to_builtins(made)
    assert {"severity", "key", "message", "suggestion"} <= set(rows["problems"][0])
    assert {"key", "value", "loses_to"} <= set(rows["shadowed"][0])
    assert {"phase", "low_bytes", "expected_bytes", "high_bytes", "capacity_bytes", "verdict"} <= set(rows["memory"][0])
    assert msgspec.json.decode(msgspec.json.encode(made), type=Report) == made


def test_every_line_of_the_arithmetic_has_the_users_numbers() -> None:
    lines = {(line.name, line.phase): line for line in report().working}
    sequences = lines["sequences_per_step", None]
    assert (sequences.formula, sequences.value, sequences.label) == ("60 × 12", 720, "Sequences in a step")
    assert sequences.assumed == ()


def test_what_nobody_told_is_said_to_be_verls_default() -> None:
    text = ARTICLE.replace("trainer.n_gpus_per_node=6 trainer.nnodes=1", "trainer.nnodes=1")
    line = next(line for line in report(text=text).working if line.name == "gpus")
    assert (line.value, line.assumed) == (8, ("trainer.n_gpus_per_node",))


def test_a_micro_batch_that_does_not_divide_is_refused_with_verls_words_and_the_nearest_that_do() -> None:
    made = report(f"{MICRO}=7")
    (error,) = [one for one in made.problems if one.severity == "error"]
    assert made.verdict == "refused"
    assert (error.key, error.valid, error.suggestion) == (MICRO, (6, 8), f"{MICRO}=6")
    assert error.verl_says == "data size must be divisible by force_group_size * micro_batch_size_per_gpu"
    assert made.headline.startswith("Would be refused at start: The mini batch of a GPU, 120 sequences")


def test_a_value_that_an_override_shadows_is_told_with_the_winner() -> None:
    (shadowed,) = report(f"{MICRO}=4").shadowed
    assert (shadowed.key, shadowed.value, shadowed.loses_to) == (MICRO, 8, "4 (command line)")
    assert shadowed.message == f"{MICRO}: 8 (train.sh:5) has no effect, command line sets 4"


def test_an_unknown_setting_is_told_once_with_the_nearest_known_one() -> None:
    made = report(f"+{ROLLOUT}.max_length=1024")
    (unknown,) = [one for one in made.problems if one.check == "unknown_key"]
    assert unknown.suggestion == "data.max_response_length=1024"
    assert [one.nearest for one in made.unknown] == ["data.max_response_length"]
    stopped = report("data.train_batch_sise=64")
    assert [one.severity for one in stopped.problems if one.key == "data.train_batch_sise"] == ["error"]


def test_how_far_a_setting_can_go_is_told_as_an_override() -> None:
    rows = {row.key: row for row in report().largest}
    row = rows[f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu"]
    assert row.override == f"{row.key}={row.value}"
    assert (row.now, row.phases) == (8, ("old_log_prob",))
    assert isinstance(row.value, int)
    assert isinstance(row.at_most, int)
    assert row.value <= row.at_most
    assert next(one.verdict for one in report(row.override).memory if one.phase == "old_log_prob") == "fits"
    assert isinstance(rows[f"{ROLLOUT}.gpu_memory_utilization"].value, float)


def test_what_fits_is_said_to_fit_with_what_is_left() -> None:
    made = report(f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=2", card="H200")
    assert made.verdict == "fits"
    assert made.headline.startswith("Fits: ")
    assert made.plan is None
    assert made.advice == ()


def test_what_does_not_fit_is_said_in_one_sentence_with_the_phase_and_the_figures() -> None:
    made = report(f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=40")
    assert made.verdict == "will_not_fit"
    assert made.peak_phase == "old_log_prob"
    assert made.headline.startswith("Will not fit: old log-prob needs ")
    assert "usable on GPU H100 80GB; with " in made.headline
    assert made.headline.endswith(" % left")


def test_a_host_that_is_too_small_is_told_too() -> None:
    small = structs.replace(given("H200"), host_bytes=20 * 2**30)
    made = make_report(reading(f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=2"), small)
    assert made.verdict == "will_not_fit"
    assert made.host is not None
    assert (made.host.verdict, made.host.capacity_bytes) == ("will_not_fit", 20 * 2**30)
    needs = figure(made.host.expected_bytes, "bytes", "en")
    assert made.headline.endswith(f" is left. The host will not hold it: {needs} of 20.0 GiB")


def test_no_change_of_settings_is_said_to_mend_the_text() -> None:
    made = report("data.unheard_of=1", f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu=40")
    assert made.verdict == "refused"
    assert "it fits" not in made.headline
    assert "; what to set beside it: " in made.headline


def test_the_parts_of_a_phase_add_up_to_what_is_expected_of_it() -> None:
    for phase in report().memory:
        assert sum(part.bytes for part in phase.parts) == phase.expected_bytes
        assert [part.bytes for part in phase.parts] == sorted((part.bytes for part in phase.parts), reverse=True)


def test_without_a_card_the_rest_is_told_and_how_to_name_one() -> None:
    made = report(card=None)
    assert made.verdict == "unknown"
    assert [one.what for one in made.missing] == ["card"]
    assert "--gpu H100" in made.headline
    assert made.derived["sequences_per_step"] == 720
    assert made.memory == ()


def test_a_model_that_nobody_knows_is_asked_for() -> None:
    made = report("actor_rollout_ref.model.path=/models/ours-v3")
    assert [one.what for one in made.missing] == ["model"]
    assert "ours-v3" in made.missing[0].message
    assert make_report(reading("actor_rollout_ref.model.path=/x"), given(model="Qwen3-8B")).model is not None


def test_what_is_wrong_with_a_text_is_said_in_either_language() -> None:
    made = make_report(reading(f"{MICRO}=7"), given(), "zh")
    assert made.headline.startswith("启动时会被拒绝：")
    assert made.working[0].label == "GPU 数"


def test_a_reference_log_prob_that_is_not_there_is_not_estimated() -> None:
    assert f"{REF}.log_prob_micro_batch_size_per_gpu" in ARTICLE
    phases = [one.phase for one in report(f"{ACTOR}.use_kl_loss=False").memory]
    assert "ref" not in phases


def test_every_sentence_of_the_catalogue_is_used() -> None:
    files = Path(oomwatch.doctor.__file__).parent.rglob("*.py")
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    own = {key for key in entries() if key.startswith(("doctor.report.", "doctor.text."))}
    verdicts = {"fits", "tight", "will_not_fit"}
    built = {f"doctor.report.headline.{verdict}" for verdict in verdicts | {"trouble"}}
    built |= {f"doctor.report.headline.{cure}" for cure in ("cure", "eases", "starts", "helps")}
    built |= {f"doctor.text.verdict.{verdict}" for verdict in verdicts}
    built |= {f"doctor.text.version.{how}" for how in ("told", "keys", "assumed")}
    built |= {f"doctor.text.template.article.{number}" for number in (1, 2)}
    built |= {"doctor.text.refused", "doctor.text.known"}
    assert {key for key in own if f'"{key}"' not in code and f"'{key}'" not in code} == built
