"""One page in a real Chromium, and what it can be asked for."""

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from playwright.sync_api import Browser, CDPSession, Page, WebSocket

T = TypeVar("T")
PATIENCE_SECONDS = 120.0
SPY = Path(__file__).with_name("spy.js").read_text(encoding="utf-8")


class Spread(NamedTuple):
    """Milliseconds."""

    median: float
    p95: float
    worst: float


def spread(values: list[float]) -> Spread:
    ordered = sorted(values)
    return Spread(statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))], ordered[-1])


class Reader:
    """A page of its own, with a cache of its own, that is measured while it is open."""

    def __init__(self, browser: Browser) -> None:
        self._context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en")
        self.page: Page = self._context.new_page()
        self.page.add_init_script(SPY)
        self._devtools: CDPSession = self._context.new_cdp_session(self.page)
        self._devtools.send("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
        self._devtools.send("Performance.enable")
        self.bytes_received = 0
        self.page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        def count(frame: str | bytes) -> None:
            self.bytes_received += len(frame.encode() if isinstance(frame, str) else frame)

        socket.on("framereceived", count)

    def close(self) -> None:
        self._context.close()

    def open(self, address: str, *, again: bool) -> None:
        """Goes to an address; `again`: once it was seen already, and its files are in the browser's cache."""
        if again:
            self.page.goto(address)
            self.page.wait_for_load_state("networkidle")
            self.page.goto("about:blank")
        self.page.goto(address)

    def mark_ms(self, name: str) -> float:
        """When something was painted, from the start of the navigation; the page notes it itself."""
        started = "name => performance.getEntriesByName(name)[0]?.startTime ?? null"
        return float(self._wait(lambda: self.page.evaluate(started, name), f"the mark {name!r}"))

    def received(self) -> int:
        return int(self.page.evaluate("() => spy.received"))

    def wait_received(self, count: int) -> None:
        self._wait(lambda: self.received() >= count or None, f"{count} frames")

    def _wait(self, ask: Callable[[], T | None], what: str) -> T:
        """The first answer that is not None. The page's policy forbids what Playwright's own waiting needs."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := ask()) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {PATIENCE_SECONDS:.0f} s for {what}")
            self.page.wait_for_timeout(20)
        return found

    def take_updates_ms(self) -> list[float]:
        """The script's time of each live update since the last call."""
        return [float(ms) for ms in self.page.evaluate("() => spy.updates.splice(0)")]

    def script_ms(self) -> float:
        """CPU that the page's scripts have taken. Programs beside it on the machine take little from it."""
        return 1000 * self._metric("ScriptDuration")

    def elements(self) -> int:
        """Elements and texts that the page holds, on screen or not."""
        return int(self._metric("Nodes"))

    def _metric(self, name: str) -> float:
        metrics = self._devtools.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in metrics if one["name"] == name)

    def take_plots(self) -> list[dict[str, float]]:
        """The redraws of charts since the last call: when, and how long each took."""
        return list(self.page.evaluate("() => spy.plots.splice(0)"))

    def heap_bytes(self) -> int:
        """What the page holds, once everything that can go is gone."""
        for _ in range(2):
            self._devtools.send("HeapProfiler.collectGarbage")
        return int(self._devtools.send("Runtime.getHeapUsage")["usedSize"])
