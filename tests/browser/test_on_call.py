"""Handling alerts on the page: one card for 64 GPUs, acknowledging, silencing, and channels that do not deliver."""

import re
import time
from collections.abc import Callable
from datetime import timezone

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser import on_call, scenes
from tests.browser.conftest import Reader
from tests.browser.stage import Stage

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibition
from oomwatch.core.mute.stages import Windows
from oomwatch.core.mute.times import Maintenance, QuietHours
from oomwatch.incident.report import Entry

pytestmark = pytest.mark.browser
FORBIDDEN = re.compile("Failed to load resource")
ON_GPU_04 = (wire.Matcher(label="node", value="gpu-04"),)


@pytest.fixture
def stage(staged: Callable[[wire.Snapshot], Stage]) -> Stage:
    return staged(on_call.fleet(time.time()))


@pytest.fixture
def page(stage: Stage, reader: Reader) -> Page:
    page = reader.open(stage, "#/alerts")
    expect(page.locator(".alert").first).to_be_visible()
    return page


def _first(page: Page) -> Locator:
    return page.locator(".alert").first


def _posted(stage: Stage, start: str) -> list[object]:
    return [body for what, body in stage.desk.asked if what.startswith(start)]


def _acknowledge_all(page: Page, name: str = "wei", note: str = "lowering the batch") -> None:
    _first(page).get_by_role("button", name="Acknowledge all 64").click()
    dialog = page.get_by_role("dialog", name="Acknowledge")
    dialog.get_by_label("Your name").fill(name)
    dialog.get_by_label("Note").fill(note)
    dialog.get_by_role("button", name="Acknowledge all 64").click()
    expect(dialog).to_have_count(0)


def test_64_gpus_in_the_same_trouble_are_one_card_that_unfolds_with_the_worst_first(page: Page) -> None:
    expect(page.locator(".alert")).to_have_count(5)
    expect(_first(page).locator("> summary")).to_contain_text("64 GPUs on 8 nodes; the worst: GPU 1 of gpu-03: 99 %")
    expect(page.locator("#headline")).to_contain_text("64 GPUs on 8 nodes")
    expect(page.locator("#nav .badge")).to_have_text("1")
    expect(page.locator(".member")).to_have_count(0)  # what nobody has unfolded is not drawn
    page.get_by_text("All of them: 64 GPUs on 8 nodes").click()
    rows = page.locator(".member")
    expect(rows).to_have_count(64)
    expect(rows.first).to_contain_text("gpu-03 · GPU 1")
    expect(rows.first.locator("time")).not_to_be_empty()
    rows.nth(1).locator("summary").first.click()
    expect(rows.nth(1)).to_contain_text("What to do")


def test_the_address_of_one_of_many_alerts_unfolds_its_row(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, "#/alerts?id=n9")
    expect(page.locator("#alert-n9")).to_have_attribute("open", "")
    expect(page.locator("#alert-n9")).to_contain_text("gpu-02 · GPU 1")
    expect(page.locator("#alert-n9")).to_be_in_viewport()


def test_what_is_muted_is_counted_calm_and_says_why_until_when_and_by_what(page: Page) -> None:
    expect(page.get_by_role("heading", name="3 muted")).to_be_visible()
    muted = page.locator(".alert-muted")
    expect(muted).to_have_count(3)
    expect(muted.first).not_to_have_attribute("open", "")
    for card in muted.all():
        expect(card.locator("> summary")).to_contain_text("muted")
        card.locator("> summary").click()
    silenced = muted.filter(has_text="gpu-07")
    expect(silenced).to_contain_text(re.compile("Silenced, until .*, by wei: “new cards are being burnt in”"))
    expect(muted.filter(has_text="gpu-04")).to_contain_text(re.compile("Quiet hours night, until"))
    graver = muted.filter(has_text="gpu-08").locator(".handled").get_by_role("link", name="gpu_memory_high")
    expect(graver).to_have_attribute("href", "#/alerts?id=n56")
    silenced.get_by_role("link", name="show the silence").click()
    expect(page.locator(".silence.pointed-at")).to_contain_text('node=~"gpu-0[78]"')


def test_all_of_a_card_is_acknowledged_at_once_and_taken_back_by_the_toast(stage: Stage, page: Page) -> None:
    _acknowledge_all(page)
    expect(page.locator(".alert", has_text="64 GPUs")).to_contain_text("acknowledged by wei")
    expect(page.locator(".alert", has_text="64 GPUs")).to_contain_text("lowering the batch")
    expect(page.get_by_role("button", name="Take back 64 acknowledgements")).to_be_focused()
    match = ['alert="gpu_memory_high"', 'severity="critical"', f'run="{scenes.RUN}"']
    assert _posted(stage, "POST") == [{"match": match, "by": "wei", "note": "lowering the batch"}]
    expect(page.locator("#headline")).to_contain_text("2 alerts, all acknowledged; the worst: GPU 1 of gpu-03")
    expect(page.locator("#nav .badge")).to_have_count(0)
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator("#toasts")).to_contain_text("Undone.")
    expect(_first(page).get_by_role("button", name="Acknowledge all 64")).to_be_visible()
    (body,) = _posted(stage, "POST /api/v1/alerts/unacknowledge")
    assert isinstance(body, dict)
    assert len(body["ids"]) == 64


def test_a_name_is_asked_for_once_and_kept(page: Page) -> None:
    _first(page).get_by_role("button", name="Acknowledge all 64").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Your name")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("Give your name")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(_first(page).get_by_role("button", name="Acknowledge all 64")).to_be_focused()
    _acknowledge_all(page, name="ada")
    card = page.locator(".alert", has_text="64 GPUs")
    card.get_by_role("button", name="Take back 64 acknowledgements").click()
    _first(page).get_by_role("button", name="Acknowledge all 64").click()
    expect(page.get_by_label("Your name")).to_have_value("ada")
    expect(page.get_by_label("Note")).to_be_focused()


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (401, "Load the page again to sign in"),
        (403, "--external-url"),
        (409, "Look again, then decide"),
        (503, "Nothing was changed"),
    ],
)
def test_what_the_server_refuses_is_said_where_it_was_asked_and_nothing_is_shown_as_done(
    status: int, remedy: str, stage: Stage, page: Page, reader: Reader
) -> None:
    stage.desk.refuse(status, "the server's own sentence")
    _first(page).get_by_role("button", name="Acknowledge all 64").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("wei")
    dialog.get_by_role("button", name="Acknowledge all 64").click()
    expect(dialog.get_by_role("alert")).to_contain_text(remedy)
    expect(dialog.get_by_role("alert")).to_contain_text("the server's own sentence")
    expect(page.locator(".alert", has_text="64 GPUs").locator("> summary")).not_to_contain_text("acknowledged")
    reader.forgive(FORBIDDEN)
    dialog.get_by_role("button", name="Acknowledge all 64").click()  # it is not too late
    expect(page.locator(".alert", has_text="64 GPUs").locator("> summary")).to_contain_text("acknowledged by wei")


def test_of_many_those_that_were_refused_are_counted_and_only_they_are_tried_again(stage: Stage, page: Page) -> None:
    (one,) = [alert for alert in stage.snapshot.alerts if alert.id == "n5"]
    word = wire.Acknowledgement(by="ada", at=time.time())
    stage.send(wire.AlertChanged(alert=on_call.replace(one, acknowledged=word)))
    expect(_first(page).locator("> summary")).to_contain_text("1 of 64 acknowledged")
    stage.desk.gone = {"n6"}
    _first(page).get_by_role("button", name="Acknowledge all 63").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("wei")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("alert")).to_contain_text("62 are acknowledged, 1 is not")
    stage.desk.gone = set()
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    first, second = _posted(stage, "POST /api/v1/alerts")
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert (len(first["ids"]), second["by"]) == (63, "wei")


def test_a_silence_begins_with_what_the_alerts_have_in_common_and_shows_what_it_hides(stage: Stage, page: Page) -> None:
    _first(page).get_by_role("button", name="Silence…").click()
    dialog = page.get_by_role("dialog", name="Silence alerts")
    values = [box.input_value() for box in dialog.locator(".matcher input[type=text]").all()]
    assert values == ["gpu_memory_high", "critical", scenes.RUN]
    preview = dialog.get_by_role("region", name="What this mutes")
    expect(preview).to_contain_text(
        "Mutes 64 open alerts now. In the last 24 hours it would have muted 64 of 14 alerts."
    )
    expect(preview).to_contain_text("critical alerts that fire now: 64")
    expect(preview).to_contain_text("and 60 more")
    before = dialog.get_by_text("For how long").bounding_box()
    dialog.get_by_role("button", name="+ Add a condition").click()
    page.keyboard.type("gpu-04")
    expect(preview).to_contain_text("Mutes 8 open alerts now.")
    dialog.get_by_role("combobox", name="Comparison of condition 4").select_option("!=")
    expect(preview).to_contain_text("Mutes 56 open alerts now.")
    dialog.get_by_label("Use condition 4").uncheck()
    expect(preview).to_contain_text("Mutes 64 open alerts now.")
    after = dialog.get_by_text("For how long").bounding_box()
    assert before is not None
    assert after is not None
    assert after["y"] - before["y"] < 40  # the row that was added, and nothing for what the preview says
    assert _posted(stage, "POST /api/v1/silences/preview")[-1] == {
        "match": ['alert="gpu_memory_high"', f'run="{scenes.RUN}"']
    }


def test_a_silence_is_made_for_a_time_and_undone(stage: Stage, page: Page) -> None:
    page.get_by_text("All of them: 64 GPUs on 8 nodes").click()
    member = page.locator(".member").first
    member.locator("summary").first.click()
    member.get_by_role("button", name="Silence…").click()
    dialog = page.get_by_role("dialog", name="Silence alerts")
    dialog.get_by_label("8 h").check()
    dialog.get_by_label("Your name").fill("wei")
    dialog.get_by_role("button", name="Silence", exact=True).click()
    expect(page.locator("#toasts")).to_contain_text("Silenced until")
    expect(page.get_by_role("heading", name="4 muted")).to_be_visible()
    expect(_first(page).locator("> summary")).to_contain_text("63 GPUs")
    (made,) = (body for what, body in stage.desk.asked if what == "POST /api/v1/silences")
    assert made["created_by"] == "wei"
    assert made["match"] == ['alert="gpu_memory_high"', 'node="gpu-03"', 'gpu="1"', f'run="{scenes.RUN}"']
    assert made["ends_at"] == pytest.approx(time.time() + 8 * 3600, abs=120)
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="3 muted")).to_be_visible()


def test_a_silence_with_a_mistake_or_without_a_condition_is_not_made(stage: Stage, page: Page, reader: Reader) -> None:
    page.get_by_role("link", name="Silences").click()
    page.get_by_role("button", name="New silence…").click()
    dialog = page.get_by_role("dialog", name="Silence alerts")
    dialog.get_by_role("combobox", name="Comparison of condition 1").select_option("=~")
    dialog.get_by_label("Value of condition 1").fill("gpu-(")
    expect(dialog.get_by_role("region").get_by_role("alert").last).to_contain_text("regular expression")
    reader.forgive(FORBIDDEN)
    dialog.get_by_label("Value of condition 1").fill("gpu-.*")
    expect(dialog.get_by_role("region")).to_contain_text("Mutes 68 open alerts now.")
    dialog.get_by_label("Use condition 1").uncheck()
    dialog.get_by_role("button", name="Silence", exact=True).click()
    expect(dialog.locator("form > .problem")).to_contain_text("a silence needs one at least")
    assert _posted(stage, "POST /api/v1/silences") == _posted(stage, "POST /api/v1/silences/preview")


def test_a_silence_is_ended_early_and_what_it_hid_is_open_again(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, "#/silences")
    expect(page.locator(".silence")).to_have_count(2)
    expect(page.locator("section", has_text="Yet to come").locator(".silence")).to_contain_text('run="llama8b_ppo"')
    row = page.locator("#silence-s-4f1c2a9e07b3")
    expect(row).to_contain_text("Mutes 1 open alert")
    row.get_by_role("button", name="End now: the silence").click()
    expect(row).to_have_count(0)
    page.locator("#toasts").get_by_role("button", name="Undo").click()
    expect(page.locator(".silence", has_text="gpu-0[78]")).to_contain_text("by wei")


def test_a_channel_that_failed_is_told_on_every_view_and_tried_again_by_hand(
    stage: Stage, page: Page, reader: Reader
) -> None:
    banner = page.locator("#notices").get_by_role("link", name="The channel boss delivers nothing any more")
    expect(page.locator("#notices")).to_contain_text("Slack answered 404: no_service")
    banner.click()
    row = page.locator(".channel", has_text="boss")
    expect(row).to_contain_text("Mend its address or key in alerts.yaml")
    expect(page.locator(".channel", has_text="team").get_by_role("button")).to_have_count(0)
    expect(page.locator(".channel", has_text="pager")).to_contain_text("the receiver answered 503")
    stage.desk.refuse(503, "the database is locked")
    row.get_by_role("button", name="Retry now: the channel boss").click()
    expect(row.get_by_role("alert")).to_contain_text("the database is locked")
    row.get_by_role("button", name="Retry now: the channel boss").click()
    expect(row).to_contain_text("works")
    expect(banner).to_have_count(0)
    reader.forgive(FORBIDDEN)


def test_an_alert_says_which_channel_was_told_of_it_when_and_what_went_wrong(stage: Stage, page: Page) -> None:
    at = time.time()
    stage.desk.deliveries = (
        wire.Delivery(
            id="d1", channel="team", kind="firing", state="delivered", made_at=at - 280, done_at=at - 279, attempts=1
        ),
        wire.Delivery(
            id="d2", channel="pager", kind="repeat", state="waiting", made_at=at - 60, attempts=3, error="answered 503"
        ),
        wire.Delivery(
            id="d3",
            channel="boss",
            kind="escalation",
            state="failed",
            made_at=at,
            done_at=at,
            attempts=1,
            error="no_service",
        ),
    )
    told = _first(page).locator("> .alert-body .told")
    told.get_by_text("Who was told?").click()
    items = told.locator("li")
    expect(items).to_have_count(3)
    expect(items.nth(0)).to_contain_text(re.compile("team that it fires · delivered (\\w+ \\d+, )?\\d\\d:\\d\\d"))
    expect(items.nth(1)).to_contain_text("after 3 attempts")
    expect(items.nth(1)).to_contain_text("answered 503")
    expect(items.nth(2)).to_contain_text("given up")


def test_of_an_alert_that_waits_nobody_was_told_because_it_has_not_fired(stage: Stage, page: Page) -> None:
    (worst,) = [one for one in stage.snapshot.alerts if one.id == "n17"]
    stage.send(wire.AlertChanged(alert=on_call.replace(worst, id="w1", alert="w", state="pending", fired_at=None)))
    card = page.locator("#alert-w1")
    card.get_by_text("Who was told?").click()
    expect(card.locator(".told-list")).to_contain_text("Nobody yet: it has not fired")


def test_a_channel_that_failed_is_told_in_chinese_but_for_the_receivers_own_words(stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, "#/alerts", language="zh-CN")
    expect(page.locator("#notices")).to_contain_text("最近一次错误（原文）：Slack answered 404: no_service")


def test_a_button_keeps_the_focus_while_numbers_change(stage: Stage, page: Page) -> None:
    button = page.locator(".alert", has_text="64 GPUs").get_by_role("button", name="Silence…")
    button.focus()
    (worst,) = [one for one in stage.snapshot.alerts if one.id == "n17"]
    stage.send(wire.AlertChanged(alert=on_call.replace(worst, value=0.991)))
    expect(_first(page).locator("> .alert-body .strip")).to_contain_text("99.1 %")
    expect(button).to_be_focused()


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_nothing_is_cut_off_on_a_telephone(language: str, stage: Stage, reader: Reader) -> None:
    page = reader.open(stage, width=390, language=language)
    for address, shown in {"#/alerts": ".alert", "#/silences": ".silence", "#/channels": ".channel"}.items():
        page.goto(stage.url + address)
        expect(page.locator(f"main {shown}").first).to_be_visible()
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), address


def test_1024_gpus_in_trouble_are_one_card_and_cost_little(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    at = time.time()
    many = tuple(
        scenes.alert(
            at,
            key=f"n{number}",
            severity="critical",
            labels={"node": f"gpu-{1 + number // 8:02d}", "gpu": str(number % 8), "run": "r"},
            english="full",
            chinese="已满",
        )
        for number in range(1024)
    )
    page = reader.open(staged(on_call.replace(scenes.healthy(at), alerts=many)), "#/alerts")
    expect(page.locator(".alert")).to_have_count(1)
    expect(_first(page)).to_contain_text("1,024 GPUs on 128 nodes")
    assert page.locator("main *").count() < 300


# ---------------------------------------------------------------- all about one alert


def test_an_alert_says_what_waiting_costs_in_time_steps_and_lost_work(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    snapshot = scenes.troubled(time.time())
    runs = tuple(on_call.replace(one, config={**one.config, "trainer.save_freq": 20}) for one in snapshot.runs)
    alerts = tuple(
        on_call.replace(one, facts={"eta_seconds": 846.0, "eta_steps": 9, "usable_bytes": 79 * 2**30})
        if one.id == "a1"
        else one
        for one in snapshot.alerts
    )
    page = reader.open(staged(on_call.replace(snapshot, runs=runs, alerts=alerts)), "#/alerts?id=a1")
    cost = page.locator("#alert-a1 .cost-of-waiting")
    expect(cost).to_contain_text(re.compile(r"The GPU's memory is full in about 14 min \(9 steps\), at \d\d:\d\d"))
    expect(cost).to_contain_text(re.compile(r"Lost with it: \d+ min \(9 steps\) of work since the last checkpoint"))
    expect(cost).to_contain_text("one every 20 steps")


def test_an_alert_about_a_level_without_a_forecast_says_that_nobody_knows_how_long(
    staged: Callable[[wire.Snapshot], Stage], reader: Reader
) -> None:
    snapshot = scenes.troubled(time.time())
    alerts = tuple(on_call.replace(one, facts={"usable_bytes": 79 * 2**30}) for one in snapshot.alerts)
    page = reader.open(staged(on_call.replace(snapshot, alerts=alerts)), "#/alerts?id=a1")
    expect(page.locator("#alert-a1 .cost-of-waiting")).to_contain_text("is not known")


def test_an_alert_tells_what_happened_before_on_its_run_and_leads_to_it(stage: Stage, reader: Reader) -> None:
    at = time.time()
    (one,) = [alert for alert in stage.snapshot.alerts if alert.id == "n5"]
    earlier = [
        on_call.replace(
            one, id=f"e{number}", state="resolved", started_at=at - 7200 * number, fired_at=at - 7200 * number,
            ended_at=at - 7200 * number + 600, outcome=wire.Outcome(verdict="avoided", at=at),
            labels={**one.labels, "gpu": str(4 + number % 2)},
        )
        for number in range(1, 8)
    ]  # fmt: skip
    stage.ended = tuple(earlier)
    page = reader.open(stage, "#/alerts?id=n5")
    before = page.locator("#alert-n5 .before")
    expect(before).to_contain_text("This rule has fired here 7 times before. 4 of them on this GPU.")
    expect(before.locator("li")).to_have_count(5)
    expect(before.locator("li").first).to_contain_text(re.compile("gpu-01 · GPU 5: 2 h ago, for 10 min · avoided"))
    before.locator("li a").first.click()
    expect(page.locator("#alert-e1")).to_have_attribute("open", "")
    page.go_back()
    page.locator("#alert-n5 .before").get_by_role("link", name="Show on the timeline").click()
    expect(page.locator(".alertline")).to_be_visible()
    expect(page.get_by_role("combobox", name="Every rule")).to_have_value("gpu_memory_high")


def test_a_link_to_an_alert_is_copied_and_one_to_an_unknown_alert_says_so(
    stage: Stage, reader: Reader, page: Page
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    share = _first(page).locator("> .alert-body .share")
    share.get_by_role("button").click()
    expect(share.get_by_role("button")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == f"{stage.url}#/alerts?id=n17"
    other = reader.open(stage, "#/alerts?id=nobody")
    expect(other.get_by_role("alert").filter(has_text="not known any more")).to_be_visible()
    reader.forgive(re.compile("404"))


def test_a_report_is_opened_and_kept_from_its_alert_and_from_the_list_of_incidents(stage: Stage, page: Page) -> None:
    (one,) = [alert for alert in stage.snapshot.alerts if alert.id == "n17"]
    incident = "20261130T101500Z-qwen7b_grpo"
    stage.past.incidents = (
        Entry(
            id=incident, at=time.time() - 60, node="gpu-03", run=scenes.RUN, simulated=False,
            summary={"en": "Out of memory on GPU 1 of gpu-03", "zh": "gpu-03 的 GPU 1 显存耗尽"}, alerts=("n17", "n18"),
        ),
    )  # fmt: skip
    stage.send(wire.AlertChanged(alert=on_call.replace(one, facts={"incident": incident, "event": "device_oom"})))
    strip = _first(page).locator("> .alert-body .strip")
    expect(strip.get_by_role("link", name="Download")).to_have_attribute("download", f"{incident}.html")
    page.get_by_role("link", name="Incidents").click()
    item = page.locator(".incidents li")
    expect(item).to_contain_text("Out of memory on GPU 1 of gpu-03")
    expect(item.get_by_role("link", name="Download")).to_have_attribute("download", f"{incident}.html")
    expect(page.locator("#nav [aria-current]")).to_contain_text("Alerts")
    item.get_by_role("link", name="the first of its 2 alerts").click()
    expect(page.locator("#alert-n17")).to_have_attribute("open", "")


def test_all_that_is_shown_is_acknowledged_and_taken_back_at_once(stage: Stage, page: Page) -> None:
    page.locator(".bulk").get_by_role("button", name="Acknowledge all 64").click()
    dialog = page.get_by_role("dialog", name="Acknowledge")
    expect(dialog).to_contain_text("All 64 open alerts that are shown and that nobody has acknowledged")
    dialog.get_by_label("Your name").fill("wei")
    page.keyboard.press("Enter")
    page.locator(".bulk").get_by_role("button", name="Take back 65 acknowledgements").click()
    expect(page.locator(".bulk").get_by_role("button", name="Acknowledge all 65")).to_be_visible()
    assert len(_posted(stage, "POST /api/v1/alerts/unacknowledge")) == 1


def test_quiet_hours_and_maintenance_are_shown_with_what_they_hide_and_when_they_come(
    stage: Stage, reader: Reader
) -> None:
    at = time.time()
    night = QuietHours("night", 0, 1440, frozenset(range(7)), timezone.utc, ON_GPU_04)
    weekend = QuietHours("weekend", 480, 1200, frozenset((5, 6)), timezone.utc, ON_GPU_04)
    move = Maintenance("rack 7 moves", at + 86400, at + 90000, ON_GPU_04)
    stage.desk.windows = Windows((move,), (night, weekend), (Inhibition(ON_GPU_04, ON_GPU_04, ("node",)),))
    page = reader.open(stage, "#/silences")
    windows = page.locator(".windows")
    expect(windows.locator(".window").filter(has_text="night")).to_contain_text("00:00 to 24:00, every day (UTC)")
    expect(windows.locator(".in-force")).to_contain_text("Mutes 1 open alert")
    expect(windows.locator(".window").filter(has_text="weekend")).to_contain_text("08:00 to 20:00, Sat, Sun (UTC)")
    expect(windows.locator(".window").filter(has_text="rack 7 moves")).to_contain_text("to come: from")
    expect(windows.locator(".window").filter(has_text="fires, nobody is sent")).to_contain_text("of the same node.")
