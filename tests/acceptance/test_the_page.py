"""What a person at the browser sees of a real server, without ever reloading."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.acceptance.programs import ROOT, Server, agent, ending, until
from tests.acceptance.training import Training
from tests.browser.conftest import whole_chromium as chromium  # noqa: F401 - a fixture
from tests.nvml.standin import GIB, ScriptedGpus
from tests.server.receiver import Answer, Receiver

pytestmark = [pytest.mark.acceptance, pytest.mark.browser]
ARTEFACTS = ROOT / "tests/artefacts"
NEVER_TOO_SLOW_MS = 60_000


def test_the_page_shows_alerts_as_they_come_and_survives_a_restart_of_the_server(
    tmp_path: Path,
    rules: Path,
    gpus: ScriptedGpus,
    chromium: Browser,  # noqa: F811
) -> None:
    ARTEFACTS.mkdir(exist_ok=True)
    training = Training(tmp_path)
    gpus.set(2, processes=((25520, 49 * GIB),))
    server = Server(tmp_path, rules)
    watcher = agent(
        tmp_path, server, "--log", str(training.driver_log), "--ray", "off", "--interval", "0.25", **gpus.environment
    )
    expect.set_options(timeout=NEVER_TOO_SLOW_MS)
    with ending(watcher, server):
        page = chromium.new_page(viewport={"width": 1440, "height": 900}, locale="en")
        page.goto(server.url)
        page.evaluate("window.neverReloaded = true")
        expect(page).to_have_title("All 4 GPUs have headroom · oomwatch")

        for number in range(1, training.steps + 1):
            training.do_step(number)
        gpus.set(2, used_bytes=77 * GIB)
        until("the alert", lambda: server.alerts(state="firing", alert="gpu_memory_high"))
        expect(page.get_by_role("main")).to_contain_text("GPU 2")
        expect(page).not_to_have_title("All 4 GPUs have headroom · oomwatch")
        page.screenshot(path=ARTEFACTS / "fleet.png")

        page.locator('a[href="#/alerts"]').first.click()
        expect(page.get_by_role("main")).to_contain_text("97 % of its memory is in use")
        expect(page.get_by_role("main")).to_contain_text("data.max_response_length")
        page.screenshot(path=ARTEFACTS / "alerts.png", full_page=True)

        server.program.kill()
        expect(page.locator("body")).to_contain_text("reconnecting")
        gpus.set(2, used_bytes=10 * GIB)
        server.start()
        expect(page.locator("body")).to_contain_text("live")
        until("the end of the alert", lambda: not server.alerts(state="firing", alert="gpu_memory_high"))
        page.locator('a[href="#/runs"]').first.click()
        expect(page.get_by_role("main")).to_contain_text("demo/qwen7b_grpo")
        page.screenshot(path=ARTEFACTS / "runs.png")
        assert page.evaluate("window.neverReloaded") is True
        page.close()


def test_an_alert_is_acknowledged_and_silenced_on_the_page_and_the_server_knows(
    tmp_path: Path,
    rules: Path,
    gpus: ScriptedGpus,
    chromium: Browser,  # noqa: F811
) -> None:
    gpus.set(2, used_bytes=77 * GIB)
    server = Server(tmp_path, rules)
    watcher = agent(tmp_path, server, "--ray", "off", "--interval", "0.25", **gpus.environment)
    expect.set_options(timeout=NEVER_TOO_SLOW_MS)
    with ending(watcher, server):
        (alert,) = until("the alert", lambda: server.alerts(state="firing", alert="gpu_memory_high"))
        page = chromium.new_page(viewport={"width": 1440, "height": 900}, locale="en")
        page.goto(f"{server.url}#/alerts?id={alert['id']}")
        card = page.locator(f"#alert-{alert['id']}")
        card.get_by_role("button", name="Acknowledge").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Your name").fill("wei")
        dialog.get_by_label("Note").fill("lowering the batch")
        dialog.get_by_role("button", name="Acknowledge").click()
        expect(card).to_contain_text("acknowledged by wei")
        (taken,) = server.alerts(state="firing", alert="gpu_memory_high")
        assert taken["acknowledged"]["note"] == "lowering the batch"

        card.get_by_role("button", name="Silence…").click()
        expect(dialog.get_by_role("region")).to_contain_text("Mutes 1 open alert now.")
        dialog.get_by_role("button", name="Silence", exact=True).click()
        expect(page.get_by_role("heading", name="1 muted")).to_be_visible()
        (muted,) = server.alerts(state="firing", alert="gpu_memory_high")
        assert [mute["kind"] for mute in muted["muted"]] == ["silence"]

        page.locator("#toasts").get_by_role("button", name="Undo").click()
        expect(page.get_by_role("heading", name="1 muted")).to_have_count(0)
        page.close()


def test_a_channel_that_refuses_is_told_on_the_page_and_delivers_once_it_is_mended(
    tmp_path: Path,
    rules: Path,
    receiver: Receiver,
    gpus: ScriptedGpus,
    chromium: Browser,  # noqa: F811
) -> None:
    receiver.always(Answer(status=410, body=b"this hook is gone"))
    gpus.set(2, used_bytes=77 * GIB)
    server = Server(tmp_path, rules)
    watcher = agent(tmp_path, server, "--ray", "off", "--interval", "0.25", **gpus.environment)
    expect.set_options(timeout=NEVER_TOO_SLOW_MS)
    with ending(watcher, server):
        page = chromium.new_page(viewport={"width": 1440, "height": 900}, locale="en")
        page.goto(f"{server.url}#/alerts")
        page.locator("#notices").get_by_role("link", name="The channel ops delivers nothing any more").click()
        channel = page.locator(".channel", has_text="ops")
        expect(channel).to_contain_text("410")
        receiver.always(Answer())
        channel.get_by_role("button", name="Retry now: the channel ops").click()
        expect(channel).to_contain_text("works")
        expect(page.locator("#notices")).not_to_contain_text("ops")

        page.get_by_role("link", name="Alerts", exact=True).last.click()
        card = page.locator(".alert").first
        card.get_by_text("Who was told?").click()
        expect(card.locator(".told li").last).to_contain_text("ops that it fires · delivered")
        page.close()
