"""The page of a run says what a step is made of, as the server works it out."""

import re
import time
from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import Locator, Page, Route, expect
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage
from tests.browser.test_accessible import AXE, found

from oomwatch import wire

pytestmark = pytest.mark.browser
replace = msgspec.structs.replace
RUN = f"#/run/{scenes.RUN}"
OTHER = "llama8b_ppo"
PATIENCE_MS = 60_000
TOPS = (
    "() => [...document.querySelectorAll('.run-page section')].map((one) => one.getBoundingClientRect().top + scrollY)"
)
ROLLOUT = "actor_rollout_ref.rollout"
TOLD: dict[str, wire.ConfigValue] = {
    **scenes.CONFIG,
    "algorithm.adv_estimator": "grpo",
    "trainer.nnodes": 1,
    "trainer.n_gpus_per_node": 8,
    "data.max_prompt_length": 512,
    f"{ROLLOUT}.log_prob_micro_batch_size_per_gpu": 8,
    f"{ROLLOUT}.tensor_model_parallel_size": 2,
}


@pytest.fixture
def stage(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    return staged(scenes.troubled(time.time()))


def _batches(page: Page, title: str = "What a step is made of") -> Locator:
    return page.locator("section").filter(has=page.get_by_role("heading", name=title))


def _row(page: Page, name: str) -> Locator:
    return _batches(page).locator("tbody tr", has_text=name).first


def _all_else_is_there(page: Page) -> None:
    """What else the page asks for has been answered, and so moves nothing any more."""
    expect(page.locator(".run-plan table")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("[data-row=peaks] .legend")).to_contain_text("GiB", timeout=PATIENCE_MS)
    expect(page.locator("main")).not_to_contain_text("Asking for the reports", timeout=PATIENCE_MS)


def _with(stage: Stage, *configs: dict[str, wire.ConfigValue]) -> tuple[wire.Run, ...]:
    """The runs of the stage, told of these configurations."""
    runs = tuple(replace(run, config=config) for run, config in zip(stage.snapshot.runs, configs, strict=False))
    stage.snapshot = replace(stage.snapshot, runs=(*runs, *stage.snapshot.runs[len(runs) :]))
    return runs


def test_batches_are_told_with_their_working_what_is_assumed_and_what_is_missing(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, RUN)
    expect(_row(page, "Sequences in a step")).to_contain_text(re.compile("256 × 12.*3,072"), timeout=PATIENCE_MS)
    expect(_row(page, "GPUs")).to_contain_text(re.compile(r"GPUs \*.*1 × 8.*8"))
    passes = _row(page, "old log-prob")
    expect(passes).to_contain_text(re.compile("Missing:.*log_prob_micro_batch_size_per_gpu.*–"))
    expect(_batches(page)).to_contain_text(re.compile("verl's default, nobody sets it:.*trainer.n_gpus_per_node"))
    expect(_batches(page)).to_contain_text("the newest: which release runs is not told")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert list(found(page, "")) == []


def test_what_verl_says_against_the_batches_is_told_in_its_own_words_and_ends_with_the_configuration(
    stage: Stage, reader: Reader
) -> None:
    _with(stage, {**TOLD, "data.train_batch_size": 61, f"{ROLLOUT}.n": 1})
    page = reader.open(stage, RUN)
    problems = _batches(page).locator(".doctor-list")
    expect(problems).to_contain_text(
        "verl would stop with real_train_batch_size (61) must be divisible", timeout=PATIENCE_MS
    )
    expect(problems.get_by_role("button", name="Try")).to_have_count(0)
    for run in _with(stage, TOLD):
        stage.send(wire.RunChanged(run=replace(run, steps=())))
    expect(_row(page, "Sequences in a step")).to_contain_text(re.compile("256 × 12.*3,072"), timeout=PATIENCE_MS)
    expect(problems).to_have_count(0)


def test_another_runs_numbers_stand_beside_and_are_asked_for_too(stage: Stage, reader: Reader) -> None:
    _with(stage, TOLD, {**TOLD, f"{ROLLOUT}.tensor_model_parallel_size": 4})
    page = reader.open(stage, f"{RUN}?with={OTHER}")
    engines = _row(page, "Rollout engines")
    expect(engines.locator("b")).to_have_text(["4", "2"], timeout=PATIENCE_MS)  # what differs stands out
    expect(_row(page, "Sequences in a step").locator("td").nth(3)).to_have_text("3,072")
    expect(_row(page, "Sequences in a step").locator("b")).to_have_count(0)
    expect(_batches(page).locator("th").nth(3)).to_have_text(OTHER)


def test_a_run_without_a_configuration_says_so_in_either_language(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, f"#/run/{OTHER}")
    expect(_batches(page)).to_contain_text("The configuration of this run was not seen.", timeout=PATIENCE_MS)
    page = reader.open(stage, RUN, language="zh")
    expect(_batches(page, "每步的批次构成")).to_contain_text("每步的序列数", timeout=PATIENCE_MS)


@pytest.mark.parametrize("width", [390, 1440, 2560])
def test_nothing_moves_as_the_batches_come(width: int, stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, width=width)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/batches?*", hold)
    page.goto(stage.url + RUN)
    expect(_batches(page)).to_contain_text("are being asked for", timeout=PATIENCE_MS)
    _all_else_is_there(page)
    before = page.evaluate(TOPS)
    held.pop().continue_()
    expect(_row(page, "Sequences in a step")).to_contain_text("3,072", timeout=PATIENCE_MS)
    assert page.evaluate(TOPS) == before


def test_batches_that_could_not_be_read_are_asked_for_again_with_the_next_step(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage)
    page.route("**/batches?*", lambda route: route.fulfill(status=503, json={"error": "the server is busy"}))
    page.goto(stage.url + RUN)
    expect(_batches(page)).to_contain_text("could not be read (the server is busy)", timeout=PATIENCE_MS)
    page.unroute("**/batches?*")
    step = wire.StepPoint(at=time.time(), step=wire.Step(step=61, step_seconds=99.0, rollout_seconds=41.0))
    stage.send(wire.RunChanged(run=replace(stage.snapshot.runs[0], steps=(step,))))
    expect(_row(page, "Sequences in a step")).to_contain_text("3,072", timeout=PATIENCE_MS)
    reader.forgive(re.compile("503"))
