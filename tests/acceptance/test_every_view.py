"""Every view of a real server that real agents report to, and every way through them, in both languages and themes.

Each language in one theme: what is of both at once, axe looks at (tests/browser/test_accessible.py).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect
from tests.acceptance.journeys import PATIENCE_MS, Journey, every_journey
from tests.acceptance.programs import Server, agent, ending, until
from tests.acceptance.training import RUN, Training
from tests.browser.conftest import Reader, reader  # noqa: F401 - a fixture
from tests.browser.conftest import whole_chromium as chromium  # noqa: F401 - a fixture
from tests.browser.look import views
from tests.nvml.standin import GIB, ScriptedGpus

from oomwatch import wire
from oomwatch.catalogue import say

pytestmark = [pytest.mark.acceptance, pytest.mark.browser]
LOOKS: tuple[tuple[wire.Language, bool], ...] = (("en", False), ("zh", True))
NODE, OTHER, OTHER_RUN = "gpu-07", "sim-01", "demo-healthy"


class Sight(NamedTuple):
    """What a view is known by: a word that is the same in every language, and what must be there to be seen."""

    word: str
    selector: str = "h1"


SIGHTS = {
    "fleet": Sight(OTHER, ".fleet-map canvas"),
    "fleet-by-run": Sight(RUN, ".fleet-map canvas"),
    "fleet-by-risk": Sight("GPU 2", ".fleet-map canvas"),
    "node": Sight(NODE, ".plot .main-svg"),
    "gpu": Sight("25520", ".plot .main-svg"),
    "runs": Sight(RUN, "table, .run-row, h1"),
    "run": Sight(RUN, ".plot .main-svg"),
    "alerts": Sight("97 %", ".alert"),
    "alert": Sight("actor_rollout_ref.rollout.gpu_memory_utilization", ".alert .actions button"),
    "alert-timeline": Sight(NODE, ".alert-bar"),
    "alert-table": Sight("GPU 2", "table"),
    "silences": Sight(""),
    "channels": Sight("ops", ".channel"),
    "incidents": Sight(NODE),
    "rules": Sight("gpu_memory_high", ".rule"),
    "rule-file": Sight("OOMWATCH_RULES_EDITABLE"),
    "doctor": Sight("M2", ".doctor-templates li"),
    "doctor-template": Sight("actor_rollout_ref", ".doctor-report:not(.outdated)"),
    "server": Sight("iB"),
}


def test_every_view_and_every_way_through_them_in_both_languages_and_themes(
    tmp_path: Path,
    rules: Path,
    gpus: ScriptedGpus,
    reader: Reader,  # noqa: F811
) -> None:
    training = Training(tmp_path)
    gpus.set(2, processes=((25520, 49 * GIB),))
    server = Server(tmp_path, rules)
    usual = ("--ray", "off", "--interval", "0.25", "--log", str(training.driver_log))
    watcher = agent(tmp_path, server, *usual, **gpus.environment)
    other = agent(tmp_path, server, "--simulate", "demo", "--interval", "0.25", node=OTHER)
    with ending(watcher, other, server):
        for number in range(1, training.steps + 1):
            training.do_step(number)
        gpus.set(2, used_bytes=77 * GIB)
        (alert,) = until("the alert", lambda: server.alerts(state="firing", alert="gpu_memory_high"))
        training.run_out_of_memory()
        (report,) = until("the report", lambda: server.get("/api/v1/incidents"))
        addresses = {view: f"{server.url}/{one}" for view, one in views(NODE, "2", RUN, alert["id"]).items()}
        assert addresses.keys() == SIGHTS.keys()
        for language, dark in LOOKS:
            page = reader.visit(server.url, language=language, dark=dark)
            _is_in(page, language, dark=dark)
            _tour(page, addresses)
            every_journey(Journey(page, language, NODE, RUN, OTHER_RUN, alert["id"], report["id"], addresses))
            page.context.close()


def _is_in(page: Page, language: wire.Language, *, dark: bool) -> None:
    expect(page.locator(".link")).to_have_text(say("link.live", language), timeout=PATIENCE_MS)
    expect(page.locator("nav").first).to_contain_text(say("nav.fleet", language))
    shade = page.evaluate("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)")
    assert (sum(shade[:3]) < 3 * 128) == dark


def _tour(page: Page, addresses: Mapping[str, str]) -> None:
    for view, address in addresses.items():
        page.goto(address)
        word, selector = SIGHTS[view]
        expect(page.locator("#view").locator(selector).locator("visible=true").first).to_be_visible(timeout=PATIENCE_MS)
        expect(page.locator("#view")).to_contain_text(word, use_inner_text=True, timeout=PATIENCE_MS)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{view} is too wide"
