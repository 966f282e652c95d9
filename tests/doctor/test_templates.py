"""The templates: in verl's own settings, in order for every release, and as the articles have them."""

from typing import Any

import pytest

from oomwatch.__main__ import main
from oomwatch.doctor.read import Source, read
from oomwatch.doctor.result import Report
from oomwatch.doctor.templates import Template, template_named, templates, versions
from oomwatch.doctor.templates.printed import Format, printed
from oomwatch.plan import verlkeys

GIB = 2**30
EACH = pytest.mark.parametrize("template", templates(), ids=lambda one: one.name)
RELEASES = [release for release in verlkeys.releases() if release >= "0.4"]


def named(name: str) -> Template:
    found = template_named(name)
    assert found is not None
    return found


def report(name: str) -> Report:
    return named(name).report("0.9.1", "en")


def test_there_are_the_articles_templates_for_verl_0_4_to_0_9() -> None:
    assert [one.name for one in templates()] == ["T1", "T2", "T3", "M1", "M2", "M3"]
    assert versions() == ("0.4", "0.5", "0.6", "0.7", "0.8", "0.9")


@pytest.mark.parametrize("version", RELEASES)
@EACH
def test_the_doctor_has_nothing_against_a_template_and_it_fits(template: Template, version: str) -> None:
    made = template.report(version, "en")
    assert [one for one in made.problems if one.severity != "info"] == []
    assert made.verdict == "fits"
    assert made.unknown == ()
    assert made.shadowed == ()


@pytest.mark.parametrize("form", ["yaml", "overrides", "script"])
@EACH
def test_what_is_printed_is_read_back_as_the_same_configuration(template: Template, form: Format) -> None:
    text = printed(template, "0.9.1", form, "en")
    again = read([Source("template", text)], (), "0.9.1")
    assert again.complaints == ()
    assert again.config == template.reading("0.9.1").config


@EACH
def test_no_setting_is_told_twice_and_every_comment_is_in_both_languages(template: Template) -> None:
    keys = [line.key for line in template.settings]
    assert len(set(keys)) == len(keys)
    assert all(bool(line.en) == bool(line.zh) for line in template.settings)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("M1", {"gpus": 2, "sequences_per_step": 128, "ppo_mini_batch_size_per_gpu": 64}),
        (
            "M2",
            {"gpus": 8, "sequences_per_step": 576, "rollout_replicas": 4, "sequences_per_replica": 144}
            | {"ppo_mini_batch_size_per_gpu": 72, "micro_batches_per_update": 12},
        ),
        ("M3", {"gpus": 32, "sequence_parallel_size": 4, "sequences_per_step": 1024, "rollout_replicas": 16}),
        ("T1", {"gpus": 1, "sequences_per_step": 256}),
        ("T2", {"gpus": 4, "sequences_per_step": 512, "micro_batches_per_update": 2, "sequence_parallel_size": 2}),
        ("T3", {"gpus": 8, "sequences_per_step": 1024, "sequence_parallel_size": 4}),
    ],
)
def test_a_template_comes_to_the_numbers_of_its_article(name: str, told: dict[str, Any]) -> None:
    derived = report(name).derived
    assert {key: derived[key] for key in told} == told


@pytest.mark.parametrize(("name", "claimed_bytes"), [("T1", 55e9), ("T2", 36.5e9)])
def test_what_is_estimated_agrees_with_what_the_article_claims(name: str, claimed_bytes: float) -> None:
    assert max(phase.expected_bytes for phase in report(name).memory) <= claimed_bytes


def test_a_setting_is_left_out_of_releases_that_it_is_not_for() -> None:
    keys = {line.key for line in named("T2").lines("0.6.1")}
    assert "actor_rollout_ref.rollout.mode" not in keys
    assert "actor_rollout_ref.rollout.mode" in {line.key for line in named("t2").lines("0.7")}


def test_settings_that_verl_does_not_have_are_named_with_why_they_are_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["template", "T1"]) == 0
    out = capsys.readouterr().out
    assert "# Left out: 8 rollout steps an update (verl has no such setting" in out
    assert "# Reported by an article on memory with verl: at most 55 GB" in out
    assert "# Estimated by oomwatch: Fits: " in out
    assert "  train_batch_size: 64  # buffer 256: " in out


@pytest.mark.parametrize(
    ("words", "said"), [(["T9"], "there are T1, T2, T3, M1, M2, M3"), (["T1", "--verl", "0.3"], "there are for 0.4,")]
)
def test_what_there_is_no_template_for_is_status_2_and_says_which_there_are(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["template", *words]) == 2
    assert said in capsys.readouterr().err


def test_without_a_name_all_are_listed_with_their_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["template", "--language", "zh"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()[::2]] == [one.name for one in templates()]
    assert out.count("放得下") == len(templates())
