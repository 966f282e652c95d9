"""Every view of the page as pictures, to be looked at: `python -m tests.browser.look FOLDER`.

With `--server URL` they are of a running server, else of a scene that shows everything at once; `--scene empty` is one
in which there is nothing yet. `--trouble server` are those of a server that has gone, `--trouble history` of one whose
database does not answer. `--only WORD` keeps the views whose names hold it (several: `fleet,run`); `--widths 390,1440`,
`--themes dark` and `--languages zh` those of a kind.
"""

import argparse
import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, Page, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from tests.browser import scenes
from tests.browser.stage import SCENES, Stage, play

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
WIDTHS = (390, 1440, 2560)
THEMES = ("light", "dark")
LANGUAGES = ("en", "zh")
SETTLE_MS = 1500  # charts are drawn twice a second at most
ASKED_MS = 15_000  # for what the server works out
PENDING = "[aria-busy=true], .outdated"


def views(node: str, gpu: str, run: str, alert: str) -> dict[str, str]:
    """The address of every view, by what the picture is called."""
    return {
        "fleet": "#/fleet",
        "fleet-by-run": "#/fleet?by=run",
        "fleet-by-risk": "#/fleet?by=risk",
        "node": f"#/node/{quote(node, safe='')}",
        "gpu": f"#/gpu/{quote(node, safe='')}/{quote(gpu, safe='')}",
        "runs": "#/runs",
        "run": f"#/run/{quote(run, safe='')}",
        "alerts": "#/alerts",
        "alert": f"#/alerts?id={quote(alert, safe='')}",
        "alert-timeline": "#/alerts?show=timeline",
        "alert-table": "#/alerts?show=table",
        "silences": "#/silences",
        "channels": "#/channels",
        "incidents": "#/incidents",
        "rules": "#/rules",
        "rule-file": "#/rules/file",
        "doctor": "#/doctor",
        "doctor-template": "#/doctor?template=M2&gpu=A100-40GB&verl=0.9",
        "server": "#/server",
    }


def walls(run: str) -> dict[str, str]:
    """What a wall screen shows in turn."""
    query = "kiosk=1&every=9999"
    return {
        "wall-fleet": f"#/fleet?{query}",
        "wall-run": f"#/run/{quote(run, safe='')}?{query}",
        "wall-alerts": f"#/alerts?{query}",
    }


class Pressed(NamedTuple):
    """What is seen once something was pressed: where, and what."""

    address: str
    press: Callable[[Page], None]


def _click(selector: str) -> Callable[[Page], None]:
    return lambda page: page.locator(selector).first.click()


PRESSED = {
    "keys": Pressed("#/fleet", lambda page: page.keyboard.press("?")),
    "settings": Pressed("#/fleet", _click('[data-focus="settings"]')),
    "search": Pressed("#/fleet", lambda page: page.locator("#search input").fill("gpu-02")),
    "pointed": Pressed("#/fleet", lambda page: page.locator(".fleet-map canvas").hover(position={"x": 40, "y": 40})),
    "silence-dialog": Pressed("#/silences", _click('[data-focus="new-silence"]')),
    "acknowledge-dialog": Pressed("#/alerts", _click(".alert .actions button")),
    "rule": Pressed("#/rules", _click(".rule > summary")),
}
# What an address may name and nobody knows.
ABSENT = {
    "nowhere": "#/no-such-page",
    "node-absent": "#/node/gpu-99",
    "gpu-absent": "#/gpu/gpu-02/99",
    "run-absent": "#/run/no-such-run",
    "alert-absent": "#/alerts?id=no-such-alert",
    "alerts-filtered": "#/alerts?run=no-such-run",
}
STAGED = views("gpu-02", "3", scenes.RUN, "a1")
BESIDE = {"run-beside-another": f"#/run/{scenes.RUN}?with=llama8b_ppo"}


def pages(browser: Browser, widths: list[int], themes: list[str], languages: list[str]) -> Iterator[tuple[str, Page]]:
    """One page for each theme, language and width, and what it is called."""
    for theme, language, width in itertools.product(themes, languages, widths):
        context = browser.new_context(
            locale="zh-CN" if language == "zh" else "en",
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": width, "height": 1440 if width > 2000 else 900},
            reduced_motion="reduce",
        )
        yield f"{width}-{theme}-{language}", context.new_page()
        context.close()


def _of(server: str) -> dict[str, str]:
    """The views of a running server, each of the first thing that it has."""
    state = httpx.get(f"{server}api/v1/state").json()
    node = next((one for one in state.get("nodes", ()) if one["facts"].get("gpus")), None)
    gpu = node["facts"]["gpus"][0]["gpu"] if node else "0"
    run = next((one["run"] for one in state.get("runs", ())), "none")
    alert = next((one["id"] for one in state.get("alerts", ())), "none")
    return {**views(node["node"] if node else "none", gpu, run, alert), **walls(run)}


def _shoot(page: Page, server: str, addresses: dict[str, str], stem: str, folder: Path) -> None:
    for name, address in addresses.items():
        page.goto(server + address)
        with contextlib.suppress(PlaywrightTimeout):  # a server that has gone answers nothing
            page.wait_for_selector(PENDING, state="detached", timeout=ASKED_MS)
        page.wait_for_timeout(SETTLE_MS)
        if name in PRESSED:
            PRESSED[name].press(page)
            page.wait_for_timeout(SETTLE_MS)
        whole = name not in PRESSED and not name.startswith("wall")
        page.screenshot(path=folder / f"{name}-{stem}.png", full_page=whole)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        print(f"{name}-{stem}.png" + (f": {wide} px too wide" if wide > 0 else ""), flush=True)
        if name in PRESSED:
            page.reload()  # an open dialog would stay


def _lose(page: Page, stage: Stage, *, server: bool) -> None:
    """The page sees its server go, or finds one that has just come back."""
    stage.takes_browsers = not server
    stage.drop()
    if server:
        page.wait_for_selector(".link-reconnecting")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", help="http://HOST:PORT/")
    parser.add_argument("--scene", default="mixed", choices=sorted(SCENES))
    parser.add_argument("--trouble", choices=("server", "history"), help="what has failed")
    parser.add_argument("--only", default="", help="views whose names hold one of these words")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)))
    parser.add_argument("--themes", default=",".join(THEMES))
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    stage = None if given.server else Stage(SCENES[given.scene](time.time()))
    if stage is not None:
        stage.open()
        stage.has_history = given.trouble != "history"
        threading.Thread(target=play, args=(stage,), daemon=True).start()
    server = stage.url if stage is not None else given.server.rstrip("/") + "/"
    pressed = {name: address for name, (address, _) in PRESSED.items()}
    staged = {**STAGED, **BESIDE, **walls(scenes.RUN), **pressed, **ABSENT}
    addresses = staged if stage is not None else _of(server)
    words = given.only.split(",")
    chosen = {name: address for name, address in addresses.items() if any(word in name for word in words)}
    widths = [int(width) for width in given.widths.split(",")]
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for stem, page in pages(browser, widths, given.themes.split(","), given.languages.split(",")):
            if stage is not None and given.trouble == "server":
                page.goto(server)
                page.wait_for_selector(".link-live")
                _lose(page, stage, server=True)
            _shoot(page, server, chosen, stem, given.folder)
            if stage is not None:
                _lose(page, stage, server=False)
        browser.close()
    if stage is not None:
        stage.close()


if __name__ == "__main__":
    main()
