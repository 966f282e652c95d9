"""What the page costs in a real Chromium, against a stand-in for the server that plays 1,024 and 10,240 GPUs.

    python -m bench.browser [--loads 15] [--updates 100] [--heap 10000] [--chromium /usr/bin/chromium]

Every load is a browser context of its own; the server is warm. A first visit finds nothing in the browser's cache,
another one finds the page's files there. An update is one tick with a reading of every GPU: the script's time to read
the frame and to draw it. The heap is what the page holds after a forced collection, while ticks come as fast as they
are taken, with an alert that fires and ends every twenty.
"""

import argparse
import itertools
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench._options import parser_of
from bench.browser import measures
from bench.browser.reader import Spread
from playwright.sync_api import Browser, sync_playwright
from tests.browser import scenes
from tests.browser.stage import Stage

from oomwatch import wire

VISITS = {"first visit": False, "another visit": True}
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
    # Playwright asks where each error was made, and plotly makes some while it loads: Chromium would then compile most
    # of plotly again, to learn its lines, half a second that no reader waits for. So it learns them the first time.
    "--js-flags=--no-enable-lazy-source-positions",
]


@contextmanager
def staged(snapshot: wire.Snapshot) -> Iterator[Stage]:
    stage = Stage(snapshot)
    stage.open()
    yield stage
    stage.close()


def row(what: str, found: str, aim: str = "") -> None:
    print(f"| {what} | {found} | {aim} |", flush=True)


def told(ms: Spread) -> str:
    return f"{ms.median:.1f} ms (p95 {ms.p95:.1f}, worst {ms.worst:.1f})"


def cost(of: measures.Cost) -> str:
    return f"{of.cpu:.1f} ms of CPU; by the clock {told(of.wall)}"


def fleet(browser: Browser, stage: Stage, options: argparse.Namespace, name: str, paint_aim: str, aim: str) -> None:
    """The rows that are told of both sizes."""
    measures.first_paint_ms(browser, stage, 1)  # the server is warm from here on
    for visit, again in VISITS.items():
        loads = measures.first_paint_ms(browser, stage, options.loads, again=again)
        anything, whole = sorted(loads, key=lambda load: load[1])[len(loads) // 2]
        row(f"{name}: first paint of the fleet, {visit}", f"{whole:.0f} ms (of anything: {anything:.0f} ms)", paint_aim)
    row(f"{name}: script of one update", cost(measures.updates_ms(browser, stage, options.updates)), aim)


def charts(browser: Browser, stage: Stage, options: argparse.Namespace) -> None:
    views = {"a GPU": "#/gpu/gpu-03/3", "a run": f"#/run/{scenes.RUN}"}
    for (name, address), (visit, again) in itertools.product(views.items(), VISITS.items()):
        ms = measures.charts_ms(browser, stage, address, options.loads, again=again)
        row(f"charts of {name} usable, {visit}", f"{ms:.0f} ms", "1,500 ms")
    rate, each = measures.redraws(browser, stage, views["a GPU"], 10)
    row("redraws of a GPU's chart, at four updates a second", f"{rate:.1f} a second, {told(each)}", "2 a second, 30 ms")


def heap(browser: Browser, stage: Stage, updates: int) -> None:
    found = measures.heap(browser, stage, updates)
    steps = ", ".join(
        f"{one.used_bytes / 2**20:.2f} MiB and {one.elements} elements after {one.updates:,}" for one in found
    )
    row("1,024 GPUs: heap", steps, "flat")


def measure(browser: Browser, options: argparse.Namespace) -> None:
    with staged(scenes.crowded(time.time(), 128)) as stage:
        fleet(browser, stage, options, "1,024 GPUs", "300 ms", "3 ms")
        row("1,024 GPUs: to a browser", f"{measures.bytes_a_second(browser, stage, 10) / 1000:.1f} kB/s", "30 kB/s")
        if options.heap > 0:
            heap(browser, stage, options.heap)
    with staged(scenes.crowded(time.time(), 1280)) as stage:
        fleet(browser, stage, options, "10,240 GPUs", "", "15 ms")
    with staged(scenes.troubled(time.time())) as stage:
        charts(browser, stage, options)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--loads", type=int, default=15, help="the first pays for the browser's own start")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--heap", type=int, default=10_000, help="updates; 0: not measured")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="path of the browser")
    options = parser.parse_args()
    if options.chromium is None:
        parser.error("no chromium here: apt-get install chromium, or say where it is with --chromium")
    print("| what | measured | aim |\n|---|---|---|")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=FLAGS)
        measure(browser, options)
        browser.close()


if __name__ == "__main__":
    main()
