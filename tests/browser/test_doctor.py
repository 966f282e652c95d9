"""The config doctor on the page: a configuration typed, dropped or taken from a run, and what it means beside it."""

import contextlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage
from tests.browser.test_accessible import AXE, found, in_any_two_ways
from tests.server.house import hello
from tests.server.running_server import AgentClient, RunningServer, settings_in, until

from oomwatch import wire
from oomwatch.settings import Settings

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000  # a report takes a fraction of a second, and this machine may have much else to do
expect.set_options(timeout=PATIENCE_MS)
REFUSED = re.compile("Failed to load resource")
NAMES = {"en": "Configuration", "zh-CN": "配置"}
SCRIPT = """python3 -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_batch_size=60 data.max_prompt_length=1024 data.max_response_length=4096 \\
    actor_rollout_ref.model.path=Qwen/Qwen2.5-7B-Instruct \\
    actor_rollout_ref.actor.ppo_mini_batch_size=60 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8 \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=12 \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8 \\
    trainer.n_gpus_per_node=6 trainer.nnodes=1
"""
MISTAKEN = "data:\n  train_batch_size: 60\n b: {\n"


@pytest.fixture
def stage(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    return staged(scenes.healthy(time.time()))


def editor(page: Page) -> Locator:
    return page.locator(".code-editor textarea")


def current(page: Page) -> Locator:
    """The report, once it is of what is written."""
    report = page.locator(".doctor-report:not(.outdated)")
    expect(report).to_be_visible()
    return report


def section(page: Page, name: str) -> Locator:
    return page.locator(f".doctor-{name}-part")


def choose(page: Page, field: str, value: str) -> None:
    page.locator(f"#doctor-{field}").fill(value)
    page.locator(f"#doctor-{field}").press("Tab")


def checked(reader: Reader, stage: Stage, text: str = SCRIPT, *, gpu: str = "H100", **options: Any) -> Page:
    page = reader.open(stage, f"#/doctor?gpu={gpu}", **options)
    editor(page).fill(text)
    current(page)
    return page


@pytest.mark.parametrize(
    ("language", "verdict", "sequences"),
    [("en", "Will not fit", "Sequences in a step"), ("zh-CN", "放不下", "每步的序列数")],
)
def test_a_pasted_script_gets_its_verdict_arithmetic_and_what_to_change(
    stage: Stage, reader: Reader, language: str, verdict: str, sequences: str
) -> None:
    page = reader.open(stage, language=language)
    page.locator("#nav").get_by_role("link", name=re.compile("Doctor|配置诊断")).click()
    expect(page.locator(".doctor-empty")).to_be_visible()
    choose(page, "gpu", "A100-40GB")
    editor(page).fill(SCRIPT)
    current(page)
    expect(page.locator(".doctor-empty")).to_be_hidden()
    expect(page.locator(".doctor-verdict .said")).to_contain_text(verdict)
    row = section(page, "working").locator("tr").filter(has_text="60 × 12").first
    expect(row).to_contain_text(sequences)
    expect(row.locator("td").last).to_have_text("720")
    plan = section(page, "plan")
    expect(plan.locator(".diff .added").first).to_contain_text("+")
    expect(plan.get_by_role("button").first).to_be_visible()
    expect(section(page, "advice").locator("li").first).to_be_visible()
    expect(section(page, "largest").locator("tbody tr").first).to_be_visible()
    expect(section(page, "host")).to_contain_text("GiB")
    assert "gpu=A100-40GB" in page.url


def test_what_verl_would_refuse_stands_first_with_its_line_and_what_to_write(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage, SCRIPT.replace("n_gpus_per_node=6", "n_gpus_per_node=7"))
    expect(page.locator(".doctor-verdict")).to_contain_text("refused")
    problem = section(page, "problems").locator("li").filter(has_text="multiple of 7")
    expect(problem).to_contain_text("real_train_batch_size (720) must be divisible")
    expect(problem.locator(".override code")).to_have_text("data.train_batch_size=63")
    expect(page.locator(".numbers .mistaken").first).to_be_visible()
    problem.get_by_role("button", name="Line 3").click()
    selected = editor(page).evaluate("one => one.value.slice(one.selectionStart, one.selectionEnd)")
    assert "data.train_batch_size=60" in selected


def test_a_suggestion_is_tried_by_a_press_and_what_it_does_is_seen(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage, SCRIPT.replace("n_gpus_per_node=6", "n_gpus_per_node=7"))
    problem = section(page, "problems").locator("li").filter(has_text="multiple of 7")
    problem.get_by_role("button", name="Try").click()
    expect(page.locator("#doctor-overrides")).to_have_value("data.train_batch_size=63")
    current(page)
    expect(problem).to_have_count(0)


def test_a_value_that_another_one_wins_over_and_an_unknown_key_are_told(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage, "data:\n  train_batch_size: 60\n  max_promt_length: 512\n")
    page.locator("#doctor-overrides").fill("data.train_batch_size=64")
    expect(section(page, "shadowed")).to_contain_text("overrides")
    expect(section(page, "shadowed")).to_contain_text("60")
    expect(section(page, "shadowed").get_by_role("button", name="Line 2")).to_be_visible()
    expect(section(page, "unknown")).to_contain_text("max_promt_length")
    expect(section(page, "unknown")).to_contain_text("the nearest is data.max_prompt_length")
    settings = page.locator(".doctor-settings")
    settings.get_by_role("searchbox").fill("train_batch")
    expect(settings.locator("tbody tr")).to_have_count(1)
    expect(settings.locator("tbody tr s").first).to_have_text("60")
    settings.get_by_role("checkbox").check()
    settings.get_by_role("searchbox").fill("ppo_epochs")
    expect(settings.locator("tbody")).to_contain_text("verl 0.")


def test_a_phase_shows_what_it_is_made_of_by_pointer_and_by_keyboard_and_nothing_moves(
    stage: Stage, reader: Reader
) -> None:
    page = checked(reader, stage)
    rows, shown = section(page, "memory").locator(".memory-row"), section(page, "memory").locator(".memory-parts.shown")
    expect(rows).to_have_count(4)
    expect(shown).to_contain_text("Source:")
    height = page.evaluate("document.documentElement.scrollHeight")
    rows.first.hover()
    expect(shown).to_contain_text("rollout")
    rows.first.focus()
    page.keyboard.press("Tab")
    expect(rows.nth(1)).to_be_focused()
    expect(shown).to_contain_text("old log-prob")
    expect(rows.nth(1)).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("document.documentElement.scrollHeight") == height
    rows.nth(1).locator(".mark").wait_for()  # a shape beside the colour
    table = section(page, "memory").locator("details")
    table.locator("summary").click()
    expect(table.locator("tbody tr")).to_have_count(4)


def test_what_is_shown_is_marked_as_of_before_until_the_answer_comes(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage)
    held: list[Any] = []
    page.route("**/api/v1/doctor", lambda route: held.append(route))  # noqa: PLW0108 - Playwright marks it
    editor(page).press("End")
    editor(page).press("Enter")
    expect(page.locator(".doctor-report.outdated")).to_be_visible()
    expect(page.locator(".doctor-state")).to_be_visible()
    expect(page.locator(".doctor-state")).to_contain_text("Looking")
    until("the question", lambda: (page.evaluate("0"), held)[1])
    held[-1].continue_()
    current(page)
    expect(page.locator(".doctor-state")).to_contain_text("Up to date")


@pytest.mark.parametrize(("language", "line"), [("en", "Line 3"), ("zh-CN", "第 3 行")])
def test_a_mistake_in_the_text_names_its_line_and_the_remedy_and_marks_it(
    stage: Stage, reader: Reader, language: str, line: str
) -> None:
    page = reader.open(stage, "#/doctor", language=language)
    editor(page).fill(MISTAKEN)
    expect(page.locator(".problem .detail")).not_to_be_empty(timeout=PATIENCE_MS)
    expect(page.locator(".numbers .mistaken")).to_have_text("3\n")
    page.get_by_role("button", name=line).click()
    assert editor(page).evaluate("one => one.value.slice(one.selectionStart, one.selectionEnd)") == " b: {"
    reader.forgive(REFUSED)


def test_a_card_that_nobody_knows_is_told_at_its_field(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage)
    choose(page, "gpu", "G80")
    expect(page.locator("#doctor-gpu-note")).to_contain_text("no known card")
    expect(page.locator("#doctor-gpu")).to_have_attribute("aria-invalid", "true")
    choose(page, "gpu", "H200")
    current(page)
    expect(page.locator("#doctor-gpu-note")).to_be_empty()
    expect(page.locator(".doctor-verdict")).to_contain_text("H200 141GB")
    reader.forgive(REFUSED)


def test_files_are_taken_together_and_a_models_config_json_is_its_shape(stage: Stage, reader: Reader) -> None:
    shape = {
        "model_type": "qwen2",
        "num_hidden_layers": 4,
        "hidden_size": 512,
        "num_attention_heads": 8,
        "intermediate_size": 1024,
        "vocab_size": 32000,
    }
    page = reader.open(stage, "#/doctor?gpu=H100")
    files = {
        "base.yaml": "data: {train_batch_size: 32}\ntrainer: {n_gpus_per_node: 4}\n",
        "more.yaml": "data: {train_batch_size: 64}\n",
        "config.json": json.dumps(shape),
    }
    page.locator("input[type=file]").set_input_files(
        [FilePayload(name=name, mimeType="text/plain", buffer=text.encode()) for name, text in files.items()]
    )
    current(page)
    expect(page.locator(".doctor-tabs button")).to_have_text(["base.yaml", "more.yaml"])
    expect(page.locator(".doctor-verdict")).to_contain_text("qwen2")
    page.locator(".doctor-tabs button").last.click()
    expect(editor(page)).to_have_value(files["more.yaml"])
    editor(page).fill("data: {train_batch_size: 128}\n")
    expect(section(page, "working")).to_contain_text("128")
    page.locator(".doctor-shape button").click()
    expect(page.locator(".doctor-verdict")).to_contain_text("Choose the model")


def test_a_dropped_log_of_any_size_gives_the_configuration_that_verl_printed(
    stage: Stage, reader: Reader, tmp_path: Path
) -> None:
    printed = (
        "(TaskRunner pid=7) {'actor_rollout_ref': {'rollout': {'n': 12}},\n"
        "(TaskRunner pid=7)  'data': {'train_batch_size': 60}}\n"
    )
    log = tmp_path / "train.log"
    log.write_text("line\n" * 2_000_000 + printed + "line\n" * 900_000)
    page = reader.open(stage, "#/doctor")
    page.locator("input[type=file]").set_input_files(log)
    current(page)
    expect(section(page, "working")).to_contain_text("720")
    expect(page.locator(".doctor-verdict")).to_contain_text("log")


def test_a_file_is_dropped_on_the_page(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, "#/doctor")
    drop = """text => {
      const data = new DataTransfer();
      data.items.add(new File([text], "train.sh"));
      const page = document.querySelector(".doctor");
      for (const type of ["dragenter", "dragover", "drop"])
        page.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    editor(page).wait_for()
    page.evaluate(drop, SCRIPT)
    current(page)
    expect(editor(page)).to_have_value(SCRIPT)
    expect(page.locator(".dropping")).to_have_count(0)


def test_a_template_is_begun_with_and_a_link_leads_others_to_it(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, "#/doctor")
    page.get_by_role("button", name="T2").click()
    current(page)
    expect(editor(page)).to_have_value(re.compile("ppo_trainer"))
    expect(page.locator("#doctor-gpu")).to_have_value("A100 80GB")
    expect(page.locator(".doctor-verdict")).to_contain_text(re.compile("fits", re.IGNORECASE))
    assert "template=T2" in page.url
    assert "ppo_trainer" not in page.url
    other = reader.open(stage, page.url.partition("/#")[2].join(["#", ""]))
    current(other)
    expect(editor(other)).to_have_value(re.compile("ppo_trainer"))
    editor(page).press_sequentially("#")
    assert "template=" not in page.url


def test_the_text_outlives_a_look_elsewhere_and_another_language(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage)
    page.locator("#nav a").first.click()
    page.go_back()
    current(page)
    expect(editor(page)).to_have_value(SCRIPT)
    page.locator("[data-focus=language]").click()
    expect(editor(page)).to_have_value(SCRIPT)
    expect(page.locator(".doctor-verdict")).to_contain_text(re.compile("放得下|很紧|放不下"))


def test_the_report_is_downloaded_as_the_command_prints_it(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the report").click()
    told = json.loads(download.value.path().read_text())
    assert told["derived"]["sequences_per_step"] == 720
    assert told["memory"][0]["phase"] == "rollout"


def test_what_a_configuration_says_never_becomes_markup(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage, "data:\n  train_batch_size: 60\n  '<img src=x onerror=alert(1)>': '<b>bold</b>'\n")
    expect(section(page, "unknown")).to_contain_text("<img src=x")
    expect(page.locator(".doctor-settings")).to_contain_text("<b>bold</b>")
    assert page.locator(".doctor-told img").count() == 0


ASTRAY = """() => [...document.querySelectorAll('.doctor-told table')].flatMap((table) => {
    const left = (one) => Math.round(one.getBoundingClientRect().left);
    const heads = [...table.querySelectorAll('thead th, thead td')].map(left);
    const rows = [...table.querySelectorAll('tbody tr')].filter(({ cells }) => cells.length === heads.length);
    const strays = rows.filter(({ cells }) => [...cells].some((one, index) => left(one) !== heads[index]));
    return strays.map((row) => `${row.textContent}: ${[...row.cells].map(left)} below ${heads}`);
})"""


def test_every_cell_of_a_report_stands_below_the_head_of_its_column(stage: Stage, reader: Reader) -> None:
    page = checked(reader, stage)
    with contextlib.suppress(PlaywrightTimeoutError):  # what is astray then is told below
        page.wait_for_function(f"() => ({ASTRAY})().length === 0")
    assert page.evaluate(ASTRAY) == []


@in_any_two_ways(390, 2560)
def test_axe_finds_nothing_in_a_report_and_nothing_is_too_wide(
    stage: Stage, reader: Reader, dark: bool, language: str, width: int
) -> None:
    bad = SCRIPT.replace("n_gpus_per_node=6", "n_gpus_per_node=7") + "    data.max_promt_length=7\n"
    page = checked(reader, stage, bad, gpu="A100-40GB", dark=dark, language=language, width=width)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert list(found(page, AXE.read_text(encoding="utf-8"))) == []


def test_a_runs_page_leads_to_its_configuration_on_the_cards_that_it_is_on(
    reader: Reader, served: Callable[[Settings], RunningServer], tmp_path: Path
) -> None:
    values: dict[str, wire.ConfigValue] = {
        "actor_rollout_ref.model.path": "Qwen/Qwen2.5-7B-Instruct",
        "data.train_batch_size": 64,
        "actor_rollout_ref.rollout.n": 4,
    }
    server = served(settings_in(tmp_path))
    with AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time(), gpus=4, run="qwen7b"))
        agent.say(wire.Event(seq=1, at=time.time(), run="qwen7b", body=wire.Config(values=values, framework="verl")))
        until("the run's configuration", lambda: server.get("/api/v1/runs").json()[0].get("config"))
        page = reader.visit(f"{server.url}/#/run/qwen7b")
        page.get_by_role("link", name="Check this configuration").click()
        current(page)
        expect(page.locator(".doctor-verdict")).to_contain_text("4 × H100 80GB")
        expect(editor(page)).to_have_value(re.compile("Qwen2.5-7B-Instruct"))
        expect(section(page, "working")).to_contain_text("64 × 4")
        editor(page).fill('{"data.train_batch_size": 32, "actor_rollout_ref.rollout.n": 4}')
        expect(section(page, "working")).to_contain_text("32 × 4")
        page.goto(f"{server.url}/#/doctor?run=none")
        expect(page.locator(".problem")).to_contain_text('no run "none"')
