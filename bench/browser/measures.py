"""What is measured of the page, one function for each figure."""

import itertools
import statistics
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from bench.browser.reader import Reader, Spread, spread
from playwright.sync_api import Browser
from tests.browser import scenes
from tests.browser.stage import Stage

from oomwatch import wire

WARM_UP = 10  # updates before the engine of the browser has compiled what it runs
PACE_SECONDS = 0.1  # between updates that are timed: each is drawn by itself
BATCH = 50  # updates at once, where only their number counts
ALERT_EVERY = 20  # updates
ALERTS_KEPT = 520  # the page keeps 400 to 500 that have ended: it has them from the start, so that only a leak grows


class Heap(NamedTuple):
    """What the page held after so many updates, and of those so many elements and texts."""

    updates: int
    used_bytes: int
    elements: int


def ticks(stage: Stage) -> Iterator[wire.Tick]:
    """Readings for ever: a minute and a half of a step, again and again, each as if it were of now."""
    views = stage.snapshot.nodes
    begin = time.time()
    made = [scenes.tick(views, begin + 3 * index, scenes.LEVELS) for index in range(32)]
    for tick in itertools.cycle(made):
        yield msgspec.structs.replace(tick, at=time.time())


def first_paint_ms(browser: Browser, stage: Stage, loads: int, *, again: bool = False) -> list[tuple[float, float]]:
    """Of each load: when anything is painted, and when the map is."""
    found = []
    for _ in range(loads):
        reader = Reader(browser)
        reader.open(stage.url, again=again)
        found.append((reader.mark_ms("first-contentful-paint"), reader.mark_ms("fleet painted")))
        reader.close()
    return found


def charts_ms(browser: Browser, stage: Stage, address: str, loads: int, *, again: bool = False) -> float:
    """Until the charts of a view are drawn, plotly's own script included: the median of some loads."""
    found = []
    for _ in range(loads):
        reader = Reader(browser)
        reader.open(stage.url + address, again=again)
        reader.page.locator(".plot .main-svg").first.wait_for()
        found.append(float(reader.page.evaluate("() => performance.now()")))
        reader.close()
    return statistics.median(found)


class Cost(NamedTuple):
    """The script's time of one piece of work, milliseconds: CPU on average, and by the clock."""

    cpu: float
    wall: Spread


def updates_ms(browser: Browser, stage: Stage, count: int) -> Cost:
    """What one live update of the fleet takes: reading the frame, and drawing."""
    reader = Reader(browser)
    reader.page.goto(stage.url)
    reader.mark_ms("fleet painted")
    before = 0.0
    for index, tick in enumerate(itertools.islice(ticks(stage), WARM_UP + count + 1)):
        if index == WARM_UP:
            reader.take_updates_ms()
            before = reader.script_ms()
        stage.send(tick)
        reader.page.wait_for_timeout(1000 * PACE_SECONDS)
    cpu = reader.script_ms() - before
    wall = reader.take_updates_ms()
    reader.close()
    return Cost(cpu / len(wall), spread(wall))


def redraws(browser: Browser, stage: Stage, address: str, seconds: int) -> tuple[float, Spread]:
    """Redraws of a view's chart a second, and the script's time of one, at four updates a second."""
    reader = Reader(browser)
    reader.page.goto(stage.url + address)
    reader.page.locator(".plot .main-svg").first.wait_for()
    reader.take_plots()
    for tick in itertools.islice(ticks(stage), seconds * 4):
        stage.send(tick)
        reader.page.wait_for_timeout(250)
    plots = reader.take_plots()
    reader.close()
    return len(plots) / seconds, spread([plot["ms"] for plot in plots])


def heap(browser: Browser, stage: Stage, updates: int) -> list[Heap]:
    """What the page holds after some, half and all of the updates, with an alert that fires and ends every so often."""
    reader = Reader(browser)
    reader.page.goto(stage.url)
    reader.mark_ms("fleet painted")
    begun, sent, found = reader.received(), 2 * ALERTS_KEPT, []
    for number in range(ALERTS_KEPT):
        stage.send(*_episode(-number))
    steps = [updates // 10, updates // 2, updates]
    source = ticks(stage)
    for number in range(1, updates + 1):
        if number % ALERT_EVERY == 0:
            stage.send(*_episode(number))
            sent += 2
        stage.send(next(source))
        sent += 1
        if number % BATCH == 0:
            reader.wait_received(begun + sent)
            reader.take_updates_ms()
        if number in steps:
            found.append(Heap(number, reader.heap_bytes(), reader.elements()))
    reader.close()
    return found


def _episode(number: int) -> tuple[wire.LiveMessage, wire.LiveMessage]:
    at = time.time()
    labels = {"node": f"gpu-{1 + number % 100:02d}", "gpu": str(number % 8)}
    fired = scenes.alert(at, key=f"h{number}", severity="warning", labels=labels, english="tight", chinese="tight")
    ended = msgspec.structs.replace(fired, state="resolved", ended_at=at)
    return wire.AlertChanged(alert=fired), wire.AlertChanged(alert=ended)


def bytes_a_second(browser: Browser, stage: Stage, seconds: int) -> float:
    """What a browser is sent once it has the picture, at one tick a second."""
    reader = Reader(browser)
    reader.page.goto(stage.url)
    reader.mark_ms("fleet painted")
    before = reader.bytes_received
    for tick in itertools.islice(ticks(stage), seconds):
        stage.send(tick)
        reader.page.wait_for_timeout(1000)
    found = (reader.bytes_received - before) / seconds
    reader.close()
    return found
