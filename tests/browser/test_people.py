"""What concerns every view: keys, settings, the zone of times, the first run, and breaks of the connection."""

import re
import time
from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.browser import scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage
from tests.server.running_server import until

from oomwatch import wire

pytestmark = pytest.mark.browser
replace = msgspec.structs.replace


def _critical(at: float, key: str = "x", gpu: str = "3") -> wire.Alert:
    return scenes.alert(
        at,
        key=key,
        severity="critical",
        labels={"node": "gpu-01", "gpu": gpu},
        english=f"GPU {gpu} of gpu-01: 97 % of its memory is in use",
        chinese=f"gpu-01 的 GPU {gpu}：显存已用 97 %",
    )


def _is_live(page: Page) -> None:
    expect(page.locator("#tools .link")).to_have_text("live")


# ---------------------------------------------------------------- keys


# A slow machine takes longer between two keys than a person may.
PRESSED_AT_ONCE = """keys => {
    for (const key of keys) document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""


def test_keys_lead_to_the_views_and_the_help_lists_them(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    _is_live(page)
    page.keyboard.press("?")
    help_ = page.get_by_role("dialog", name="Keys")
    expect(help_).to_contain_text("Next line of a list")
    page.keyboard.press("Escape")
    expect(help_).to_have_count(0)
    for key, view in (("r", "runs"), ("a", "alerts"), ("s", "silences"), ("f", "fleet")):
        page.evaluate(PRESSED_AT_ONCE, ["g", key])
        expect(page).to_have_url(re.compile(f"#/{view}$"))


def test_j_and_k_go_through_the_lines_of_a_list(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/runs")
    links = page.locator("#view tbody .name a")
    expect(links).to_have_count(2)
    page.keyboard.press("j")
    expect(links.first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(links.first).to_be_focused()
    name = links.first.inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(name)


def test_keys_pressed_in_a_field_are_letters_and_keys_can_be_switched_off(troubled: Stage, reader: Reader) -> None:
    page = reader.open(troubled, "#/alerts")
    page.get_by_role("button", name="Acknowledge").first.click()
    page.get_by_label("Your name").press_sequentially("tull?")
    expect(page.get_by_label("Your name")).to_have_value("tull?")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings of this browser").click()
    page.get_by_role("dialog").get_by_label("Keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.reload()
    _is_live(page)
    page.keyboard.press("l")
    expect(page.locator("html")).to_have_attribute("lang", "en")


# ---------------------------------------------------------------- times


def test_every_time_follows_the_choice_of_utc_and_the_choice_is_kept(
    troubled: Stage, elsewhere: Callable[[Stage, str], Page]
) -> None:
    page = elsewhere(troubled, "#/alerts?id=a1")  # in Shanghai, eight hours ahead
    began = page.locator("#alert-a1, .alert").first.locator(".strip")
    when = began.locator("time").first
    expect(when).to_have_attribute("title", re.compile(r"GMT\+8"))
    expect(when).to_have_text(re.compile(r"^(\w+ \d+, )?\d\d:\d\d:\d\d$"))
    page.keyboard.press("u")
    expect(began).to_contain_text("UTC")
    expect(page.locator(".bar .zone")).to_have_text("UTC")
    assert "GMT+8" not in page.locator("#view").inner_text()
    page.reload()
    expect(began).to_contain_text("UTC")
    page.keyboard.press("u")
    expect(when).to_have_attribute("title", re.compile(r"GMT\+8"))


@pytest.fixture
def elsewhere(reader: Reader) -> Callable[[Stage, str], Page]:
    def open_(stage: Stage, address: str) -> Page:
        context: BrowserContext = reader.browser.new_context(timezone_id="Asia/Shanghai", locale="en")
        page = context.new_page()
        page.goto(stage.url + address)
        return page

    return open_


# ---------------------------------------------------------------- the first run


def test_the_guide_names_this_servers_own_address_and_ticks_off_the_first_agent(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    stage = staged(wire.Snapshot(at=time.time(), server=scenes.SERVER))
    page = reader.open(stage)
    host = stage.url.removeprefix("http://").rstrip("/")
    guide = page.locator(".welcome")
    for command in (f"oomwatch-agent --server {host}", "--log driver.log", "--ray", "--check", "--listen 0.0.0.0:"):
        expect(guide.locator("pre").filter(has_text=command).first).to_be_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    guide.get_by_role("button", name="Copy").first.click()
    assert f"--server {host}" in page.evaluate("navigator.clipboard.readText()")
    stage.send(wire.NodeChanged(node=scenes.node(1, time.time())))
    expect(page.locator("#toasts")).to_contain_text("gpu-01 has connected, with 8 GPUs")
    expect(guide).to_be_hidden()


# ---------------------------------------------------------------- a break of the connection


def _break(stage: Stage, page: Page, meanwhile: Callable[[], None]) -> None:
    stage.takes_browsers = False
    stage.drop()
    expect(page.locator("#tools .link")).to_have_text("reconnecting")
    meanwhile()
    stage.takes_browsers = True
    page.get_by_role("button", name="Try now").click()
    _is_live(page)


def test_what_fired_and_what_ended_during_a_break_is_told_until_it_was_seen(healthy: Stage, reader: Reader) -> None:
    at = time.time()
    healthy.snapshot = replace(healthy.snapshot, alerts=(_critical(at, "old", "1"),))
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("GPU 1 of gpu-01")

    def change() -> None:
        now = time.time()
        over = {"state": "resolved", "ended_at": now, "reason": "recovered"}
        gone, brief = (
            replace(_critical(at, "old", "1"), **over),
            replace(_critical(at, "brief", "5"), fired_at=now, **over),
        )
        fresh = replace(_critical(at, "new", "6"), fired_at=now)
        healthy.snapshot = replace(healthy.snapshot, at=now, alerts=(fresh, gone, brief))

    _break(healthy, page, change)
    notice = page.locator(".notice.missed")
    expect(notice).to_contain_text("2 alerts fired, 2 ended")
    expect(notice.get_by_role("listitem").filter(has_text="GPU 5")).to_contain_text("fired, and ended at")
    expect(notice.get_by_role("listitem").filter(has_text="GPU 1 of")).to_contain_text("ended at")
    expect(notice.get_by_role("listitem").filter(has_text="GPU 6")).to_contain_text("fired at")
    notice.get_by_role("button", name="Seen").click()
    expect(notice).to_have_count(0)


def test_a_break_in_which_nothing_happened_leaves_nothing_behind(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    _is_live(page)
    _break(healthy, page, lambda: None)
    expect(page.locator("#headline")).to_contain_text("headroom")
    expect(page.locator(".notice")).to_have_count(0)


def test_a_break_of_an_instant_changes_neither_the_sentence_nor_what_is_shown(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("headroom")
    page.evaluate(
        """() => {
            window.sentences = new Set();
            const note = () => window.sentences.add(document.getElementById("headline").textContent);
            new MutationObserver(note).observe(document.getElementById("headline"), {childList: true, subtree: true});
            document.querySelector("#view canvas, #view h1").same = true;
        }"""
    )
    before = healthy.connections_total
    healthy.send(scenes.tick(healthy.snapshot.nodes, time.time(), scenes.LEVELS))
    healthy.snapshot = replace(healthy.snapshot, at=time.time())
    healthy.drop()
    until("the page to be back", lambda: healthy.connections_total > before)
    _is_live(page)
    assert page.evaluate("[...window.sentences].filter(one => !one.includes('headroom'))") == []
    assert page.evaluate("document.querySelector('#view canvas, #view h1').same") is True


# The other views, and what draws their charts, are fetched once the first one is drawn.
ALL_IS_FETCHED = """() => ["/later.js", "/plotly.min.js"].every((file) => performance.getEntriesByType("resource").some(
    ({ name, responseEnd }) => name.endsWith(file) && responseEnd > 0))"""


def test_a_hidden_tab_draws_nothing_and_asks_for_nothing_but_its_title_tells(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy)
    expect(page.locator("#headline")).to_contain_text("headroom")
    page.wait_for_function(ALL_IS_FETCHED)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # Chromium without a screen shows every page for ever: a hidden one gets no frames, and says that it is hidden.
    page.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", {get: () => true, configurable: true});
            window.requestAnimationFrame = () => 0;
            window.changes = 0;
            new MutationObserver((all) => window.changes += all.length)
                .observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
        }"""
    )
    for _ in range(5):
        healthy.send(scenes.tick(healthy.snapshot.nodes, time.time(), scenes.LEVELS))
    healthy.send(wire.AlertChanged(alert=_critical(time.time())))
    expect(page).to_have_title(re.compile("GPU 3 of gpu-01"))
    assert page.evaluate("window.changes") == 0
    assert asked == []


# ---------------------------------------------------------------- notifications

COUNTING = """() => {
    window.shown = [];
    window.Notification = class {
        static permission = "default";
        static async requestPermission() {
            window.asked = true;
            return this.permission = "granted";
        }
        constructor(title, options) { window.shown.push(title + ": " + options.body); }
        close() {}
    };
    window.decided = 0; // how often this tab was told what is its to tell of
    const begin = IDBDatabase.prototype.transaction;
    IDBDatabase.prototype.transaction = function (...asked) {
        const transaction = begin.apply(this, asked);
        transaction.addEventListener("complete", () => window.decided += 1);
        return transaction;
    };
}"""


def test_new_alerts_are_notified_once_over_all_tabs_and_only_where_that_was_asked_for(
    healthy: Stage, reader: Reader
) -> None:
    first = reader.open(healthy)
    second = first.context.new_page()
    second.goto(healthy.url)
    for page in (first, second):
        _is_live(page)
        page.evaluate(COUNTING)
    assert first.evaluate("window.asked") is None
    first.get_by_role("button", name="Settings of this browser").click()
    first.get_by_label("Notifications of this browser").check()
    until("it to show that they arrive", lambda: first.evaluate("window.shown.length") == 1)
    second.evaluate("Notification.permission = 'granted'")
    before = [page.evaluate("window.decided") for page in (first, second)]
    muted = wire.Mute(kind="silence", by="s-1", until=time.time() + 600)
    healthy.send(
        wire.AlertChanged(alert=replace(_critical(time.time(), "quiet", "7"), muted=(muted,))),
        wire.AlertChanged(alert=_critical(time.time(), "x", "3")),
        wire.AlertChanged(alert=_critical(time.time(), "y", "4")),
    )
    critical = "window.shown.filter(one => one.startsWith('Critical'))"
    until("one of them to tell", lambda: any(page.evaluate(critical) for page in (first, second)))
    for page, decided in zip((first, second), before, strict=True):  # each tab has looked: no other one can come
        page.wait_for_function("before => window.decided > before", arg=decided)
    said = [line for page in (first, second) for line in page.evaluate(critical)]
    assert len(said) == 1
    assert "2 GPUs of gpu-01" in said[0] or "GPU 3 of gpu-01" in said[0]
    assert "GPU 7" not in said[0]
