"""The pictures of the page in docs/assets: `python -m tests.browser.docs_pictures`.

Few and small, in the light theme and both languages: `NAME.webp`, and `NAME.zh.webp`, which the site takes by itself
on a Chinese page.
"""

import base64
import os
import threading
import time
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright
from tests.browser.look import FLAGS, STAGED
from tests.browser.stage import SCENES, Stage, play

FOLDER = Path(__file__).resolve().parent.parent.parent / "docs/assets"
WIDTH, HEIGHT, QUALITY = 1280, 800, 72
PATIENCE_MS = 60_000
SETTLE_MS = 2500  # charts are drawn twice a second at most


class Picture(NamedTuple):
    """What a picture shows, and what has to be there before it is taken."""

    address: str
    wait_for: str
    height: int = HEIGHT


PICTURES = {
    "page-fleet": Picture(STAGED["fleet"], ".fleet-map canvas"),
    "page-alert": Picture(STAGED["alert"], ".alert-body", 900),
    "page-run": Picture(STAGED["run"], "canvas, svg", 1000),
    "page-rules": Picture(STAGED["rules"], ".rule"),
}


def main() -> None:
    """Takes all of them."""
    stage = Stage(SCENES["mixed"](time.time()))
    stage.open()
    threading.Thread(target=play, args=(stage,), daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=FLAGS
        )
        for locale, suffix in (("en", ""), ("zh-CN", ".zh")):
            context = browser.new_context(locale=locale, color_scheme="light", reduced_motion="reduce")
            page = context.new_page()
            for name, picture in PICTURES.items():
                _take(page, stage.url, picture, FOLDER / f"{name}{suffix}.webp")
            stage.drop()
            context.close()
        browser.close()
    stage.close()


def _take(page: Page, server: str, picture: Picture, file: Path) -> None:
    page.set_viewport_size({"width": WIDTH, "height": picture.height})
    page.goto(server + picture.address)
    page.locator(picture.wait_for).first.wait_for(timeout=PATIENCE_MS)
    page.wait_for_timeout(SETTLE_MS)
    taken = page.context.new_cdp_session(page).send(
        "Page.captureScreenshot", {"format": "webp", "quality": QUALITY, "optimizeForSpeed": False}
    )
    file.write_bytes(base64.b64decode(taken["data"]))
    print(f"{file.relative_to(FOLDER.parent.parent)}: {file.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
