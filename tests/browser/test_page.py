"""The frame of the page in a real browser: the one sentence, the connection, language, theme and first paint."""

import time
from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import Page, expect
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire

pytestmark = pytest.mark.browser
PATIENCE_MS = 30_000  # to read plotly takes seconds on a machine under load


def _headline(page: Page) -> str:
    return page.locator("#headline").inner_text()


def test_a_healthy_fleet_says_so_on_the_page_and_on_its_tab(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("All 8 GPUs have headroom")
    expect(page).to_have_title("All 8 GPUs have headroom · oomwatch")
    expect(page.locator("#tools .link")).to_have_text("live")


def test_an_alert_that_arrives_changes_sentence_tab_icon_and_count(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("headroom")
    icon = page.locator("link[rel=icon]").get_attribute("href")
    alert = scenes.alert(
        time.time(),
        key="x",
        severity="critical",
        labels={"node": "gpu-01", "gpu": "3"},
        english="GPU 3 of gpu-01: 97 % of its memory is in use",
        chinese="gpu-01 的 GPU 3：显存已用 97 %",
    )
    healthy.send(wire.AlertChanged(alert=alert))
    expect(page.locator("#headline")).to_contain_text("GPU 3 of gpu-01: 97 %")
    expect(page).to_have_title("⬣ qwen7b_grpo is at risk: GPU 3 of gpu-01: 97 % of its memory is in use · oomwatch")
    expect(page.locator("#nav .badge")).to_have_text("1")
    assert page.locator("link[rel=icon]").get_attribute("href") != icon
    healthy.send(wire.AlertChanged(alert=msgspec.structs.replace(alert, state="resolved", ended_at=time.time())))
    expect(page.locator("#headline")).to_contain_text("headroom")


def test_a_lost_connection_is_plain_to_see_and_ends_by_itself(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#tools .link")).to_have_text("live")
    healthy.takes_browsers = False
    healthy.drop()
    expect(page.locator("#tools .link")).to_have_text("reconnecting")
    expect(page.locator("#headline")).to_contain_text("what is shown is")
    assert "headroom" not in page.title()
    expect(page.get_by_role("button", name="Try now")).to_be_visible()  # it goes once the page is back by itself
    healthy.takes_browsers = True
    expect(page.locator("#tools .link")).to_have_text("live", timeout=60_000)
    expect(page.locator("#headline")).to_contain_text("All 8 GPUs have headroom")


def test_a_server_that_was_never_reached_is_not_called_well(healthy: Stage, reader: Reader) -> None:
    healthy.takes_browsers = False
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("The server cannot be reached")
    expect(page.locator("#tools .link")).to_have_text("connecting")


def test_without_a_node_the_page_says_how_to_start_an_agent(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    page = reader.open(staged(wire.Snapshot(at=time.time(), server=scenes.SERVER)))
    expect(page.locator("#headline")).to_contain_text("No agent has connected yet")
    expect(page.locator(".welcome pre").first).to_contain_text("oomwatch-agent --server 127.0.0.1:")


def test_simulated_data_cannot_be_taken_for_real(healthy: Stage, reader: Reader) -> None:
    healthy.snapshot = scenes.simulated(healthy.snapshot)
    page = reader.open(healthy)
    expect(page.locator("#tools .demo")).to_have_text("DEMO")
    expect(page).to_have_title("DEMO · All 8 GPUs have headroom · oomwatch")


def test_a_chinese_browser_reads_chinese_and_the_choice_of_english_is_kept(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, language="zh-CN")
    expect(page.locator("#headline")).to_contain_text("全部 8 块 GPU 显存余量充足")
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    page.locator("button.language").click()
    expect(page.locator("#headline")).to_contain_text("All 8 GPUs have headroom")
    page.reload()
    expect(page.locator("#headline")).to_contain_text("All 8 GPUs have headroom")


def test_the_theme_is_the_systems_until_someone_chooses(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, dark=True)
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Auto").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_mistakes_in_the_rule_file_and_messages_that_cannot_be_read_are_told(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("headroom")
    broken = msgspec.structs.replace(scenes.SERVER, rules_error="alerts.yaml:3:5: unknown metric")
    healthy.send(wire.RulesChanged(server=broken, rules=scenes.RULES))
    expect(page.locator("#notices")).to_contain_text("alerts.yaml:3:5: unknown metric")
    healthy.send_text(b'{"type":"tick"}')
    expect(page.locator("#notices")).to_contain_text("tick: at: expected a number")
    healthy.send_text(b'{"type":"weather"}')
    expect(page.locator("#notices")).to_contain_text("one message of a kind that this page does not know")


def test_markup_in_a_name_stays_text(staged: Callable[[wire.Snapshot], Stage], reader: Reader) -> None:
    at = time.time()
    name = "<img src=x onerror=alert(1)>"
    snapshot = msgspec.structs.replace(scenes.healthy(at), runs=(scenes.run(at, ("gpu-01",), name=name),))
    page = reader.open(staged(snapshot), "#/runs")
    expect(page.get_by_role("link", name=name)).to_be_visible()
    page.get_by_role("link", name=name).click()
    expect(page.locator("h1")).to_contain_text(name)
    expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    assert page.locator("img").count() == 0


def test_the_page_paints_at_once_and_loads_plotly_only_for_a_chart(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator(".full li").first).to_be_visible()
    painted = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert painted < 3000  # 0.1 to 0.4 s measured; the bound is for a machine under load
    assert page.locator("script[src*=plotly]").count() == 0
    page.goto(healthy.url + "#/gpu/gpu-01/0")
    expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    assert page.locator("script[src*=plotly]").count() == 1
