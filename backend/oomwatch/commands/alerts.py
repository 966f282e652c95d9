"""`oomwatch alerts`: what fires on a running server, and taking care of it."""

import argparse
import getpass
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from urllib.parse import quote

import msgspec

from oomwatch import wire
from oomwatch.commands.client import Client, ServerError, client_of
from oomwatch.commands.tables import aligned
from oomwatch.figures import duration, judged_figure, printable
from oomwatch.options import SettingError
from oomwatch.settings import Settings

FAILED = 1
LANGUAGE: wire.Language = "en"
COLUMNS = ("SEVERITY", "ALERT", "WHERE", "SINCE", "VALUE", "MUTED OR CARE", "ID")
ALERTS_PATH = "/api/v1/alerts"


class Row(msgspec.Struct, frozen=True):
    """As much of an alert's row as is printed (docs/reference/api.md)."""

    id: str
    alert: str
    severity: str
    state: str
    labels: dict[str, str]
    started_at: float
    summary: str
    description: str
    advice: tuple[str, ...]
    fired_at: float | None
    ended_at: float | None
    value: float | None
    limit: float | None
    unit: str | None
    facts: dict[str, wire.Fact]
    muted: tuple[wire.Mute, ...]
    acknowledged: wire.Acknowledgement | None
    causes: tuple[wire.Cause, ...]
    remedies: tuple[wire.Remedy, ...]
    outcome: wire.Outcome | None


class Story(msgspec.Struct, frozen=True):
    """An alert and what has become of it."""

    alert: Row
    transitions: tuple[wire.Transition, ...]
    deliveries: tuple[wire.Delivery, ...] = ()


class Acknowledged(msgspec.Struct, frozen=True):
    alerts: tuple[str, ...]


def run(options: argparse.Namespace) -> int:
    """List alerts. Gives the exit status."""
    query = {"node": options.node, "run": options.run, "alert": options.alert, "limit": options.limit}
    states = ("pending", None) if options.state == "all" else (options.state,)

    def work(client: Client) -> None:
        bodies = [client.ask("GET", ALERTS_PATH, query | {"state": state}) for state in states]
        if options.json:
            print(msgspec.json.encode([row for body in bodies for row in body.read_as(list[msgspec.Raw])]).decode())
            return
        rows = [row for body in bodies for row in body.read_as(list[Row])]
        print("\n".join(table(rows, time.time())) if rows else "no alerts")

    return asked(options, work)


def run_show(options: argparse.Namespace) -> int:
    """Tell of one. Gives the exit status."""

    def work(client: Client) -> None:
        body = client.ask("GET", _path(options.id))
        print(body.body.decode() if options.json else "\n".join(_told(body.read_as(Story), time.time())))

    return asked(options, work)


def run_ack(options: argparse.Namespace) -> int:
    """Take care of one, or of all that match. Gives the exit status."""
    if (options.id is None) == (options.match is None):
        raise SettingError("name an alert by its ID, or say which by --match")
    care = {"by": options.by or user_name(), "note": options.note}

    def work(client: Client) -> None:
        if options.match is not None:
            found = client.post(f"{ALERTS_PATH}/acknowledge", Acknowledged, {**care, "match": options.match})
            ids = found.alerts
        else:
            client.post(f"{_path(options.id)}/acknowledge", dict, care)
            ids = (options.id,)
        told = ", ".join(ids) or "no alert that fires matches"
        print(msgspec.json.encode({"alerts": ids}).decode() if options.json else f"{care['by']} takes care: {told}")

    return asked(options, work)


def run_unack(options: argparse.Namespace) -> int:
    """Take that back. Gives the exit status."""

    def work(client: Client) -> None:
        body = client.ask("DELETE", f"{_path(options.id)}/acknowledge").body
        print(body.decode() if options.json else f"nobody takes care any more: {options.id}")

    return asked(options, work)


# ---------------------------------------------------------------- asking


def asked(options: argparse.Namespace, work: Callable[[Client], None]) -> int:
    """Have `work` done with the server that is named, else with the one of this machine. Gives the exit status."""
    try:
        work(client_of(options) or Client(f"http://{Settings().listen}"))
    except ServerError as error:
        print(f"oomwatch: {printable(str(error))}", file=sys.stderr)
        return FAILED
    return 0


def user_name() -> str:
    """Who sits here. Raises SettingError where nobody knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:  # as Pythons differ: a user id without a name
        raise SettingError("say who you are: --by NAME") from error


def _path(alert_id: str) -> str:
    return f"{ALERTS_PATH}/{quote(alert_id, safe='')}"


# ---------------------------------------------------------------- showing


def table(rows: Sequence[Row], now: float) -> list[str]:
    """The lines for a terminal."""
    return aligned([COLUMNS, *([_cells(row, now) for row in rows])])


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _cells(row: Row, now: float) -> tuple[str, ...]:
    return (
        row.severity if row.state == "firing" else f"{row.severity} ({row.state})",
        row.alert,
        where(row.labels),
        f"{duration(now - (row.fired_at or row.started_at), LANGUAGE)} ago",
        judged_figure(row, LANGUAGE) or "",
        ", ".join([*(mute.kind for mute in row.muted), *([row.acknowledged.by] if row.acknowledged else [])]),
        row.id,
    )


def where(labels: dict[str, str]) -> str:
    """The node, its GPU, the run: as far as the alert has them."""
    place = [labels["node"]] if "node" in labels else []
    place += [f"GPU {labels['gpu']}"] if "gpu" in labels else []
    return " ".join(place + ([f"({labels['run']})"] if "run" in labels else []))


def _told(story: Story, now: float) -> Iterator[str]:
    """Everything of one alert, what a person wants first."""
    row = story.alert
    for line in (f"{row.severity} {row.alert}: {row.summary}", f"{row.state}, {where(row.labels)}", row.description):
        yield printable(line)
    yield from (f"  fired {moment(one)}" for one in (row.fired_at,) if one is not None)
    yield from (f"  over {moment(one)}" for one in (row.ended_at,) if one is not None)
    yield from (printable(f"  nobody is sent word: {_mute(mute, now)}") for mute in row.muted)
    if row.acknowledged is not None:
        yield printable(f"  {_care(row.acknowledged)}")
    for cause in row.causes:
        yield printable(f"  probably: {cause.texts.get(LANGUAGE, cause.cause)} ({cause.score:.0%})")
    yield from (printable(f"  change: {remedy.override}") for remedy in row.remedies if remedy.override)
    yield from (printable(f"  advice: {advice}") for advice in row.advice)
    if row.outcome is not None:
        yield f"  outcome: {row.outcome.verdict}"
    yield from (printable(f"{moment(one.at)}  {_change(one, now)}") for one in story.transitions)
    for sent in story.deliveries:
        said = f"{sent.kind} to {sent.channel}: {sent.state}" + (f", {sent.error}" if sent.error else "")
        yield printable(f"{moment(sent.done_at or sent.made_at)}  {said}")


def _mute(mute: wire.Mute, now: float) -> str:
    until = f", for {duration(mute.until - now, LANGUAGE)} more" if mute.until is not None and mute.until > now else ""
    return f"{mute.kind} {mute.by}{until}" + (f" ({mute.note})" if mute.note else "")


def _care(care: wire.Acknowledgement) -> str:
    return f"{care.by} takes care since {moment(care.at)}" + (f": {care.note}" if care.note else "")


def _change(one: wire.Transition, now: float) -> str:
    if one.change == "muted":
        return f"muted: {'; '.join(_mute(mute, now) for mute in one.muted)}" if one.muted else "not muted any more"
    if one.change == "acknowledged":
        return _care(one.acknowledged) if one.acknowledged else "nobody takes care any more"
    if one.change == "outcome" and one.outcome is not None:
        return f"outcome: {one.outcome.verdict}"
    if one.change == "acts":
        return f"done: {', '.join(act.act for act in one.acts)}"
    return f"{one.state}, {one.severity}" + (f" ({one.reason})" if one.reason else "")
