"""The windows of alerts.yaml over the API: what mutes now, what is to come, and what each hides."""

import time
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest
from tests.mute.samples import matchers
from tests.server.house import hello, sample
from tests.server.running_server import RULES, AgentClient, serving, settings_in, until

from oomwatch import wire
from oomwatch.core.mute.inhibition import Inhibition
from oomwatch.core.mute.stages import Windows
from oomwatch.core.mute.times import Maintenance, QuietHours
from oomwatch.web.windowrows import rows_of

MONDAY_NOON = datetime(2026, 11, 30, 12, tzinfo=timezone.utc).timestamp()
HOUR = 3600.0
ON = matchers('node="n"')


def hours(start: int, end: int, *days: int) -> QuietHours:
    return QuietHours("night", start * 60, end * 60, frozenset(days or range(7)), timezone.utc, ON)


def test_quiet_hours_say_from_when_to_when_in_which_zone_and_whether_they_are_on() -> None:
    (row,) = rows_of(Windows(quiet_hours=(hours(22, 6),)), (), MONDAY_NOON).quiet_hours
    assert (row.name, row.from_, row.to, row.zone, row.match) == ("night", "22:00", "06:00", "UTC", ('node="n"',))
    assert (row.active, row.until, row.next_at) == (False, None, MONDAY_NOON + 10 * HOUR)
    (row,) = rows_of(Windows(quiet_hours=(hours(22, 6),)), (), MONDAY_NOON + 11 * HOUR).quiet_hours
    assert (row.active, row.until, row.next_at) == (True, MONDAY_NOON + 18 * HOUR, MONDAY_NOON + 34 * HOUR)


def test_quiet_hours_of_some_days_name_them_in_order_and_know_the_next() -> None:
    (row,) = rows_of(Windows(quiet_hours=(hours(8, 24, 5, 2),)), (), MONDAY_NOON).quiet_hours
    assert (row.days, row.to) == (("wed", "sat"), "24:00")
    assert row.next_at == MONDAY_NOON + 44 * HOUR


@pytest.mark.parametrize(("offset", "state"), [(-1, "upcoming"), (0, "active"), (1, "active"), (2, "ended")])
def test_maintenance_is_to_come_in_force_or_over(offset: float, state: str) -> None:
    window = Maintenance("rack 7", MONDAY_NOON, MONDAY_NOON + 2 * HOUR, ON)
    (row,) = rows_of(Windows(maintenance=(window,)), (), MONDAY_NOON + offset * HOUR).maintenance
    assert (row.state, row.starts_at, row.ends_at) == (state, MONDAY_NOON, MONDAY_NOON + 2 * HOUR)


def test_each_says_how_many_open_alerts_it_hides() -> None:
    mute = wire.Mute(kind="quiet_hours", by="night")
    alert = wire.Alert(
        id="1", alert="a", severity="warning", state="firing", labels={}, started_at=0, texts={}, muted=(mute,)
    )
    other = wire.Mute(kind="maintenance", by="night")
    windows = Windows(quiet_hours=(hours(8, 20),), maintenance=(Maintenance("night", 0, 1, ON),))
    rows = rows_of(windows, (alert, alert, msgspec.structs.replace(alert, muted=(other,))), MONDAY_NOON)
    assert (rows.quiet_hours[0].hides, rows.maintenance[0].hides) == (2, 1)


def test_alerts_that_cover_others_are_told_as_they_are_written() -> None:
    rule = Inhibition(matchers("severity=critical"), matchers("severity!=critical"), ("node", "gpu"))
    (row,) = rows_of(Windows(inhibitions=(rule,)), (), 0).inhibit
    assert (row.source, row.target, row.equal) == (('severity="critical"',), ('severity!="critical"',), ("node", "gpu"))


def test_a_server_tells_the_windows_of_its_rule_file_and_what_they_hide_now(tmp_path: Path) -> None:
    section = (
        "notify:\n"
        "  quiet_hours:\n"
        '    - {name: always, from: "00:00", to: "24:00", time_zone: UTC, match: [node=gpu-07]}\n'
        "  maintenance:\n"
        "    - {name: moving, from: 2020-01-01T00:00:00Z, to: 2020-01-02T00:00:00Z, match: [node=gpu-08]}\n"
    )
    (tmp_path / "alerts.yaml").write_text(RULES + section, encoding="utf-8")
    with serving(settings_in(tmp_path)) as server, AgentClient(server) as agent:
        agent.greet(hello("gpu-07", sent_at=time.time()))
        agent.say(sample(1, 79, time.time()))
        until("the alert", lambda: server.get("/api/v1/alerts?state=firing").json())
        told = server.get("/api/v1/muting").json()
        assert [(one["name"], one["active"], one["hides"]) for one in told["quiet_hours"]] == [("always", True, 1)]
        assert [(one["name"], one["state"], one["hides"]) for one in told["maintenance"]] == [("moving", "ended", 0)]
