"""Every view of the page as pictures, to be looked at: `python -m tests.browser.look FOLDER`.

With `--server URL` they are of a running server, else of a scene that shows everything at once; `--scene empty` is one
in which there is nothing yet. `--only WORD` keeps the views whose names hold it; `--widths 390,1440`, `--themes dark`
and `--languages zh` those of a kind.
"""

import argparse
import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser import scenes
from tests.browser.stage import SCENES, Stage, play

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
WIDTHS = (390, 1440, 2560)
THEMES = ("light", "dark")
LANGUAGES = ("en", "zh")
SETTLE_MS = 1500  # charts are drawn twice a second at most


def views(node: str, gpu: str, run: str, alert: str) -> dict[str, str]:
    """The address of every view, by what the picture is called."""
    return {
        "fleet": "#/fleet",
        "fleet-by-run": "#/fleet?by=run",
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
    }


# What an address may name and nobody knows.
ABSENT = {
    "node-absent": "#/node/gpu-99",
    "gpu-absent": "#/gpu/gpu-02/99",
    "run-absent": "#/run/no-such-run",
    "alert-absent": "#/alerts?id=no-such-alert",
    "alerts-filtered": "#/alerts?run=no-such-run",
}
STAGED = views("gpu-02", "3", scenes.RUN, "a1")


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
    return views(node["node"] if node else "none", gpu, run, alert)


def _shoot(page: Page, server: str, addresses: dict[str, str], stem: str, folder: Path) -> None:
    for name, address in addresses.items():
        page.goto(server + address)
        page.wait_for_timeout(SETTLE_MS)
        page.screenshot(path=folder / f"{name}-{stem}.png", full_page=True)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        print(f"{name}-{stem}.png" + (f": {wide} px too wide" if wide > 0 else ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", help="http://HOST:PORT/")
    parser.add_argument("--scene", default="mixed", choices=sorted(SCENES))
    parser.add_argument("--only", default="", help="views whose names hold this")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)))
    parser.add_argument("--themes", default=",".join(THEMES))
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    stage = None if given.server else Stage(SCENES[given.scene](time.time()))
    if stage is not None:
        stage.open()
        threading.Thread(target=play, args=(stage,), daemon=True).start()
    server = stage.url if stage is not None else given.server.rstrip("/") + "/"
    addresses = {**STAGED, **ABSENT} if stage is not None else _of(server)
    chosen = {name: address for name, address in addresses.items() if given.only in name}
    widths = [int(width) for width in given.widths.split(",")]
    with sync_playwright() as playwright:
        path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for stem, page in pages(browser, widths, given.themes.split(","), given.languages.split(",")):
            _shoot(page, server, chosen, stem, given.folder)
        browser.close()
    if stage is not None:
        stage.close()


if __name__ == "__main__":
    main()
