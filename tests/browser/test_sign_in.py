"""People sign in and out in a real browser, over a real server."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.access.conftest import PASSWORD, settle
from tests.access.provider import CLIENT_ID, CLIENT_SECRET, FakeProvider
from tests.browser.test_accessible import axe, found
from tests.server.running_server import RunningServer, settings_in

from oomwatch.settings import Settings
from oomwatch.store.store import Store

__all__ = ["axe"]  # a fixture

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000  # the machine may be busy; what is waited for comes within seconds


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(locale="en")
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def at_lins(served: Callable[[Settings], RunningServer], tmp_path: Path) -> RunningServer:
    """A server to which lin, an operator, signs in."""
    settle(tmp_path)
    return served(settings_in(tmp_path))


def _sign_in(page: Page, password: str = PASSWORD) -> None:
    page.get_by_label("Name").fill("lin")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in · 登录").click()


def _sees(page: Page) -> None:
    expect(page.locator(".welcome")).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_person_signs_in_by_a_token_and_sees_the_page(
    chromium: Browser, served: Callable[[Settings], RunningServer], axe: str, tmp_path: Path, scheme: str
) -> None:
    server = served(settings_in(tmp_path, reader_token="look"))
    context = chromium.new_context(color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    page.goto(server.url)
    expect(page.get_by_label("Token")).to_be_focused()
    assert list(found(page, axe)) == []
    page.get_by_label("Token").fill("guess")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not known", timeout=PATIENCE_MS)
    assert list(found(page, axe)) == []
    page.get_by_label("Token").fill("look")
    page.get_by_role("button", name="Sign in").click()
    _sees(page)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_person_signs_in_by_name_where_a_link_led(page: Page, at_lins: RunningServer, axe: str, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{at_lins.url}/#/rules")
    expect(page.get_by_label("Name")).to_be_focused()
    assert list(found(page, axe)) == []
    _sign_in(page, "guess")
    expect(page.get_by_role("alert")).to_contain_text("do not belong together", timeout=PATIENCE_MS)
    _sign_in(page)
    expect(page.locator("#nav [aria-current=page]")).to_have_text("Rules", timeout=PATIENCE_MS)
    assert page.url == f"{at_lins.url}/#/rules"


def test_a_person_signs_out_in_the_settings(page: Page, at_lins: RunningServer) -> None:
    page.goto(at_lins.url)
    _sign_in(page)
    _sees(page)
    page.get_by_role("button", name="Settings of this browser").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Signed in as lin, who may look and act")
    dialog.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Name")).to_be_visible(timeout=PATIENCE_MS)
    page.goto(at_lins.url)
    expect(page.get_by_label("Name")).to_be_visible()


@pytest.mark.parametrize(
    ("language", "said", "button"),
    [("en", "You are signed out: what is shown is", "Sign in"), ("zh", "你已退出登录", "登录")],
)
def test_a_page_whose_session_has_ended_says_so_and_leads_to_signing_in(
    chromium: Browser, at_lins: RunningServer, tmp_path: Path, language: str, said: str, button: str
) -> None:
    context = chromium.new_context(locale=language)
    page = context.new_page()
    page.goto(f"{at_lins.url}/#/rules")
    _sign_in(page)
    expect(page.locator("#tools .link-live")).to_be_visible(timeout=PATIENCE_MS)
    _change_password(tmp_path)
    expect(page.locator("#headline")).to_contain_text(said, timeout=PATIENCE_MS)
    expect(page.locator("#tools .link-ended")).to_be_visible()
    page.locator("#tools").get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_label("Name")).to_be_visible(timeout=PATIENCE_MS)
    assert page.url == f"{at_lins.url}/#/rules"
    context.close()


def _change_password(folder: Path) -> None:
    with closing(Store.open(f"sqlite:///{folder}/oomwatch.db")) as store:
        user = store.people.user("lin")
        assert user is not None
        store.people.keep_user(msgspec.structs.replace(user, changed_at=time.time()))


def test_a_page_of_another_tab_goes_on_once_somebody_has_signed_in_again(
    page: Page, at_lins: RunningServer, tmp_path: Path
) -> None:
    page.goto(at_lins.url)
    _sign_in(page)
    _sees(page)
    _change_password(tmp_path)
    expect(page.locator("#tools .link-ended")).to_be_visible(timeout=PATIENCE_MS)
    other = page.context.new_page()
    other.goto(at_lins.url)
    _sign_in(other)
    _sees(other)
    page.evaluate("dispatchEvent(new Event('online'))")  # as when the tab is looked at again
    expect(page.locator("#tools .link-live")).to_be_visible(timeout=PATIENCE_MS)


@pytest.fixture
def idp() -> Iterator[FakeProvider]:
    provider = FakeProvider(time.time)
    yield provider
    provider.stop()


def test_a_person_signs_in_by_an_identity_provider(
    page: Page, served: Callable[[Settings], RunningServer], idp: FakeProvider, tmp_path: Path, axe: str
) -> None:
    settings = settings_in(
        tmp_path,
        oidc_issuer=idp.issuer,
        oidc_client_id=CLIENT_ID,
        oidc_client_secret=CLIENT_SECRET,
        operators=("gpu-ops",),
    )
    server = served(settings)
    page.goto(server.url)
    assert list(found(page, axe)) == []
    page.get_by_role("link", name="Sign in with 127.0.0.1").click()
    _sees(page)
    assert page.url == f"{server.url}/"
    page.get_by_role("button", name="Settings of this browser").click()
    expect(page.get_by_role("dialog")).to_contain_text("Signed in as lin, who may look and act")
    page.keyboard.press("Escape")
    idp.person = {**idp.person, "groups": ["visitors"]}
    page.context.clear_cookies()
    page.goto(server.url)
    page.get_by_role("link", name="Sign in with 127.0.0.1").click()
    expect(page.get_by_role("alert")).to_contain_text("in no group that may look", timeout=PATIENCE_MS)
