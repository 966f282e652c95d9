"""`oomwatch incident`: the reports that the server wrote when something ran out of memory."""

import argparse
import contextlib
import sys
from collections import Counter
from datetime import datetime, timezone

import msgspec

from oomwatch import wire
from oomwatch.commands.stored import database_of
from oomwatch.figures import printable
from oomwatch.incident.cabinet import Cabinet, Reports
from oomwatch.incident.folder import Folder
from oomwatch.incident.report import Incident
from oomwatch.settings import Settings, incidents_path, keeps_incidents_in_database
from oomwatch.store.address import file_of
from oomwatch.store.store import Store, StoreError

FAILED = 1
LANGUAGE: wire.Language = "en"


def run(options: argparse.Namespace) -> int:
    """List the reports, or tell of one. Gives the exit status."""
    database = database_of(options.db)
    settings = Settings(db=database, incidents=options.incidents)
    try:
        if not keeps_incidents_in_database(settings):
            folder = incidents_path(settings, file_of(database))
            return _tell(options, Folder(folder, keep=0), str(folder))
        with contextlib.closing(Store.hurried(database)) as store:
            return _tell(options, Cabinet(store, keep=0), "the database")
    except StoreError as error:
        print(f"oomwatch: {error}", file=sys.stderr)
        return FAILED


def _tell(options: argparse.Namespace, reports: Reports, place: str) -> int:
    if options.id is None:
        return _list(reports, place)
    name = next(iter(reports.ids()), None) if options.id == "latest" else options.id
    content = reports.read(name) if name is not None else None
    if content is None:
        what = "there is no incident yet" if options.id == "latest" else f'there is no incident "{options.id}"'
        print(f"oomwatch: {what} in {place}; name a folder with --incidents", file=sys.stderr)
        return FAILED
    if options.json:
        print(content.decode())
        return 0
    try:
        print("\n".join(map(printable, _told(msgspec.json.decode(content, type=Incident), reports))))
    except msgspec.DecodeError as error:
        print(f"oomwatch: the report {name} is damaged: {error}", file=sys.stderr)
        return FAILED
    return 0


def _list(reports: Reports, place: str) -> int:
    entries = list(reports.entries())
    if not entries:
        print(f"no incidents in {place}")
    for entry in entries:
        print(
            printable(f"{entry.id}  {_moment(entry.at)}  {entry.run or entry.node}  {entry.summary.get(LANGUAGE, '')}")
        )
    return 0


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _warned(incident: Incident) -> list[str]:
    """What had fired before, each rule once with the first of its alerts, earliest first."""
    first: dict[tuple[str, str], float] = {}
    counts = Counter[tuple[str, str]]()
    for alert in incident.alerts:
        if alert.fired_at is not None and alert.fired_at < incident.at:
            rule = (alert.alert, alert.severity)
            first[rule] = min(alert.fired_at, first.get(rule, alert.fired_at))
            counts[rule] += 1
    return [
        f"  {incident.at - at:.0f} s before: {name} ({severity})"
        + (f", {counts[rule]} alerts" if counts[rule] > 1 else "")
        for rule, at in sorted(first.items(), key=lambda one: one[1])
        for name, severity in [rule]
    ]


def _told(incident: Incident, reports: Reports) -> list[str]:
    """What a person wants first, and where the rest is."""
    lines = [
        f"{incident.summary.get(LANGUAGE, incident.id)}",
        f"{_moment(incident.at)}, {incident.run or incident.node}",
    ]
    lines += _warned(incident)
    lines += [f"  probably: {cause.texts.get(LANGUAGE, cause.cause)} ({cause.score:.0%})" for cause in incident.causes]
    lines += [f"  change: {remedy.override}" for remedy in incident.remedies if remedy.override]
    return [*lines, f"report: {reports.where(incident.id)}"]
