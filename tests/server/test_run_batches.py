"""What the page shows of a run's batches: the doctor's own lines, and what verl says against them."""

import time
from pathlib import Path

from tests.core.plan_story import CONFIG
from tests.server.house import hello
from tests.server.running_server import AgentClient, serving, settings_in, until

from oomwatch import wire
from oomwatch.doctor.read import Source, read
from oomwatch.doctor.report import make_report
from oomwatch.plan.batches import batches_of
from oomwatch.web.batches import Told, batches_of_run
from oomwatch.web.batchrows import BatchesOfRun

ROLLOUT = "actor_rollout_ref.rollout"


def told(
    config: dict[str, wire.ConfigValue],
    version: str | None = "0.9.1",
    language: wire.Language = "en",
    *,
    has_run: bool = False,
) -> BatchesOfRun:
    return batches_of_run(Told("r", config, version, batches_of(config, version), has_run), language)


def numbers(found: BatchesOfRun) -> dict[str, int | None]:
    return {line.name: line.value for line in found.working if line.phase is None}


def test_the_lines_are_those_of_the_doctors_report_on_the_same_settings() -> None:
    overrides = [f"{key}={value}" for key, value in CONFIG.items()]
    report = make_report(read([Source("overrides", "\n".join(overrides))], [], "0.9.1"))
    assert told(CONFIG).working == report.working


def test_replicas_of_engines_that_are_data_parallel_count_all_their_gpus() -> None:
    config = {**CONFIG, f"{ROLLOUT}.tensor_model_parallel_size": 2, f"{ROLLOUT}.data_parallel_size": 2}
    assert numbers(told(config))["rollout_replicas"] == 2


def test_what_nobody_told_is_assumed_or_missing_and_the_setting_is_named() -> None:
    left_out = ("trainer.nnodes", f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu")
    found = told({key: value for key, value in CONFIG.items() if key not in left_out})
    gpus = next(line for line in found.working if line.name == "gpus")
    assert (gpus.value, gpus.assumed, gpus.label) == (8, ("trainer.nnodes",), "GPUs")
    passes = next(line for line in found.working if (line.phase, line.name) == ("old_log_prob", "micro_batches"))
    assert (passes.value, passes.formula, passes.missing) == (
        None,
        "",
        (f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu",),
    )


def test_without_a_release_the_newest_is_taken_and_said_to_be() -> None:
    assert [(one.release, one.release_told) for one in (told(CONFIG, "0.6.1"), told(CONFIG, None))] == [
        ("0.6.1", True),
        ("0.9.1", False),
    ]


def test_what_verl_would_refuse_is_told_in_its_words_and_in_the_readers_language() -> None:
    broken = {**CONFIG, "data.train_batch_size": 61, f"{ROLLOUT}.n": 1}
    said: dict[wire.Language, str] = {"en": "must be a multiple of 8", "zh": "必须是 8 的倍数"}
    for language, says in said.items():
        problem = next(one for one in told(broken, language=language).problems if one.check == "step_divides")
        assert says in problem.message
        assert problem.verl_says is not None
        assert "must be divisible" in problem.verl_says
        assert problem.severity == "error"
        assert problem.valid


def test_a_run_that_took_steps_is_warned_and_not_told_that_it_cannot_start() -> None:
    broken = {**CONFIG, "data.train_batch_size": 61, f"{ROLLOUT}.n": 1}
    problem = next(one for one in told(broken, has_run=True).problems if one.check == "step_divides")
    assert problem.severity == "warning"
    assert "this run took steps" in problem.message
    assert "error" not in {one.severity for one in told(broken, has_run=True).problems}


def test_without_a_configuration_it_is_said_that_there_is_none() -> None:
    assert told({}) == BatchesOfRun(run="r", why="config")


def test_the_batches_are_served_in_a_language_and_an_unknown_run_is_refused(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time(), run="a/b"))
        config = wire.Config(values=CONFIG, framework="verl", version="0.9.1")
        agent.say(wire.Event(seq=1, at=time.time(), body=config))
        until("the batches to be known", lambda: server.get("/api/v1/runs/a/b/batches").json().get("working"))
        labels = {
            language: server.get(f"/api/v1/runs/a/b/batches?lang={language}").json()["working"][0]["label"]
            for language in ("en", "zh")
        }
        assert labels == {"en": "GPUs", "zh": "GPU 数"}
        described = server.get("/api/v1/openapi.json").json()["components"]["schemas"]
        assert {"BatchesOfRun", "Line", "Problem"} <= set(described)
        refused = server.get("/api/v1/runs/other/batches")
        assert refused.status_code == 404
        assert refused.json()["error"] == 'there is no run "other"'
        assert server.get("/api/v1/runs/a/b/batches?lang=fr").status_code == 400
