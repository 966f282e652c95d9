"""When something runs out of memory, what was known of the last fifteen minutes is written down, once, to be found."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.server.house import GIB, START, House, hello, sample
from tests.server.notify_samples import notice
from tests.server.running_server import RunningServer, serving, settings_in

from oomwatch import wire
from oomwatch.__main__ import main
from oomwatch.incident.cabinet import Cabinet, Reports
from oomwatch.incident.clerk import Clerk
from oomwatch.incident.desk import Desk
from oomwatch.incident.folder import Folder
from oomwatch.incident.gather import CARDS_MAX
from oomwatch.incident.page import page
from oomwatch.incident.report import AFTER_SECONDS, Draft, Incident, incident_id
from oomwatch.notify.channels import webhook
from oomwatch.notify.words import Frame
from oomwatch.rulefile import parse_rules
from oomwatch.service.journal import Entry as Kept
from oomwatch.store.store import Batch, Entry, Store, StoreError

RULES = parse_rules(
    """
rules:
  - alert: full
    when: {kind: threshold, metric: gpu_used_ratio, above: 85%}
    summary: "GPU {gpu} of {node} is {value} full"
  - alert: out_of_memory
    severity: critical
    when: {kind: event, of: [device_oom, host_oom], within: 10m}
    summary: {en: "Out of memory on {node}[: {process}]", zh: "{node} 内存耗尽"}
    advice:
      - {en: "Lower gpu_memory_utilization.", zh: "调低 gpu_memory_utilization。"}
"""
).rules
EVIL = "<script>alert(1)</script>"
OOM = wire.DeviceOom(error="torch.OutOfMemoryError", gpu="0", tried_bytes=2 * GIB)


def fatal(
    number: int = 0, *, at: float = START, run: str | None = "r", event: str = "device_oom", node: str = "n"
) -> wire.Transition:
    labels = {"node": node, "gpu": str(number)} | ({"run": run} if run else {})
    return wire.Transition(
        id=f"{node}{number}{run}{at}", alert="out_of_memory", severity="critical", state="firing", at=at, started_at=at,
        labels=labels, facts={"event": event},
    )  # fmt: skip


# ---------------------------------------------------------------- which alerts, and when


def test_what_the_ranks_of_a_run_say_within_two_minutes_is_one_incident() -> None:
    desk = Desk()
    for rank in range(64):
        desk.note(fatal(rank, at=START + rank, node=f"n{rank % 8}"), START + rank)
    (draft,) = desk.due(START + AFTER_SECONDS + 64)
    assert (draft.at, draft.run, len(draft.alerts), len(draft.gpus)) == (START, "r", 64, 64)


def test_a_report_waits_for_late_samples_and_is_due_once() -> None:
    desk = Desk()
    desk.note(fatal(), START)
    assert desk.due(START + AFTER_SECONDS - 1) == []
    assert len(desk.due(START + AFTER_SECONDS)) == 1
    assert desk.due(START + AFTER_SECONDS + 1) == []


def test_an_alert_that_joins_late_has_the_report_written_again() -> None:
    desk = Desk()
    desk.note(fatal(0), START)
    (first,) = desk.due(START + AFTER_SECONDS)
    desk.note(fatal(1, at=START + 60), START + 60)
    (second,) = desk.due(START + 60 + AFTER_SECONDS)
    assert (second.id, second.at, len(second.alerts)) == (first.id, START, 2)


@pytest.mark.parametrize(
    "second",
    [fatal(1, at=START + 121), fatal(1, run="other"), fatal(1, run=None, node="m")],
    ids=["later", "another run", "no run"],
)
def test_another_moment_or_place_is_another_incident(second: wire.Transition) -> None:
    desk = Desk()
    desk.note(fatal(), START)
    desk.note(second, second.at)
    assert len({draft.id for draft in desk.due(START + 1000)}) == 2


def test_what_fails_after_a_run_was_started_again_is_another_incident() -> None:
    desk = Desk()
    desk.note(fatal(0), START)
    desk.note(msgspec.structs.replace(fatal(0), state="resolved", reason="run restarted", at=START + 40), START + 40)
    desk.note(fatal(1, at=START + 60), START + 60)
    assert [draft.at for draft in desk.due(START + 1000)] == [START, START + 60]


@pytest.mark.parametrize(
    "other",
    [
        fatal(event="gpu_lost"),
        msgspec.structs.replace(fatal(), state="resolved"),
        msgspec.structs.replace(fatal(), change="outcome"),
        msgspec.structs.replace(fatal(), facts={}),
    ],
    ids=["another event", "its end", "an outcome", "no event"],
)
def test_nothing_else_begins_an_incident(other: wire.Transition) -> None:
    desk = Desk()
    desk.note(other, START)
    assert desk.due(START + 1000) == []
    assert desk.with_incident(other) is other


def test_every_transition_of_the_alert_names_the_incident() -> None:
    desk = Desk()
    firing = fatal()
    desk.note(firing, START)
    ended = msgspec.structs.replace(firing, state="resolved", at=START + 600)
    assert desk.with_incident(ended).facts == {"event": "device_oom", "incident": incident_id(START, "run r")}


def test_a_report_that_a_killed_server_owed_is_written_by_the_next() -> None:
    known: dict[str, wire.Fact] = {"event": "device_oom", "incident": incident_id(START, "run r")}
    alert = wire.Alert(
        id="a", alert="out_of_memory", severity="critical", state="firing", started_at=START, fired_at=START, texts={},
        labels={"node": "n", "gpu": "0", "run": "r"}, facts=known,
    )  # fmt: skip
    desk = Desk()
    desk.resume([alert], [], START + 60)
    (draft,) = desk.due(START + 60)
    assert draft == Draft(id=str(known["incident"]), at=START, node="n", run="r", gpus=(("n", "0"),), alerts=("a",))
    for written, now in ((["x", draft.id], START + 60), ([], START + 7200)):
        other = Desk()
        other.resume([alert], written, now)
        assert other.due(now) == []


# ---------------------------------------------------------------- from readings to a report


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(f"sqlite:///{tmp_path}/oomwatch.db")
    yield opened
    opened.close()


class Shelves:
    """The store, as a house's journal writes to it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def append(self, transitions: Any) -> None:
        self._store.append(transitions)

    def record(self, entries: Sequence[Kept]) -> None:
        self._store.record(
            Batch(
                entries=tuple(
                    Entry(
                        node=one.session.node,
                        session=one.session.session,
                        received_at=one.received_at,
                        message=one.message,
                    )
                    for one in entries
                )
            )
        )


async def call(fn: Callable[..., Any], *arguments: object) -> Any:
    return fn(*arguments)


class Accident:
    """A run of one node whose card is full for a while and then runs out of memory."""

    def __init__(self, store: Store, reports: Reports, *, run: str = "r", gpus: int = 2, seconds: int = 120) -> None:
        self.desk = Desk()
        self.house = House(RULES, incidents=self.desk)
        self.house.journal._archive = Shelves(store)
        self.clerk = Clerk(self.desk, reports, self.house.service, store, self.house.journal, call, language="en")
        self.seq = 0
        self.session, _ = self.house.connect(hello(run=run, gpus=gpus))
        self.event(wire.Config(values={"a.key": 7, "b.key": EVIL}))
        self.house.wait(seconds, lambda: self.read(40, gpus))
        self.event(
            wire.Step(step=1, step_seconds=60, rollout_seconds=30, phase_seconds={"rollout": 30, "update_actor": 25})
        )
        self.house.wait(30, lambda: self.read(75, gpus))
        self.event(OOM)
        self.failed_at = self.house.now

    def read(self, gib: float, gpus: int) -> None:
        self.seq += 1
        self.house.service.reception.take(self.session, sample(self.seq, gib, self.house.now, gpus=gpus))

    def event(self, body: wire.EventBody) -> None:
        self.seq += 1
        origin = wire.Origin(source="driver.log", pid=4711, actor=EVIL)
        message = wire.Event(seq=self.seq, at=self.house.now, body=body, origin=origin)
        self.house.service.reception.take(self.session, message)

    def wait_and_write(self) -> None:
        self.house.wait(int(AFTER_SECONDS), lambda: self.read(5, 2))
        asyncio.run(self.clerk.write_due())


def written(folder: Folder) -> Incident:
    (name,) = folder.ids()
    return msgspec.json.decode(folder.read(name) or b"", type=Incident)


def test_a_report_holds_all_that_was_known(store: Store, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "incidents", 5)
    accident = Accident(store, folder)
    accident.wait_and_write()
    report = written(folder)
    assert (report.at, report.run, report.nodes, len(report.cards)) == (accident.failed_at, "r", ("gpu-07",), 2)
    assert [alert.alert for alert in report.alerts] == ["out_of_memory", "full", "full"]
    assert [message.body for message in report.messages] == [OOM]
    assert [span.phase for span in report.phases] == ["rollout", "update_actor"]
    assert report.config["a.key"] == 7
    assert [point.step.step for point in report.steps] == [1]
    assert report.advice["zh"] == ("调低 gpu_memory_utilization。",)
    used = next(curve for curve in report.curves if curve.series == "gpu_used_bytes")
    assert max(value for value in used.values if value is not None) == 75 * GIB
    assert used.at[0] <= START + 2
    assert used.at[-1] > accident.failed_at  # the samples after it are in it too
    assert {"host_memory_used_bytes", "step_seconds"} <= {curve.series for curve in report.curves}


def test_each_start_of_a_run_that_runs_out_of_memory_has_its_own_alert_message_and_report(
    store: Store, tmp_path: Path
) -> None:
    folder = Folder(tmp_path / "incidents", 5)
    accident = Accident(store, folder, seconds=5)
    accident.house.flush()
    (failure,) = (one for one in accident.house.service.open_alerts() if one.alert == "out_of_memory")
    accident.house.service.attention.acknowledge([failure.id], by="ann", note="")
    accident.wait_and_write()
    accident.event(wire.Config(values={"a.key": 7, "b.key": EVIL}))
    accident.event(wire.Step(step=1, step_seconds=9))
    accident.house.wait(9, lambda: accident.read(40, 2))
    accident.event(OOM)
    accident.wait_and_write()
    told = [one for one in accident.house.channels.offered if one.alert == "out_of_memory" and one.change == "state"]
    assert [(one.labels["gpu"], one.state, one.reason) for one in told] == [
        ("0", "firing", None),
        ("0", "resolved", "run restarted"),
        ("0", "firing", None),
    ]
    assert told[0].facts["incident"] != told[2].facts["incident"]
    assert len(folder.ids()) == 2
    (again,) = (one for one in accident.house.service.open_alerts() if one.alert == "out_of_memory")
    assert again.acknowledged is None


def test_a_warning_is_shown_as_it_was_told_before_the_failure(store: Store, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "incidents", 5)
    accident = Accident(store, folder, gpus=1, seconds=5)
    accident.house.wait(12, lambda: accident.read(79, 1))  # and by then the board tells of more
    accident.wait_and_write()
    (warning,) = (one for one in accident.house.service.board.all() if one.alert == "full")
    (shown,) = (one for one in written(folder).alerts if one.alert == "full")
    assert (warning.texts["en"].summary, shown.texts["en"].summary) == (
        "GPU 0 of gpu-07 is 99 % full",
        "GPU 0 of gpu-07 is 94 % full",
    )
    assert shown.value == pytest.approx(75 / 80, abs=0.01)


def test_the_alert_and_the_webhook_name_the_report(store: Store, tmp_path: Path) -> None:
    accident = Accident(store, Folder(tmp_path / "incidents", 5))
    accident.house.flush()
    fired = next(one for one in accident.house.channels.offered if one.alert == "out_of_memory")
    incident = incident_id(accident.failed_at, "run r")
    assert fired.facts["incident"] == incident
    assert any(alert.facts.get("incident") == incident for alert in accident.house.service.open_alerts())
    told = webhook.body(notice([fired]), "ops", Frame(external_url="https://watch.example/"))
    annotations = msgspec.to_builtins(told)["alerts"][0]["annotations"]
    assert annotations["incident"] == incident
    assert annotations["incident_url"] == f"https://watch.example/api/v1/incidents/{incident}.html"


def test_a_disk_that_is_full_costs_the_report_alone(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "incidents").write_text("a file where the folder should be", encoding="utf-8")
    accident = Accident(store, Folder(tmp_path / "incidents", 5))
    accident.wait_and_write()
    assert "cannot be written" in caplog.text
    assert accident.house.service.defects.total == 0
    accident.read(75, 2)
    assert accident.house.service.open_alerts()


def test_of_a_large_run_the_cards_that_failed_are_in_the_report(store: Store, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "incidents", 5)
    accident = Accident(store, folder, gpus=CARDS_MAX + 6, seconds=5)
    accident.event(wire.DeviceOom(error="OutOfMemoryError", gpu=str(CARDS_MAX + 5)))
    accident.wait_and_write()
    report = written(folder)
    assert (len(report.cards), report.cards_left_out) == (CARDS_MAX, 6)
    assert [card.gpu for card in report.cards[:3]] == ["0", str(CARDS_MAX + 5), "1"]
    assert "64 of 70 GPUs" in page(report, "en")


# ---------------------------------------------------------------- the page


def test_the_page_needs_nothing_else_and_runs_nothing_of_what_came_from_outside(store: Store, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "incidents", 5)
    Accident(store, folder, run=EVIL).wait_and_write()
    (name,) = folder.ids()
    text = (folder.page(name) or b"").decode()
    assert text.count("<script>alert(1)") == 0
    outside = text[: text.index("<script")] + text[text.rindex("</script>") :]
    assert "alert(1)" in outside
    assert "Lower gpu_memory_utilization." in outside
    assert not re.search(r"""<(script|link|img|iframe)[^>]+(src|href)=""", text)
    assert len(text) > 3_000_000  # plotly.js is within


@pytest.mark.parametrize("language", wire.LANGUAGES)
def test_the_page_is_in_the_readers_language(store: Store, tmp_path: Path, language: wire.Language) -> None:
    folder = Folder(tmp_path / "incidents", 5)
    Accident(store, folder, seconds=5).wait_and_write()
    text = page(written(folder), language)
    assert {"en": "The last fifteen minutes", "zh": "最近十五分钟"}[language] in text
    assert {"en": "30 s", "zh": "30 秒"}[language] in text  # how long before it the card was full


# ---------------------------------------------------------------- the folder


def report_of(at: float) -> Incident:
    return Incident(
        id=incident_id(at, "run r"), at=at, written_at=at, version="0", node="n", run="r", simulated=False,
        summary={"en": EVIL}, nodes=("n",), cards=(), cards_left_out=0, alerts=(), messages=(), causes=(), remedies=(),
        advice={}, phases=(), steps=(), config={}, curves=(),
    )  # fmt: skip


def test_the_newest_reports_are_kept_and_listed_first(tmp_path: Path) -> None:
    folder = Folder(tmp_path, 3)
    for hour in range(5):
        folder.write(report_of(START + 3600 * hour), "<html>")
    assert [entry.at for entry in folder.entries()] == [START + 3600 * hour for hour in (4, 3, 2)]
    assert len(list(tmp_path.iterdir())) == 9


def test_a_damaged_head_is_passed_over_and_a_strange_name_is_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path, 3)
    folder.write(report_of(START), "<html>")
    (tmp_path / f"{incident_id(START + 9, 'x')}.head").write_text("{", encoding="utf-8")
    (tmp_path / "notes.head").write_text("mine", encoding="utf-8")
    assert len(folder.entries()) == 1
    assert folder.read("../oomwatch") is None
    assert folder.read(incident_id(START + 9, "x")) is None
    assert Folder(tmp_path / "none", 3).entries() == []


def test_reports_in_the_database_are_the_newest_so_many_whoever_wrote_them(store: Store) -> None:
    one, other = Cabinet(store, 2, "zh"), Cabinet(store, 2, "zh")
    for second in range(3):
        one.write(report_of(START + second), "<html>")
    newest = incident_id(START + 2, "run r")
    assert other.ids() == [entry.id for entry in other.entries()] == [newest, incident_id(START + 1, "run r")]
    assert msgspec.json.decode(other.read(newest) or b"", type=Incident) == report_of(START + 2)
    assert "内存耗尽" in (other.page(newest) or b"").decode()
    assert other.read(incident_id(START, "run r")) is other.page("none") is None


def test_reports_that_were_files_are_taken_in_once_the_newest_so_many(
    store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cabinet, folder = Cabinet(store, 3), Folder(tmp_path / "incidents", 9)
    for second in range(4):
        folder.write(report_of(START + second), "<html>")
    cabinet.write(report_of(START + 9), "<html>")
    damaged = incident_id(START + 3, "run r")
    (folder.path / f"{damaged}.json").write_bytes(b"{")
    for _ in range(2):
        cabinet.take_in(folder)
        assert cabinet.ids() == [incident_id(START + second, "run r") for second in (9, 2)]
    assert msgspec.json.decode(cabinet.read(incident_id(START + 2, "run r")) or b"", type=Incident) == report_of(
        START + 2
    )
    assert f"{damaged} in the folder is damaged" in caplog.text
    assert len(folder.ids()) == 4


class Unwritable(Cabinet):
    is_gone = True

    def write(self, incident: Incident, page: str) -> None:
        if self.is_gone:
            raise StoreError("PostgreSQL is gone")
        super().write(incident, page)


def test_a_report_that_the_database_does_not_take_is_written_once_it_does(store: Store) -> None:
    cabinet = Unwritable(store, 5)
    accident = Accident(store, cabinet)
    accident.wait_and_write()
    assert cabinet.ids() == []
    cabinet.is_gone = False
    accident.house.wait(29)
    asyncio.run(accident.clerk.write_due())
    assert cabinet.ids() == []
    accident.house.wait(1)
    asyncio.run(accident.clerk.write_due())
    assert len(cabinet.ids()) == 1


def test_a_server_that_comes_to_lead_writes_no_report_that_another_has_written(store: Store) -> None:
    accident = Accident(store, Cabinet(store, 5))
    accident.house.flush()
    (failure,) = (one for one in accident.house.service.open_alerts() if one.alert == "out_of_memory")
    incident = accident.desk.of(failure.id)
    assert incident is not None
    accident.desk.resume(accident.house.service.board.all(), [incident], accident.house.now)
    assert accident.desk.due(accident.house.now + 3600) == []


# ---------------------------------------------------------------- over the interface, and as a command


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    Folder(tmp_path / "incidents", 5).write(report_of(START), "<html>the page</html>")
    with serving(settings_in(tmp_path)) as running:
        yield running


def test_reports_are_listed_and_given_as_json_and_as_a_page(server: RunningServer) -> None:
    name = incident_id(START, "run r")
    (listed,) = server.get("/api/v1/incidents").json()
    assert (listed["id"], listed["run"], listed["summary"]["en"]) == (name, "r", EVIL)
    assert server.get(f"/api/v1/incidents/{name}").json()["id"] == name
    given = server.get(f"/api/v1/incidents/{name}.html")
    assert (given.text, given.headers["content-type"]) == ("<html>the page</html>", "text/html; charset=utf-8")
    assert given.headers["content-security-policy"].startswith("sandbox allow-scripts")
    anew = server.get(f"/api/v1/incidents/{name}.html", params={"lang": "zh"})
    assert "内存耗尽" in anew.text
    assert EVIL not in anew.text


@pytest.mark.parametrize(
    "path", ["/api/v1/incidents/none", "/api/v1/incidents/none.html", "/api/v1/incidents/..%2Fo.html"]
)
def test_an_unknown_report_is_answered_with_a_sentence(server: RunningServer, path: str) -> None:
    answer = server.get(path)
    assert answer.status_code == 404
    assert "there is no" in answer.json()["error"] or "there is nothing" in answer.json()["error"]


def test_the_command_lists_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Folder(tmp_path / "incidents", 5)
    where = ["--db", str(tmp_path / "oomwatch.db")]
    assert main(["incident", "latest", *where]) == 1
    assert "there is no incident yet" in capsys.readouterr().err
    folder.write(report_of(START), "<html>")
    name = incident_id(START, "run r")
    assert main(["incident", *where]) == 0
    assert capsys.readouterr().out.startswith(f"{name}  2023-11-14 22:13:20 UTC  r")
    assert main(["incident", "latest", *where]) == 0
    assert f"{name}.html" in capsys.readouterr().out
    assert main(["incident", name, "--json", "--incidents", str(tmp_path / "incidents")]) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=Incident) == report_of(START)
    assert main(["incident", "20260101T000000Z-00000000", *where]) == 1


def test_of_a_postgresql_the_reports_are_read_there_by_server_and_command(
    postgres_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    Folder(tmp_path / "oomwatch" / "incidents", 5).write(report_of(START - 9), "<html>")  # of an earlier version
    store = Store.open(postgres_url)
    Cabinet(store, 5).write(report_of(START), "<html>")
    store.close()
    name = incident_id(START, "run r")
    with serving(settings_in(tmp_path, db=postgres_url)) as running:
        listed = [one["id"] for one in running.get("/api/v1/incidents").json()]
        assert listed == [name, incident_id(START - 9, "run r")]
        assert running.get(f"/api/v1/incidents/{name}.html").text.startswith("<!DOCTYPE html>")
    assert main(["incident", "latest", "--db", postgres_url]) == 0
    assert f"report: /api/v1/incidents/{name}.html" in capsys.readouterr().out


def test_the_command_tells_each_rule_that_warned_once_the_earliest_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fired = ((START - 24, "gpu_memory_high"), (START - 78, "memory_forecast"), (START - 20, "gpu_memory_high"))
    alerts = tuple(
        wire.Alert(
            id=str(at), alert=name, severity="warning", state="firing", labels={}, started_at=at, fired_at=at, texts={},
        )
        for at, name in fired
    )  # fmt: skip
    folder = Folder(tmp_path / "incidents", 5)
    folder.write(msgspec.structs.replace(report_of(START), alerts=alerts), "<html>")
    assert main(["incident", "latest", "--db", str(tmp_path / "oomwatch.db")]) == 0
    told = [line.strip() for line in capsys.readouterr().out.splitlines() if " before: " in line]
    assert told == ["78 s before: memory_forecast (warning)", "24 s before: gpu_memory_high (warning), 2 alerts"]
