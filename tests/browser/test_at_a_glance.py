"""What somebody sees who never saw the page: what is wrong, why, what to change; what to do where there is nothing."""

import re
import time
from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import Page, expect
from tests.browser import foresight, scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
replace = msgspec.structs.replace
PATIENCE_MS = 30_000  # to read plotly takes seconds on a machine under load


@pytest.fixture
def told(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    """One critical alert whose cause and remedies are known."""
    at = time.time()
    snapshot = scenes.healthy(at)
    alert = scenes.alert(
        at,
        key="x",
        severity="critical",
        labels={"node": "gpu-01", "gpu": "3", "run": scenes.RUN},
        english="GPU 3 of gpu-01: 97 % of its memory is in use",
        chinese="gpu-01 的 GPU 3：显存已用 97 %",
    )
    return staged(replace(snapshot, alerts=(replace(alert, causes=scenes.CAUSES, remedies=scenes.REMEDIES),)))


# ---------------------------------------------------------------- ten seconds, thirty, a minute


def test_run_at_risk_cause_and_remedy_stand_below_the_sentence_of_every_view(told: Stage, reader: Reader) -> None:
    page = reader.open(told)
    for address in ("#/fleet", "#/runs", "#/run/qwen7b_grpo", "#/node/gpu-01", "#/rules"):
        page.goto(told.url + address)
        expect(page.locator("#view h1").first, address).to_be_attached()
        headline, why = page.locator("#headline"), page.locator("#why")
        expect(headline, address).to_contain_text("qwen7b_grpo is at risk: GPU 3 of gpu-01: 97 %")
        expect(why.get_by_role("link", name="qwen7b_grpo"), address).to_be_visible()
        expect(why, address).to_contain_text("Parameters and optimizer states offloaded to the host")
        expect(why, address).to_contain_text("actor_rollout_ref.actor.fsdp_config.optimizer_offload=False")


def test_each_leads_on_and_the_remedy_can_be_pasted(told: Stage, reader: Reader) -> None:
    page = reader.open(told, "#/runs")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#why").get_by_role("button", name="Copy").click()
    line = "actor_rollout_ref.actor.fsdp_config.optimizer_offload=False"
    assert page.evaluate("navigator.clipboard.readText()") == line
    page.locator("#why").get_by_role("link", name="qwen7b_grpo").click()
    expect(page).to_have_url(re.compile("#/run/qwen7b_grpo$"))
    page.locator("#why").get_by_role("link", name="Parameters and optimizer states").click()
    expect(page).to_have_url(re.compile("#/alerts\\?id=x$"))
    expect(page.locator("#why")).to_be_hidden()  # the alert itself is there


def test_where_all_is_well_nothing_is_said_of_causes(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("headroom")
    expect(page.locator("#why")).to_be_hidden()


def test_chinese_readers_are_told_the_same_in_chinese(told: Stage, reader: Reader) -> None:
    page = reader.open(told, language="zh-CN")
    expect(page.locator("#headline")).to_contain_text("任务 qwen7b_grpo 有风险：gpu-01 的 GPU 3：显存已用 97 %")
    expect(page.locator("#why")).to_contain_text("卸载到主机的参数与优化器状态")


def test_the_list_of_what_runs_out_begins_with_what_has_an_alert(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled)
    rows = page.locator(".full li")
    expect(rows).to_have_count(10)
    expect(rows.nth(0)).to_contain_text("gpu-02GPU 3")
    expect(rows.nth(1)).to_contain_text("gpu-02GPU 5")


# ---------------------------------------------------------------- where there is nothing


ABSENT = [
    ("#/node/gpu-99", "No node gpu-99 is known.", "Fleet", "#/fleet"),
    ("#/gpu/gpu-01/9", "No GPU 9 is known on node gpu-01.", "gpu-01", "#/node/gpu-01"),
    ("#/gpu/gpu-99/0", "No GPU 0 is known on node gpu-99.", "Fleet", "#/fleet"),
    ("#/run/nobody", "No run nobody is known.", "Runs", "#/runs"),
]


def test_what_nobody_knows_says_so_alone_and_where_to_go_on(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    for address, said, way, leads in ABSENT:
        page.goto(healthy.url + address)
        absent = page.locator(".absent")
        expect(absent).to_contain_text(said)
        expect(page.locator(".columns")).to_be_hidden()
        absent.get_by_role("link", name=way).click()
        expect(page).to_have_url(re.compile(leads + "$"))
    reader.forgive(re.compile("404"))


def test_a_node_that_arrives_takes_the_place_of_the_word_that_it_is_unknown(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, "#/gpu/gpu-02/3")
    expect(page.locator(".absent")).to_be_visible()
    healthy.send(wire.NodeChanged(node=scenes.node(2, time.time())))
    expect(page.locator(".absent")).to_be_hidden()
    expect(page.locator(".figures")).to_contain_text("Device memory used")
    expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    reader.forgive(re.compile("404"))


# ---------------------------------------------------------------- the address holds what is shown


def _drawn(page: Page) -> Page:
    expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    return page


def test_steps_in_view_and_the_table_are_in_the_address_and_back_leads_back(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    at = time.time()
    stage = staged(replace(scenes.healthy(at), runs=(scenes.run(at, ("gpu-01",), 60), scenes.run(at, (), 5, "b"))))
    page = _drawn(reader.open(stage, "#/run/qwen7b_grpo"))
    page.get_by_role("button", name="Last 50").click()
    expect(page).to_have_url(re.compile("steps=50$"))
    page.get_by_role("button", name="Table").click()
    expect(page).to_have_url(re.compile("steps=50&view=table$"))
    page.get_by_label("Compare with").select_option("b")
    expect(page).to_have_url(re.compile("steps=50&view=table&with=b$"))
    other = reader.open(stage, "#" + page.url.split("#")[1])
    expect(other.locator(".step-table tbody tr")).to_have_count(50)
    expect(other.get_by_role("button", name="Table")).to_have_attribute("aria-pressed", "true")
    for _ in range(2):
        page.go_back()
    expect(page.get_by_role("button", name="Table")).to_have_attribute("aria-pressed", "false")
    expect(page.get_by_role("button", name="Last 50")).to_have_attribute("aria-pressed", "true")
    page.locator(".step-readout").press("Escape")
    expect(page).to_have_url(re.compile("#/run/qwen7b_grpo$"))
    expect(page.get_by_role("button", name="All steps")).to_have_attribute("aria-pressed", "true")


def test_the_table_of_a_chart_is_in_the_address_and_stays_when_the_span_changes(
    troubled: Stage, reader: Reader
) -> None:
    page = _drawn(reader.open(troubled, "#/gpu/gpu-02/3"))
    page.get_by_text("As a table").click()
    expect(page).to_have_url(re.compile("view=table$"))
    page.get_by_role("link", name="1 h", exact=True).click()
    expect(page).to_have_url(re.compile("view=table&span=3600$|span=3600&view=table$"))
    expect(page.locator(".chart-table table")).to_be_visible()
    other = reader.open(troubled, "#" + page.url.split("#")[1])
    expect(other.locator(".chart-table table")).to_be_visible()


def test_all_nodes_of_a_large_fleet_stay_shown_in_another_grouping(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    page = reader.open(staged(scenes.crowded(time.time(), 20)))
    page.get_by_role("button", name="Show all 20 nodes").click()
    expect(page).to_have_url(re.compile("nodes=all$"))
    page.get_by_role("link", name="By run").click()
    expect(page).to_have_url(re.compile("nodes=all&by=run$"))
    expect(page.locator(".nodes-side tbody tr")).to_have_count(20)


# ---------------------------------------------------------------- calm


SHIFTS = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const one of list.getEntries())
            if (!one.hadRecentInput)
                window.shifts.push([one.value, ...one.sources.map(({ node }) => node?.className || node?.nodeName)]);
    }).observe({ type: "layout-shift", buffered: true });
}"""
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
MOST = 0.05  # web.dev calls a cumulative layout shift below 0.1 good


@pytest.mark.parametrize(
    "address", ["#/fleet", "#/runs", "#/run/qwen7b_grpo", "#/node/gpu-02", "#/gpu/gpu-02/3", "#/alerts", "#/rules"]
)
def test_nothing_jumps_while_a_view_fills_and_goes_on(address: str, troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, address)
    page.evaluate(SHIFTS)
    if re.search("run/|node/|gpu/", address):
        _drawn(page)
    for second in range(1, 4):
        at = time.time() + second
        troubled.send(scenes.tick(troubled.snapshot.nodes, at, scenes.LEVELS))
        page.evaluate(TWO_FRAMES)
    shifts = page.evaluate("window.shifts")
    assert sum(value for value, *_ in shifts) < MOST, shifts


def test_a_live_update_of_the_fleet_replaces_nothing_that_somebody_reads(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    stage = staged(foresight.fleet(time.time()))
    page = reader.open(stage)
    expect(page.locator(".full li").first).to_be_visible()
    page.evaluate(
        """() => {
            window.gone = 0;
            const isElement = (node) => node.nodeType === Node.ELEMENT_NODE;
            const count = ({ removedNodes }) => (window.gone += [...removedNodes].filter(isElement).length);
            new MutationObserver((all) => all.forEach(count))
                .observe(document.querySelector(".nodes-side"), { subtree: true, childList: true });
        }"""
    )
    before = page.locator(".totals").inner_text()
    stage.send(scenes.tick(stage.snapshot.nodes, time.time() + 1, {"gpu-01": 0.9}))
    expect(page.locator(".totals")).not_to_have_text(before)
    assert page.evaluate("window.gone") == 0


def test_with_reduced_motion_nothing_moves_by_itself(healthy: Stage, reader: Reader) -> None:
    context = reader.browser.new_context(locale="en", reduced_motion="reduce")
    page = context.new_page()
    healthy.takes_browsers = False
    page.goto(healthy.url)
    expect(page.locator("#headline")).to_contain_text("cannot be reached")
    assert page.evaluate("document.getAnimations().length") == 0


def test_on_paper_there_is_nothing_to_press_and_nothing_dark(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, dark=True)
    for address, shown in (
        ("#/alerts?id=a1", "#alert-a1"),
        ("#/run/qwen7b_grpo", ".run-page"),
        ("#/fleet", ".fleet-map"),
    ):
        page.emulate_media(media="screen")
        page.goto(troubled.url + address)
        expect(page.locator(shown)).to_be_visible()
        assert page.locator("button:visible").count() > 0
        page.emulate_media(media="print")
        assert page.locator("button:visible").count() == 0, address
        assert page.locator("#nav").is_hidden(), address
        white = "getComputedStyle(document.documentElement).backgroundColor"
        assert page.evaluate(white) == "rgb(255, 255, 255)", address


# ---------------------------------------------------------------- every width


WIDE = {
    "#/fleet": ".fleet-map",
    "#/run/qwen7b_grpo": ".run-page section",
    "#/node/gpu-02": ".sources",
    "#/gpu/gpu-02/3": ".plot",
    "#/alerts": ".alert",
}


def test_a_wide_screen_is_used_from_edge_to_edge(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, width=2560)
    for address, shown in WIDE.items():
        page.goto(troubled.url + address)
        expect(page.locator(f"#view {shown}").locator("visible=true").first).to_be_visible()
        left, right = page.evaluate(
            """() => {
                const shown = [...document.querySelectorAll("#view section, #view aside, #view .alert")]
                    .map((one) => one.getBoundingClientRect()).filter((box) => box.width > 0);
                return [Math.min(...shown.map((box) => box.left)), Math.max(...shown.map((box) => box.right))];
            }"""
        )
        assert left <= 24, address
        assert right >= 2560 - 60, address


def test_the_cells_of_the_map_are_as_wide_as_a_phone_lets_them_be(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, width=390)
    width = page.evaluate("document.querySelector('.fleet-map').clientWidth")
    expect(page.locator(".fleet-map canvas")).to_be_visible()
    height = page.evaluate("document.querySelector('.fleet-map canvas').clientHeight")
    assert height > width  # six nodes below one another, a row of eight cells each


# ---------------------------------------------------------------- keys that hold where the focus is


def test_the_help_lists_what_map_charts_steps_search_and_wall_listen_to(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#tools .link")).to_have_text("live")
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Keys")
    for heading in (
        "On the fleet's map",
        "On a chart over time",
        "On the step shown",
        "In the search",
        "On a wall screen",
    ):
        expect(help_.get_by_role("heading", name=heading)).to_be_visible()
    expect(help_).to_contain_text("All steps again")
