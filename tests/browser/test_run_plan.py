"""The page of a run says what was expected of its memory, beside what was measured."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage
from tests.browser.test_accessible import AXE, found

from oomwatch import wire
from oomwatch.web.planrows import PlanOfRun

pytestmark = pytest.mark.browser
RUN = f"#/run/{scenes.RUN}"


@pytest.fixture
def stage(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    return staged(scenes.healthy(time.time()))


def _plan(page: Page, title: str) -> Locator:
    heading = page.get_by_role("heading", name=title)
    return page.locator("section").filter(has=heading)


def test_each_phase_is_shown_as_it_was_expected_and_as_it_was(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, RUN)
    plan = _plan(page, "What was expected of its memory")
    expect(plan).to_contain_text("Qwen3-8B (8.2 billion parameters), on cards of 79.0", timeout=30_000)
    expect(plan).to_contain_text("expected to be tight. The peak was expected in actor update.")
    rows = plan.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text(re.compile("rollout.*KV cache.*55.0.*49.5 to 60.5.*72.8.*above.*[-−]24"))
    expect(rows.nth(1)).to_contain_text(re.compile("old log-prob.*48.0.*–.*–.*–"))
    expect(rows.nth(2)).to_contain_text(re.compile(r"actor update.*60.0.*as expected.*\+7"))
    expect(plan).to_contain_text("sequences of 1,020 tokens")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    assert list(found(page, "")) == []


def test_where_there_is_no_plan_it_is_said_why_in_either_language(stage: Stage, reader: Reader) -> None:
    stage.past.plan = PlanOfRun(run=scenes.RUN, why="model")
    page = reader.open(stage, RUN)
    expect(_plan(page, "What was expected of its memory")).to_contain_text(
        "the shape of the model is not known", timeout=30_000
    )
    page = reader.open(stage, RUN, language="zh")
    expect(_plan(page, "显存预估与实测")).to_contain_text("模型结构未知", timeout=30_000)
