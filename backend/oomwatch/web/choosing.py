"""Which alerts somebody asks for, found among those that are open and those that the database has."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from oomwatch import wire
from oomwatch.web.parts import Parts


class Wanted(NamedTuple):
    """`labels`: node, run, alert; None where any will do. Without what was over by `since` or began after `until`."""

    labels: Mapping[str, str | None]
    since: float | None = None
    until: float | None = None

    def has(self, alert: wire.Alert) -> bool:
        told = {**alert.labels, "alert": alert.alert}
        return all(value is None or told.get(name) == value for name, value in self.labels.items()) and (
            (self.until is None or alert.started_at <= self.until)
            and (self.since is None or alert.ended_at is None or alert.ended_at >= self.since)
        )


async def newest(parts: Parts, wanted: Wanted, states: Collection[str], limit: int) -> list[wire.Alert]:
    """Those in one of the states, the one that started last first. Open ones have their numbers as of now."""
    found = [one for one in parts.service.open_alerts() if one.state in states and wanted.has(one)]
    if "resolved" in states:
        found += await _ended(parts, wanted, limit)
    return sorted(found, key=lambda one: (one.started_at, one.id), reverse=True)[:limit]


async def _ended(parts: Parts, wanted: Wanted, limit: int) -> list[wire.Alert]:
    """Ended alerts from the database, and those that it could not be given yet."""
    times = {"since": wanted.since, "until": wanted.until}
    stored = await parts.read(parts.store.alerts, state="resolved", limit=limit, **times, **wanted.labels)
    lately = [one for one in parts.service.board.ended() if one.fired_at is not None and wanted.has(one)]
    return list({one.id: one for one in (*lately, *stored)}.values())
