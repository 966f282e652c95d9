"""The rules on the page of a real server: what each watches, and a changed file tried, refused, saved and in force."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.conftest import Reader
from tests.server.house import hello, sample
from tests.server.running_server import RULES, AgentClient, RunningServer, serving, settings_in, until

from oomwatch.settings import Settings

pytestmark = pytest.mark.browser
REFUSED = re.compile("Failed to load resource")
PATIENCE_MS = 30_000  # a try starts a process of its own


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(settings_in(tmp_path, rules_editable=True)) as server, AgentClient(server) as agent:
        agent.greet(hello(sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        yield server


@pytest.fixture
def closing_last(chromium: Browser) -> Iterator[Browser]:
    """Set up as a server is that a test names after its reader."""
    yield chromium
    assert chromium.contexts == []


def test_a_page_is_closed_before_the_server_that_it_asks(reader: Reader, closing_last: Browser) -> None:
    reader.visit("about:blank")
    assert len(closing_last.contexts) == 1


def _file(reader: Reader, server: RunningServer) -> Page:
    page = reader.visit(f"{server.url}/#/rules/file")
    expect(page.locator("textarea")).to_have_value(RULES)
    return page


def test_a_rule_says_where_it_fires_what_it_last_saw_and_how_good_it_was(reader: Reader, server: RunningServer) -> None:
    page = reader.visit(f"{server.url}/#/rules")
    rule = page.locator(".rule")
    expect(rule.locator("summary")).to_contain_text(re.compile(r"device memory in use above 85\s%"))
    expect(rule).to_contain_text(re.compile("fires on [1-9]"))
    rule.locator("summary").click()
    expect(rule).to_contain_text("threshold gpu_used_ratio above 85%")
    expect(rule.locator("tbody tr").first).to_contain_text("firing")
    expect(rule.locator("tbody tr").first).to_contain_text("85 %")
    expect(rule.locator(".rule-seen")).to_contain_text("so for 1")
    expect(rule.locator(".rule-seen tbody tr")).to_contain_text("99 %")
    expect(rule).to_contain_text("Failures warned of in time")


def test_of_what_a_rule_cannot_tell_the_page_says_what_is_missing(reader: Reader, server: RunningServer) -> None:
    with AgentClient(server) as quiet:
        quiet.greet(hello("gpu-99", sent_at=time.time()))
        until("the node", lambda: "gpu-99" in server.get("/api/v1/nodes").text)
        page = reader.visit(f"{server.url}/#/rules")
        page.locator(".rule > summary").click()
        seen = page.locator(".rule-seen")
        expect(seen).to_contain_text("unknown for 1")
        expect(seen.locator("tbody tr").last).to_contain_text("unknown")
        expect(seen).to_contain_text("Needed is a current reading of the card.")


def test_a_rule_is_switched_off_and_on_and_the_switch_is_undone(reader: Reader, server: RunningServer) -> None:
    page = reader.visit(f"{server.url}/#/rules")
    rule = page.locator(".rule")
    rule.locator("> summary").click()
    rule.get_by_role("button", name="Switch off: full/warning").click()
    expect(rule.locator("> summary")).to_contain_text("off")
    expect(page.locator("#toasts")).to_contain_text("full/warning is off")
    until("the alert to end", lambda: not server.get("/api/v1/alerts?state=firing").json())
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(rule.get_by_role("button", name="Switch off: full/warning")).to_be_visible()
    assert server.get("/api/v1/rules/all").json()[0]["enabled"]
    rule.get_by_role("link", name="Edit in the file").click()
    expect(page.locator("textarea")).to_be_visible()


def test_a_change_is_tried_on_the_last_hours_and_what_it_would_have_done_is_a_table(
    reader: Reader, server: RunningServer
) -> None:
    page = _file(reader, server)
    page.locator("textarea").fill(RULES.replace("85%", "99.9%"))
    expect(page.locator("select option:checked")).to_have_text("the last 24 h")
    page.get_by_role("button", name="Try").click()
    expect(page.locator(".tryout")).to_contain_text("would have fired 0 times; those in force:", timeout=PATIENCE_MS)
    expect(page.locator(".tryout tbody tr")).to_contain_text("full/warning changed")
    assert "85%" in server.get("/api/v1/rules/file").json()["text"]


def test_a_try_can_be_cancelled(reader: Reader, server: RunningServer) -> None:
    page = _file(reader, server)
    page.get_by_role("button", name="Try").click()
    page.locator(".progress").get_by_role("button", name="Cancel").click()
    expect(page.locator(".progress")).to_be_hidden()
    expect(page.get_by_role("button", name="Try")).to_be_enabled()
    assert page.locator(".problem").inner_text() == ""


def test_mistakes_are_shown_at_their_lines_and_nothing_is_changed(reader: Reader, server: RunningServer) -> None:
    page = _file(reader, server)
    page.locator("textarea").fill(RULES.replace("gpu_used_ratio", "gpu_used_ration"))
    page.get_by_role("button", name="Save and put in force").click()
    expect(page.locator(".mistakes li").last).to_contain_text(re.compile("Line 5:.*gpu_used_ration"))
    expect(page.locator(".numbers .mistaken")).to_have_text("5\n")
    page.locator(".mistakes button").first.click()
    selected = page.locator("textarea").evaluate("one => one.value.slice(one.selectionStart, one.selectionEnd)")
    assert "gpu_used_ration" in selected
    reader.forgive(REFUSED)


def test_a_saved_file_is_in_force_at_once_and_a_draft_outlives_a_look_elsewhere(
    reader: Reader, server: RunningServer
) -> None:
    page = _file(reader, server)
    page.locator("textarea").fill(RULES.replace("full", "brimful"))
    page.get_by_role("link", name="Rules", exact=True).first.click()
    expect(page.locator(".rule")).to_be_visible()
    page.get_by_role("link", name="The file").click()
    expect(page.locator("textarea")).to_have_value(RULES.replace("full", "brimful"))
    page.get_by_role("button", name="Save and put in force").click()
    expect(page.locator("#toasts")).to_contain_text("Saved: 1 rule is in force")
    assert [one["alert"] for one in server.get("/api/v1/rules").json()["rules"]] == ["brimful"]


def test_a_file_that_somebody_else_changed_meanwhile_is_not_overwritten(reader: Reader, server: RunningServer) -> None:
    page = _file(reader, server)
    page.locator("textarea").fill(RULES.replace("full", "mine"))
    told = server.get("/api/v1/rules/file").json()
    theirs = RULES.replace("full", "theirs")
    server.ask("PUT", "/api/v1/rules/file", content=theirs.encode(), headers={"If-Match": f'"{told["digest"]}"'})
    page.get_by_role("button", name="Save and put in force").click()
    expect(page.locator(".problem")).to_contain_text("changed by somebody else")
    page.get_by_role("button", name="Discard changes").click()
    expect(page.locator("textarea")).to_have_value(theirs)
    reader.forgive(REFUSED)


def test_where_rules_may_not_be_changed_the_page_says_how_to_let_them(
    reader: Reader, served: Callable[[Settings], RunningServer], tmp_path: Path
) -> None:
    server = served(settings_in(tmp_path))
    page = reader.visit(f"{server.url}/#/rules")
    expect(page.locator(".locked")).to_contain_text("--rules-editable")
    page.locator(".rule > summary").click()
    expect(page.locator(".rule").get_by_role("link", name="Edit in the file")).to_be_visible()
    expect(page.locator(".rule").get_by_role("button")).to_have_count(0)
    page = _file(reader, server)
    expect(page.locator(".locked")).to_contain_text("--rules-editable")
    expect(page.get_by_role("button", name="Save and put in force")).to_be_hidden()
    expect(page.get_by_role("button", name="Try")).to_be_enabled()
