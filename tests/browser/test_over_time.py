"""A GPU and a node over time, in a real browser: which stretch is shown, what is missing, where the memory is."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
import pytest
from playwright.sync_api import Browser, Page, Request, expect
from tests.browser import scenes
from tests.browser.conftest import Reader, fits
from tests.browser.stage import Stage
from tests.server.house import hello, sample
from tests.server.running_server import AgentClient, RunningServer, serving, settings_in, until

from oomwatch import wire

pytestmark = pytest.mark.browser
GPU = "#/gpu/gpu-02/3"
replace = msgspec.structs.replace


class Asked:
    """What a page asks the history for."""

    def __init__(self, page: Page) -> None:
        self.queries: list[dict[str, str]] = []  # the series parted by spaces
        page.on("request", self._hear)

    def _hear(self, request: Request) -> None:
        if "/api/v1/history?" in request.url:
            asked = parse_qs(request.url.split("?", 1)[1])
            self.queries.append({key: " ".join(values) for key, values in asked.items()})

    def spans(self, series: str = "gpu_used_bytes") -> list[float]:
        return [float(one["to"]) - float(one["from"]) for one in self.queries if series in one["series"].split()]


def _drawn(page: Page) -> Page:
    """Once plotly is loaded and has drawn what the history told."""
    expect(page.locator(".plot .main-svg").first).to_be_visible(timeout=30_000)
    expect(page.locator(".chart-frame").first).to_have_attribute("aria-busy", "false")
    return page


def _width_seconds(page: Page) -> float:
    """What the chart shows, from end to end."""
    return float(
        page.evaluate(
            """() => {
                 const [from, to] = document.querySelector(".plot").layout.xaxis.range;
                 return (new Date(to.replace(" ", "T")) - new Date(from.replace(" ", "T"))) / 1000;
               }"""
        )
    )


def _until_width(page: Page, seconds: float) -> None:
    """The address changes first, and the chart is drawn anew when its history has come."""
    until(f"the chart to show {seconds} s", lambda: _width_seconds(page) == pytest.approx(seconds))


def _until_as_addressed(page: Page) -> None:
    """The chart shows what the address says, to the second."""
    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
    start, end = map(int, re.findall(r"(?:from|to)=(\d+)", page.url))
    _until_width(page, end - start)


def _drag(page: Page, start: float, end: float) -> None:
    """Across the plot, from one share of its width to another."""
    box = page.locator(".plot .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + start * box["width"], box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + (start + end) / 2 * box["width"], box["y"] + 150, steps=4)
    page.mouse.move(box["x"] + end * box["width"], box["y"] + 150, steps=4)
    page.mouse.up()


def test_each_span_asks_the_history_for_no_more_points_than_the_chart_has_pixels(
    troubled: Stage, reader: Reader
) -> None:
    page = _drawn(reader.open(troubled, GPU))
    asked = Asked(page)
    for name, seconds in (("1 h", 3600), ("6 h", 21_600), ("24 h", 86_400), ("7 d", 604_800), ("10 min", 600)):
        asked.queries.clear()
        page.locator(".time-bar").get_by_role("link", name=name).click()
        expect(page.locator(".time-bar [aria-current]")).to_have_text(name)
        expect(page).to_have_url(re.compile(f"span={seconds}$"))
        page.wait_for_function("() => document.querySelector('.chart-frame').getAttribute('aria-busy') === 'false'")
        (query,) = [one for one in asked.queries if "gpu_used_bytes" in one["series"].split()]
        assert float(query["to"]) - float(query["from"]) == pytest.approx(seconds, abs=2)
        pixels = page.locator(".plot .nsewdrag").first.bounding_box()
        assert pixels is not None
        assert seconds / float(query["step"]) <= pixels["width"] + 1


def test_dragging_across_the_chart_zooms_in_and_the_address_shows_the_same_to_others(
    troubled: Stage, reader: Reader
) -> None:
    page = _drawn(reader.open(troubled, GPU))
    asked = Asked(page)
    _drag(page, 0.4, 0.6)
    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
    expect(page.locator(".standing")).to_contain_text("stands still")
    _until_as_addressed(page)
    assert asked.spans()[-1] == pytest.approx(120, abs=8)
    assert _width_seconds(page) == pytest.approx(120, abs=8)
    other = _drawn(reader.open(troubled, "#" + page.url.split("#")[1]))
    _until_as_addressed(other)
    expect(other.locator(".standing")).to_have_text(page.locator(".standing").inner_text())


def test_what_was_zoomed_stands_still_and_one_press_leads_back_to_live(troubled: Stage, reader: Reader) -> None:
    page = _drawn(reader.open(troubled, GPU))
    _drag(page, 0.2, 0.7)
    expect(page.locator(".standing")).to_be_visible()
    _until_as_addressed(page)
    before = page.evaluate(
        """() => {
             const plot = document.querySelector(".plot");
             window.drawn = 0;
             plot.on("plotly_afterplot", () => (window.drawn += 1));
             return plot.layout.xaxis.range;
           }"""
    )
    troubled.send(scenes.tick(troubled.snapshot.nodes, time.time() + 3, scenes.LEVELS))
    page.wait_for_function("() => window.drawn >= 1")  # what came was drawn: into the stretch that was chosen
    assert page.evaluate("() => document.querySelector('.plot').layout.xaxis.range") == before
    page.get_by_role("button", name="Back to live").click()
    expect(page.locator(".standing")).to_have_count(0)
    expect(page).to_have_url(re.compile("span=600$"))
    page.go_back()
    expect(page.locator(".standing")).to_be_visible()


def test_the_keys_and_the_buttons_zoom_and_move(troubled: Stage, reader: Reader) -> None:
    page = _drawn(reader.open(troubled, GPU))
    page.locator(".chart-frame").focus()
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("span=300$"))
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".standing")).to_be_visible()
    page.keyboard.press("End")
    expect(page).to_have_url(re.compile("span="))
    page.get_by_role("button", name="Zoom out").click()
    expect(page).to_have_url(re.compile("span=1200$"))
    expect(page.get_by_role("button", name="Zoom out")).to_be_focused()
    page.get_by_role("button", name="Earlier").click()
    page.get_by_role("button", name="Later").click()
    expect(page).to_have_url(re.compile("span=1200$"))


def test_any_time_can_be_asked_for_and_one_that_is_none_is_refused_in_words(troubled: Stage, reader: Reader) -> None:
    page = _drawn(reader.open(troubled, GPU))
    page.locator(".time-bar summary").click()
    page.get_by_label("From").fill("2026-01-02T10:00:00")
    page.get_by_label("To", exact=True).fill("2026-01-02T09:00:00")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".time-bar [role=alert]")).to_contain_text("The end must be after the beginning")
    page.get_by_label("To", exact=True).fill("2026-01-02T11:30:00")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".standing")).to_contain_text("Jan 2, 2026")
    _until_width(page, 5400)


def test_a_lost_connection_leaves_no_hole_in_the_chart(healthy: Stage, reader: Reader) -> None:
    page = _drawn(reader.open(healthy, "#/gpu/gpu-01/3"))
    healthy.send(scenes.tick(healthy.snapshot.nodes, time.time(), {}))
    expect(page.locator(".figures")).to_contain_text("%")
    asked = Asked(page)
    before = healthy.connections_total
    healthy.drop()
    until("the page to be connected again", lambda: healthy.connections_total == before + 1)
    at = time.time() + 60  # a minute was missed
    healthy.send(scenes.tick(healthy.snapshot.nodes, at, {}))

    def are_asked_for() -> bool:  # what the connection's return had it ask for may come before
        page.wait_for_timeout(20)
        return any(float(one["to"]) >= at - 2 for one in asked.queries)

    until("the missed minute to be asked for", are_asked_for)
    assert asked.spans()[-1] == pytest.approx(600, abs=2)


def test_what_was_not_read_is_a_gap_and_is_said(troubled: Stage, reader: Reader) -> None:
    page = _drawn(reader.open(troubled, GPU))
    expect(page.locator("main")).to_contain_text(re.compile(r"Nothing was read from \d\d:\d\d:\d\d to"))
    missing = page.evaluate(
        """() => document.querySelector(".plot").data.find((one) => one.name === "Device memory used").y
             .filter((value) => value === null || value === undefined).length"""
    )
    assert missing == 12


def test_the_chart_has_a_table_with_its_numbers(troubled: Stage, reader: Reader) -> None:
    page = _drawn(reader.open(troubled, GPU))
    page.locator(".chart-table summary").first.click()
    table = page.locator(".chart-table table")
    expect(table.locator("tbody tr")).to_have_count(30)
    heads = ["From", "Device memory used", "Reserved by torch", "Allocated by torch"]
    heads += ["Training processes", "Rollout engine", "Other processes"]
    expect(table.locator("thead th")).to_have_text(heads)
    expect(table.locator("tbody tr").nth(2)).to_contain_text(re.compile(r"\d\sGiB \(\d+\.\d\sGiB – \d+\.\d\sGiB\)"))
    expect(table).to_contain_text("–")


def test_where_the_memory_is_adds_up_to_what_is_in_use(healthy: Stage, reader: Reader) -> None:
    view = healthy.snapshot.nodes[0]
    healthy.snapshot = replace(healthy.snapshot, nodes=(replace(view, together=view.sample),))
    page = _drawn(reader.open(healthy, "#/gpu/gpu-01/3"))
    section = page.locator("section", has_text="Where the memory is now").last
    told = ["Allocated by torch", "Reserved by torch, unused", "CUDA context and libraries", "Rollout engine"]
    expect(section.locator("tbody tr td:first-child").last).to_have_text("In use")
    names = section.locator("tbody tr td:first-child").all_inner_texts()
    asleep = [name for name in told if name != "CUDA context and libraries"]  # of which some moments leave nothing
    assert names in [[*those, "Other processes", "Unattributed", "In use"] for those in (told, asleep)]
    gib = [float(text.split()[0]) for text in section.locator("tbody tr td:nth-child(2)").all_inner_texts()]
    assert sum(gib[:-1]) == pytest.approx(gib[-1], abs=0.35)


LAYERS = {
    "en": (
        "Allocated by torch",
        "Reserved by torch, unused",
        "CUDA context and libraries",
        "Rollout engine",
        "Other processes",
        "Unattributed",
    ),
    "zh-CN": ("torch 已分配", "torch 已保留未使用", "CUDA 上下文与库", "rollout 引擎", "其他进程", "未归属部分"),
}


@pytest.mark.parametrize("language", LAYERS)
def test_over_time_the_engine_and_others_are_told_from_the_trainer(
    language: str, healthy: Stage, reader: Reader
) -> None:
    names = list(LAYERS[language])
    page = _drawn(reader.open(healthy, "#/gpu/gpu-01/3?span=3600", language=language))
    expect(page.locator(".legend.lines li")).to_have_text([*names, re.compile(".+")])
    *tops, used = _at_one_moment(page, [*names, page.locator(".legend.lines li").last.inner_text()])
    assert tops == sorted(tops)
    assert tops[-1] == pytest.approx(used)


def _at_one_moment(page: Page, names: list[str]) -> list[float]:
    """What each line says at the last moment of which all of them say something: the latest is told of some alone.

    A layer is drawn as a band: its upper edge, and back along the lower one. What came last may be drawn later.
    """
    all_told = """(names) => {
             const drawn = document.querySelector(".plot").data;
             const lines = names.map((name) => drawn.find((one) => one.name === name));
             if (lines.includes(undefined)) return null;
             const known = lines.map((one) => new Map(
               Array.from(one.x, (at, place) => [+at, one.y[place]]).filter(([, gib]) => gib !== null).reverse()));
             const told = [...known[0].keys()].filter((at) => known.every((one) => one.has(at)));
             return told.length ? known.map((one) => one.get(Math.max(...told))) : null;
           }"""

    def told() -> list[float] | None:
        found: list[float] | None = page.evaluate(all_told, names)
        return found

    return until(f"{names} to be drawn", told)


def test_a_host_shows_what_its_processes_hold_by_kind_and_the_machine_beside_the_container(
    healthy: Stage, reader: Reader
) -> None:
    page = _drawn(reader.open(healthy, "#/node/gpu-01?span=3600"))
    plot = page.locator(".plot").first
    expect(plot).to_contain_text("Largest processes, by kind (GiB)")

    def lines() -> set[str] | None:  # the history comes after the readings of now, with which a chart begins
        names = page.evaluate("() => document.querySelector('.plot').data.map((one) => one.name).filter(Boolean)")
        return set(names) if {"Training workers", "Rollout engine", "Driver", "The machine"} <= set(names) else None

    drawn = until("all lines to be drawn", lines)
    assert "Ray's object store" not in drawn  # it holds nothing
    names = page.locator(".legend.lines")  # not within the chart, where on a phone they would lie on its title
    expect(names.first).to_contain_text("The machine")
    expect(names.last).to_contain_text("Training workers")
    expect(plot).not_to_contain_text("Training workers")


def test_a_run_shows_what_its_containers_hold_beside_the_host(healthy: Stage, reader: Reader) -> None:
    page = reader.open(healthy, f"#/run/{scenes.RUN}")
    row = page.locator('[data-row="host"]')
    expect(row.locator("li", has_text="The container")).to_contain_text("GiB", timeout=30_000)
    expect(row).to_contain_text("limit 1,024", timeout=30_000)


def test_a_forecast_is_drawn_up_to_when_the_memory_is_full(healthy: Stage, reader: Reader) -> None:
    page = _drawn(reader.open(healthy, "#/gpu/gpu-01/3"))
    usable = scenes.TOTAL_BYTES - scenes.RESERVED_BYTES
    facts: dict[str, wire.Fact] = {
        "eta_seconds": 120.0,
        "eta_low_seconds": 90.0,
        "eta_high_seconds": 200.0,
        "level_bytes": usable - 4 * scenes.GIB,
        "usable_bytes": usable,
    }
    warning = scenes.alert(
        time.time(),
        key="f",
        severity="critical",
        labels={"node": "gpu-01", "gpu": "3"},
        english="GPU 3 of gpu-01 will be full in about 2 min",
        chinese="gpu-01 的 GPU 3 约 2 分钟后显存耗尽",
    )
    healthy.send(wire.AlertChanged(alert=replace(warning, alert="memory_forecast", facts=facts)))
    expect(page.locator(".legend.lines")).to_contain_text("Forecast")
    expect(page.locator(".plot")).to_contain_text("full about")
    line = page.evaluate(
        "() => document.querySelector('.plot').data.findLast((one) => one.name === 'Forecast').y.map(Math.round)"
    )
    assert line == [75, 78, 79, 79]
    assert _width_seconds(page) == pytest.approx(600 + 220, abs=5)


def test_a_node_shows_its_host_memory_its_gpus_in_small_and_what_helps_its_sources(
    troubled: Stage, reader: Reader
) -> None:
    page = _drawn(reader.open(troubled, "#/node/gpu-03"))
    expect(page.locator(".spark")).to_have_count(8)
    expect(page.locator(".spark").first).to_have_attribute("aria-label", re.compile(r"Peak \d+\s% in 10 min"))
    expect(page.locator(".plot")).to_contain_text("limit 1,024 GiB")
    expect(page.locator("main")).to_contain_text("Smaller processes, caches and the kernel")
    expect(page.locator("th", has_text="Of the limit")).to_be_visible()
    fixes = page.locator(".sources .fix")
    expect(fixes.first).to_contain_text("See dmesg for Xid lines")
    expect(fixes.last.locator("code")).to_have_text("--ray DIR")
    page.locator(".time-bar").get_by_role("link", name="1 h").click()
    expect(page.locator(".spark").first).to_have_attribute("aria-label", re.compile("in 1 h"))


@pytest.mark.parametrize("address", [GPU, "#/node/gpu-03"])
def test_nothing_is_cut_off_on_a_phone_or_a_wall(address: str, troubled: Stage, reader: Reader) -> None:
    page = _drawn(reader.open(troubled, address, width=2560, dark=True, language="zh-CN"))
    expect(page.locator(".time-bar")).to_contain_text("24 小时")
    fits(page, 2560, 1440, 390)


def test_a_hidden_tab_draws_nothing_and_misses_nothing(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    stage = staged(scenes.healthy(time.time()))
    page = _drawn(reader.open(stage, "#/gpu/gpu-01/3"))
    stage.send(scenes.tick(stage.snapshot.nodes, time.time(), {}))
    page.evaluate(
        """() => {
             const plot = document.querySelector(".plot");
             window.drawn = 0;
             window.putOff = 0;
             plot.on("plotly_afterplot", () => (window.drawn += 1));
             Object.defineProperty(document, "hidden", { value: true, configurable: true });
             const listen = document.addEventListener;
             document.addEventListener = function (kind, ...rest) {
               if (kind === "visibilitychange") window.putOff += 1;
               return listen.call(this, kind, ...rest);
             };
           }"""
    )
    for second in range(1, 4):
        stage.send(scenes.tick(stage.snapshot.nodes, time.time() + second, {}))
    page.wait_for_function("() => window.putOff >= 1")  # a redraw was due, and waits until somebody looks
    assert page.evaluate("() => window.drawn") <= 1  # one may have been on its way
    page.evaluate(
        """() => {
             Object.defineProperty(document, "hidden", { value: false, configurable: true });
             document.dispatchEvent(new Event("visibilitychange"));
           }"""
    )
    page.wait_for_function("() => window.drawn >= 1")


def test_a_real_servers_history_is_drawn_with_its_peak(chromium: Browser, tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    now = time.time()
    with serving(settings) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=now))
        agent.say(*(sample(number, number, now - 70 + 2 * number) for number in range(1, 31)))
        agent.hear_ack_of(30)
        until("the readings to be stored", lambda: _stored(server, now))
        page = chromium.new_page(locale="en")
        page.goto(f"{server.url}/#/gpu/gpu-07/0?from={int(now - 120)}&to={int(now)}")
        _drawn(page)
        page.wait_for_function(
            "() => document.querySelector('.plot').data.find((one) => one.name === 'Device memory used').y.length >= 29"
        )
        peak = page.evaluate("() => Math.max(...document.querySelector('.plot').data.find((one) => one.fill).y)")
        assert peak == pytest.approx(30, abs=0.1)
        page.close()


def test_a_past_stretch_of_a_real_server_is_split_by_whose_memory_it_was(chromium: Browser, tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    now = time.time()
    gib = scenes.GIB
    held = (
        wire.GpuProcess(pid=1, used_bytes=30 * gib, name="ray::WorkerDict", run="r", role="actor"),
        wire.GpuProcess(pid=2, used_bytes=20 * gib, name="VLLM::Worker", run="r", role="rollout"),
        wire.GpuProcess(pid=3, used_bytes=5 * gib, name="python"),
    )
    with serving(settings) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=now))
        for number in range(1, 31):
            listed = held if number % 5 == 1 else None
            told = replace(sample(number, 58, now - 70 + 2 * number).gpus[0], processes=listed)
            agent.say(wire.Sample(seq=number, at=now - 70 + 2 * number, gpus=(told,)))
        agent.hear_ack_of(30)
        until("the readings to be stored", lambda: _stored(server, now))
        page = chromium.new_page(locale="en")
        page.goto(f"{server.url}/#/gpu/gpu-07/0?from={int(now - 120)}&to={int(now)}")
        _drawn(page)
        names = ["Training, not told apart", "Rollout engine", "Other processes", "Unattributed"]
        expect(page.locator(".legend.lines li")).to_have_text([*names, "Device memory used"], timeout=30_000)
        assert _at_one_moment(page, names) == pytest.approx([30, 50, 55, 58])
        page.close()


def _stored(server: RunningServer, now: float) -> bool:
    query = f"series=gpu_used_bytes&node=gpu-07&gpu=0&from={now - 120}&to={now + 1}"
    return len(server.get(f"/api/v1/history?{query}").json()["at"]) >= 29
