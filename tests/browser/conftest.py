"""A real Chromium for the tests of the page, and a stage to play on."""

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from tests.browser import scenes
from tests.browser.stage import Stage
from tests.server.running_server import RunningServer, serving, until

from oomwatch import wire
from oomwatch.settings import Settings

CHROMIUM = ("chromium", "apt-get install chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A reader leaves before the server closes: a page that outlives its server complains of what it is refused."""
    for item in items:
        if isinstance(item, pytest.Function) and "reader" in item.fixturenames:
            item.fixturenames.sort(key="reader".__eq__)  # what is set up last is torn down first


# Of a module and not of the session: as long as it is open, Playwright has an event loop running in this thread, and no
# test of anything else could run one.
@pytest.fixture(scope="module")
def chromium(need: Callable[[str, str], str]) -> Iterator[Browser]:
    """Where it is installed, the shell: the same engine without windows, which nobody sees here. A page costs half."""
    with _running(shutil.which("chromium-headless-shell") or need(*CHROMIUM)) as browser:
        yield browser


@pytest.fixture(scope="module")
def whole_chromium(need: Callable[[str, str], str]) -> Iterator[Browser]:
    """The browser that people have, windows and all."""
    with _running(need(*CHROMIUM)) as browser:
        yield browser


@contextlib.contextmanager
def _running(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Reader:
    """Someone at a browser: opens the page of a stage in a language, a theme and a window of some size."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self._heard: list[str] = []  # what the browser's console said in error
        self._forgiven: list[re.Pattern[str]] = []

    def open(
        self, stage: Stage, address: str = "#/", *, language: str = "en", dark: bool = False, width: int = 1440
    ) -> Page:
        page = self._fresh(language, dark=dark, width=width)
        before = stage.connections_total
        page.goto(stage.url + address)
        if stage.takes_browsers:  # what is sent before the page is connected, nobody hears
            until("the page to be connected", lambda: stage.connections_total > before)
        return page

    def visit(self, address: str, *, language: str = "en", dark: bool = False) -> Page:
        """A page of a server that is no stage."""
        page = self._fresh(language, dark=dark, width=1440)
        page.goto(address)
        return page

    def _fresh(self, language: str, *, dark: bool, width: int) -> Page:
        context = self.browser.new_context(
            locale=language, color_scheme="dark" if dark else "light", viewport={"width": width, "height": 900}
        )
        page = context.new_page()
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self._heard.append(str(error)))
        return page

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "WebSocket connection" not in message.text:  # a test may close it on purpose
            self._heard.append(message.text)

    def forgive(self, complaint: re.Pattern[str]) -> None:
        """What the browser itself says of an answer that the test asked for, whenever it says so.

        Its console is told of an answer on a way of its own: the page may long have shown the failure, and the test
        have ended, when the complaint comes.
        """
        self._forgiven.append(complaint)

    @property
    def complaints(self) -> list[str]:
        return [text for text in self._heard if not any(pattern.search(text) for pattern in self._forgiven)]

    def leave(self) -> None:
        for context in self.browser.contexts:
            context.close()


def fits(page: Page, *widths: int) -> None:
    """Nothing of the page is cut off in a window of any of these widths, the widest first: all has to give way."""
    for width in sorted(widths, reverse=True):
        page.set_viewport_size({"width": width, "height": 900})
        fitted = "width => innerWidth === width && document.documentElement.scrollWidth <= width"
        try:
            page.wait_for_function(fitted, arg=width)
        except PlaywrightTimeoutError:
            raise AssertionError(f"at {width} px the page is wider than its window") from None


@pytest.fixture
def reader(chromium: Browser) -> Iterator[Reader]:
    """Fails the test in the end if the page made an error, broke its security policy or asked for what is not there."""
    reader = Reader(chromium)
    yield reader
    reader.leave()
    assert reader.complaints == []


@pytest.fixture
def staged() -> Iterator[Callable[[wire.Snapshot], Stage]]:
    """`staged(snapshot)` is a running stage that closes with the test."""
    stages: list[Stage] = []

    def start(snapshot: wire.Snapshot) -> Stage:
        stage = Stage(snapshot)
        stage.open()
        stages.append(stage)
        return stage

    yield start
    for stage in stages:
        stage.close()


@pytest.fixture
def served() -> Iterator[Callable[[Settings], RunningServer]]:
    """`served(settings)` is a real server that stops with the test."""
    with contextlib.ExitStack() as open_ones:
        yield lambda settings: open_ones.enter_context(serving(settings))


@pytest.fixture
def healthy(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    return staged(scenes.healthy(time.time()))


@pytest.fixture
def troubled(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    return staged(scenes.troubled(time.time()))
