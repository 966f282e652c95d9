"""A page of another site, in the browser of somebody who is signed in, tries what it can."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from tests.access.conftest import PASSWORD, settle
from tests.server.running_server import RunningServer, settings_in
from tests.server.test_access import certificates

from oomwatch.settings import Settings

__all__ = ["certificates"]  # a fixture

pytestmark = pytest.mark.browser
PATIENCE_MS = 60_000

# Each gives what the page gets to know.
TRIES = {
    # It is sent; the answer is kept from the page.
    "silence": """(url) => {
      const body = JSON.stringify({match: ['node="gpu-07"'], duration: "1h", created_by: "evil"});
      const request = {method: "POST", mode: "no-cors", credentials: "include", body};
      return fetch(`${url}/api/v1/silences`, request).then(() => "answered", () => "nothing");
    }""",
    "read": """(url) =>
      fetch(`${url}/api/v1/state`, {credentials: "include"}).then(() => "read", () => "nothing")""",
    "embed": """(url) => new Promise((done) => {
      const script = document.createElement("script");
      Object.assign(script, {src: `${url}/api/v1/state`, onload: () => done("loaded"), onerror: () => done("nothing")});
      document.head.append(script);
    })""",
    "listen": """(url) => new Promise((done) => {
      const socket = new WebSocket(`${url.replace("http", "ws")}/ws/live`);
      socket.onmessage = () => done("heard");
      socket.onclose = () => done("nothing");
    })""",
}


class _Blank(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = b"<!doctype html><title>elsewhere</title><p>Free GPUs"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """Another site: browsers take localhost and 127.0.0.1 for two."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Blank)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="elsewhere")
    thread.start()
    yield f"http://localhost:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    made = chromium.new_context(locale="en", ignore_https_errors=True)
    made.set_default_timeout(PATIENCE_MS)
    yield made
    made.close()


@pytest.fixture
def server(served: Callable[[Settings], RunningServer], tmp_path: Path) -> RunningServer:
    settle(tmp_path)
    return served(settings_in(tmp_path))


def _signed_in(context: BrowserContext, url: str) -> Page:
    page = context.new_page()
    page.goto(url)
    page.get_by_label("Name").fill("lin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in · 登录").click()
    expect(page.locator("#tools .link-live")).to_be_visible(timeout=PATIENCE_MS)
    return page


def test_it_acts_reads_and_hears_nothing(context: BrowserContext, server: RunningServer, elsewhere: str) -> None:
    mine = _signed_in(context, server.url)
    evil = context.new_page()
    evil.goto(elsewhere)
    assert {name: evil.evaluate(attempt, server.url) for name, attempt in TRIES.items()} == dict.fromkeys(
        TRIES, "nothing"
    )
    silences = mine.evaluate("fetch('/api/v1/silences').then((answer) => answer.json())")
    assert silences == []


def test_it_can_neither_sign_out_nor_sign_in_as_another_and_its_link_leads_to_the_page(
    context: BrowserContext, server: RunningServer, elsewhere: str
) -> None:
    mine = _signed_in(context, server.url)
    evil = context.new_page()
    for path in ("/sign-out", "/sign-in"):
        evil.goto(elsewhere)
        with evil.expect_navigation(url=f"{server.url}{path}"):
            evil.evaluate(
                """(url) => {
                  const form = Object.assign(document.createElement("form"), {method: "post", action: url});
                  form.innerHTML = '<input name="name" value="ada"><input name="password" value="x">';
                  document.body.append(form);
                  form.submit();
                }""",
                f"{server.url}{path}",
            )
        expect(evil.locator("body")).to_contain_text("may not use this server")
    assert mine.evaluate("fetch('/api/v1/me').then((answer) => answer.json())")["name"] == "lin"
    evil.goto(elsewhere)
    evil.evaluate("(url) => { location.href = url; }", f"{server.url}/#/rules")
    expect(evil.locator("#nav [aria-current=page]")).to_have_text("Rules", timeout=PATIENCE_MS)


def test_under_https_the_cookie_is_of_this_very_host(
    context: BrowserContext, served: Callable[[Settings], RunningServer], tmp_path: Path, certificates: Path
) -> None:
    settle(tmp_path)
    files = {"tls_cert": certificates / "server.pem", "tls_key": certificates / "server.key"}
    url = "https" + served(settings_in(tmp_path, **files)).url.removeprefix("http")
    _signed_in(context, url)
    (cookie,) = [one for one in context.cookies() if one.get("name", "").endswith("oomwatch_token")]
    assert cookie.get("name") == "__Host-oomwatch_token"
    assert (cookie.get("secure"), cookie.get("httpOnly"), cookie.get("sameSite")) == (True, True, "Lax")
