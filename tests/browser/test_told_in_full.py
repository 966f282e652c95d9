"""Processes, probes and engines of a node: told to the page that shows them, with the snapshot or when it asks."""

import msgspec
import pytest
from playwright.sync_api import Route, expect
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000
ASKED = "**/api/v1/nodes/*"
PAGES = {"#/gpu/gpu-02/3": "VLLM::EngineCore_DP0", "#/node/gpu-02": "ray::TaskRunner.run"}


def _never(route: Route) -> None:
    """The answer is not here yet, whenever somebody looks."""


def _renamed(stage: Stage, name: str) -> wire.Node:
    """What the server knows of gpu-02 from now on: its processes are called otherwise."""
    view = next(view for view in stage.snapshot.nodes if view.node == "gpu-02")
    assert view.sample is not None
    assert view.sample.host is not None
    assert view.sample.host.processes is not None
    gpus = tuple(
        msgspec.structs.replace(
            gpu, processes=tuple(msgspec.structs.replace(one, name=name) for one in gpu.processes or ())
        )
        for gpu in view.sample.gpus
    )
    listed = tuple(msgspec.structs.replace(one, name=name) for one in view.sample.host.processes)
    host = msgspec.structs.replace(view.sample.host, processes=listed)
    sample = msgspec.structs.replace(view.sample, gpus=gpus, host=host, at=view.sample.at + 1)
    changed = msgspec.structs.replace(view, sample=sample)
    nodes = tuple(changed if one.node == "gpu-02" else one for one in stage.snapshot.nodes)
    stage.snapshot = msgspec.structs.replace(stage.snapshot, nodes=nodes)
    return changed


@pytest.mark.parametrize("address", PAGES)
def test_a_page_that_is_opened_at_a_node_has_it_in_full_without_asking(
    address: str, troubled: Stage, reader: Reader
) -> None:
    page = reader.open(troubled)
    page.route(ASKED, _never)
    page.goto("about:blank")
    page.goto(troubled.url + address)
    expect(page.locator("main")).to_contain_text(PAGES[address], timeout=PATIENCE_MS)
    expect(page.locator(".detail-waiting")).to_be_hidden()


@pytest.mark.parametrize("address", PAGES)
def test_one_that_is_gone_on_to_asks_and_says_so_and_what_comes_moves_nothing_that_is_seen(
    address: str, troubled: Stage, reader: Reader
) -> None:
    page = reader.open(troubled)
    asked: list[Route] = []

    def hold(route: Route) -> None:
        asked.append(route)

    page.route(ASKED, hold)
    expect(page.locator(".fleet-map canvas").first).to_be_visible(timeout=PATIENCE_MS)
    page.evaluate("address => { location.hash = address; }", address)
    expect(page.locator(".detail-waiting")).to_contain_text("Asking who holds the memory", timeout=PATIENCE_MS)
    expect(page.locator("main")).not_to_contain_text("The process table was not read")
    expect(page.locator(".chart-frame").first).to_have_attribute("aria-busy", "false", timeout=PATIENCE_MS)
    expect(page.locator("main")).to_contain_text("no data for", timeout=PATIENCE_MS)  # and from then on says so
    places = "() => [...document.querySelectorAll('section h2')].map(one => one.checkVisibility() && one.offsetTop)"
    before = page.evaluate(places)
    for route in asked:
        route.continue_()
    expect(page.locator("main")).to_contain_text(PAGES[address], timeout=PATIENCE_MS)
    expect(page.locator(".detail-waiting")).to_be_hidden()
    after = page.evaluate(places)
    assert [now for then, now in zip(before, after, strict=True) if then] == [then for then in before if then]


@pytest.mark.parametrize("address", PAGES)
def test_a_frame_of_the_node_takes_nothing_of_it_away_and_a_break_brings_what_is_new(
    address: str, troubled: Stage, reader: Reader
) -> None:
    page = reader.open(troubled)
    page.route(ASKED, _never)
    page.goto("about:blank")
    page.goto(troubled.url + address)
    main = page.locator("main")
    expect(main).to_contain_text(PAGES[address], timeout=PATIENCE_MS)
    view = next(view for view in troubled.snapshot.nodes if view.node == "gpu-02")
    sources = (wire.SourceFacts(name="smi", state="ok", detail="told anew"),)
    facts = msgspec.structs.replace(view.facts, sources=sources)
    troubled.send(wire.NodeChanged(node=msgspec.structs.replace(view, facts=facts)))
    expect(main).to_contain_text("told anew", timeout=PATIENCE_MS)
    if "#/gpu/" in address:
        expect(main).to_contain_text(view.facts.gpus[3].uuid)
    expect(main).to_contain_text(PAGES[address])
    _renamed(troubled, "after-the-break")
    troubled.drop()
    expect(main).to_contain_text("after-the-break", timeout=PATIENCE_MS)
