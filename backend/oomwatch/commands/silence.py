"""`oomwatch silence`: have certain alerts sent to nobody for a time."""

import argparse
import time
from collections.abc import Iterator
from urllib.parse import quote

import msgspec

from oomwatch.commands.alerts import LANGUAGE, Row, asked, moment, table, user_name
from oomwatch.commands.client import Client
from oomwatch.commands.tables import aligned
from oomwatch.figures import duration, printable
from oomwatch.units import counted

PATH = "/api/v1/silences"
COLUMNS = ("STATE", "MATCHERS", "UNTIL", "BY", "NOTE", "ID")


class SilenceRow(msgspec.Struct, frozen=True):
    """As much of a silence as is printed (docs/reference/api.md)."""

    id: str
    state: str
    match: tuple[str, ...]
    starts_at: float
    ends_at: float
    created_by: str
    note: str | None


class Hidden(msgspec.Struct, frozen=True):
    fired: int
    hidden: int
    hidden_critical: int


class Preview(msgspec.Struct, frozen=True):
    """What a silence would hide."""

    alerts: tuple[Row, ...]
    last_24h: Hidden
    last_7d: Hidden
    warnings: tuple[str, ...]


def run_add(options: argparse.Namespace) -> int:
    """Make one. Gives the exit status."""
    if options.preview:
        return run_preview(options)
    wish = {"match": options.match, "duration": options.duration, "note": options.note}
    wish["created_by"] = options.by or user_name()

    def work(client: Client) -> None:
        body = client.ask("POST", PATH, body=msgspec.json.encode(wish))
        made = body.read_as(SilenceRow)
        print(body.body.decode() if options.json else f"silence {made.id} until {moment(made.ends_at)}")

    return asked(options, work)


def run_list(options: argparse.Namespace) -> int:
    """List them. Gives the exit status."""

    def work(client: Client) -> None:
        body = client.ask("GET", PATH)
        rows = body.read_as(list[SilenceRow])
        if options.json:
            print(body.body.decode())
        else:
            print("\n".join(aligned([COLUMNS, *(_cells(row) for row in rows)])) if rows else "no silences")

    return asked(options, work)


def run_end(options: argparse.Namespace) -> int:
    """End one. Gives the exit status."""

    def work(client: Client) -> None:
        body = client.ask("DELETE", f"{PATH}/{quote(options.id, safe='')}")
        print(body.body.decode() if options.json else f"silence {options.id} is over")

    return asked(options, work)


def run_preview(options: argparse.Namespace) -> int:
    """Say what one would hide. Gives the exit status."""

    def work(client: Client) -> None:
        body = client.ask("POST", f"{PATH}/preview", body=msgspec.json.encode({"match": options.match}))
        print(body.body.decode() if options.json else "\n".join(_told(body.read_as(Preview), time.time())))

    return asked(options, work)


def _cells(row: SilenceRow) -> tuple[str, ...]:
    upcoming = f"from {moment(row.starts_at)} for {duration(row.ends_at - row.starts_at, LANGUAGE)}"
    until = upcoming if row.state == "upcoming" else moment(row.ends_at)
    return row.state, " ".join(row.match), until, row.created_by, row.note or "", row.id


def _told(preview: Preview, now: float) -> Iterator[str]:
    yield f"would hide {counted(len(preview.alerts), 'alert that fires', 'alerts that fire')} now"
    if preview.alerts:
        yield from table(preview.alerts, now)
    for time_of, told in (("24 hours", preview.last_24h), ("7 days", preview.last_7d)):
        hidden = f"{told.hidden} of {counted(told.fired, 'alert')}"
        yield f"of the last {time_of}: {hidden}, {told.hidden_critical} of them critical"
    yield from (printable(f"careful: {warning}") for warning in preview.warnings)
