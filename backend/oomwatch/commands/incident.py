"""`oomwatch incident`: the reports that the server wrote when something ran out of memory."""

import argparse
import sys
from collections import Counter
from datetime import datetime, timezone

import msgspec

from oomwatch import wire
from oomwatch.incident.folder import Folder
from oomwatch.incident.report import Incident
from oomwatch.settings import Settings, incidents_path

FAILED = 1
LANGUAGE: wire.Language = "en"


def run(options: argparse.Namespace) -> int:
    """List the reports, or tell of one. Gives the exit status."""
    folder = Folder(incidents_path(Settings(db=options.db, incidents=options.incidents)), keep=0)
    if options.id is None:
        return _list(folder)
    name = next(iter(folder.ids()), None) if options.id == "latest" else options.id
    content = folder.read(name) if name is not None else None
    if content is None:
        what = "there is no incident yet" if options.id == "latest" else f'there is no incident "{options.id}"'
        print(f"oomwatch: {what} in {folder.path}; name another folder with --incidents", file=sys.stderr)
        return FAILED
    if options.json:
        print(content.decode())
        return 0
    try:
        print("\n".join(_told(msgspec.json.decode(content, type=Incident), folder)))
    except msgspec.DecodeError as error:
        print(f"oomwatch: the report {name} is damaged: {error}", file=sys.stderr)
        return FAILED
    return 0


def _list(folder: Folder) -> int:
    for entry in folder.entries():
        print(f"{entry.id}  {_moment(entry.at)}  {entry.run or entry.node}  {entry.summary.get(LANGUAGE, '')}")
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


def _told(incident: Incident, folder: Folder) -> list[str]:
    """What a person wants first, and where the rest is."""
    lines = [
        f"{incident.summary.get(LANGUAGE, incident.id)}",
        f"{_moment(incident.at)}, {incident.run or incident.node}",
    ]
    lines += _warned(incident)
    lines += [f"  probably: {cause.texts.get(LANGUAGE, cause.cause)} ({cause.score:.0%})" for cause in incident.causes]
    lines += [f"  change: {remedy.override}" for remedy in incident.remedies if remedy.override]
    return [*lines, f"report: {folder.path / f'{incident.id}.html'}"]
