"""What a person does on the page of a server, in either language. Every way ends where the next one may begin."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from playwright.sync_api import Page, expect

from oomwatch import wire
from oomwatch.catalogue import say

PATIENCE_MS = 60_000  # plotly takes seconds on a busy machine


class Journey(NamedTuple):
    """Someone at a page in a language, and what there is to be seen on the server."""

    page: Page
    language: wire.Language
    node: str
    run: str
    other_run: str
    alert: str  # the id of one that fires
    incident: str  # the id of one of the node
    addresses: Mapping[str, str]  # of views, as look.py has them, with the server's own before each

    def says(self, key: str) -> str:
        return say(key, self.language)

    def press(self, key: str) -> None:
        self.page.get_by_role("button", name=self.says(key), exact=True).first.click()


def every_journey(way: Journey) -> None:
    """One after the other, without a page being loaded anew but by its address."""
    for journey in (_search, _over_time, _table, _compare, _report, _filter, _silence, _acknowledge, _try, _wall):
        way.page.bring_to_front()
        journey(way)


def _search(way: Journey) -> None:
    way.page.goto(way.addresses["fleet"])
    expect(way.page.locator(".full li").first).to_be_visible(timeout=PATIENCE_MS)
    way.page.keyboard.press("/")
    expect(way.page.get_by_role("combobox", name=way.says("search.label"))).to_be_focused()
    way.page.keyboard.type(f"{way.node}:2")
    expect(way.page.get_by_role("option")).to_have_count(1)
    way.page.keyboard.press("Enter")
    expect(way.page.locator("h1")).to_contain_text("GPU 2", timeout=PATIENCE_MS)


def _over_time(way: Journey) -> None:
    """Nearer, to the past, and back to what is live."""
    way.page.goto(way.addresses["gpu"])
    expect(way.page.locator(".plot .main-svg").first).to_be_visible(timeout=PATIENCE_MS)
    way.press("range.closer")
    expect(way.page).to_have_url(re.compile("span=300$"))
    way.press("range.earlier")
    expect(way.page.locator(".standing")).to_be_visible()
    way.press("range.live")
    expect(way.page.locator(".standing")).to_have_count(0)


def _table(way: Journey) -> None:
    way.page.locator(".chart-table summary", has_text=way.says("chart.table")).first.click()
    expect(way.page.locator(".chart-table tbody tr").first).to_contain_text("GiB", timeout=PATIENCE_MS)


def _compare(way: Journey) -> None:
    way.page.goto(way.addresses["run"])
    choice = way.page.get_by_label(way.says("run.compare"))
    choice.select_option(way.other_run, timeout=PATIENCE_MS)
    expect(way.page).to_have_url(re.compile(re.escape(f"with={quote(way.other_run, safe='')}")))
    expect(way.page.locator("#view")).to_contain_text(way.other_run)
    choice.select_option("")
    expect(way.page).not_to_have_url(re.compile("with="))


def _report(way: Journey) -> None:
    way.page.goto(way.addresses["incidents"])
    with way.page.expect_download(timeout=PATIENCE_MS) as download:
        way.page.locator(f'a[download="{way.incident}.html"]', has_text=way.says("run.download")).first.click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert way.node in text
    assert f'lang="{way.language}' in text


def _filter(way: Journey) -> None:
    """By a rule of which nothing is open, and by one that fires; the address bears it, for others to open."""
    way.page.goto(f"{way.addresses['alerts']}?state=open&alert=agent_silent")
    expect(way.page.locator(".alert")).to_have_count(0)
    way.page.goto(f"{way.addresses['alerts']}?state=open&alert=gpu_memory_high&node={way.node}")
    expect(way.page.locator(".alert")).to_have_count(1)
    expect(way.page.locator(".alert")).to_contain_text("GPU 2")


def _silence(way: Journey) -> None:
    """As far as the preview: a silence would hold for whoever comes next."""
    way.page.goto(way.addresses["alert"])
    card = way.page.locator(f"#alert-{way.alert}")
    card.get_by_role("button", name=way.says("silence.open")).click()
    dialog = way.page.get_by_role("dialog")
    expect(dialog.get_by_role("region")).to_contain_text("1")
    dialog.get_by_role("button", name=way.says("dialog.cancel")).click()
    expect(dialog).to_have_count(0)


def _acknowledge(way: Journey) -> None:
    card = way.page.locator(f"#alert-{way.alert}")
    card.get_by_role("button", name=way.says("ack.do.one"), exact=True).click()
    dialog = way.page.get_by_role("dialog")
    dialog.get_by_label(way.says("sign.name")).fill("wei")
    dialog.get_by_role("button", name=way.says("ack.do.one"), exact=True).click()
    expect(card).to_contain_text("wei")
    card.get_by_role("button", name=way.says("ack.take_back.one")).click()
    expect(card.get_by_role("button", name=way.says("ack.do.one"), exact=True)).to_be_visible()


def _try(way: Journey) -> None:
    """A changed rule on the last hours; what is in force stays so."""
    way.page.goto(way.addresses["rule-file"])
    text = way.page.locator("textarea")
    expect(text).to_have_value(re.compile("above: 85%"))
    text.fill(text.input_value().replace("above: 85%", "above: 99.9%"))
    way.press("rules.try")
    expect(way.page.locator(".tryout tbody")).to_contain_text("gpu_memory_high", timeout=PATIENCE_MS)


def _wall(way: Journey) -> None:
    way.page.goto(way.addresses["fleet"])
    way.page.get_by_role("button", name=way.says("fleet.wall")).click()
    expect(way.page.locator("header.bar")).to_be_hidden()
    way.page.keyboard.press("Escape")
    expect(way.page.locator("header.bar")).to_be_visible()
