"""Reports of what ran out of memory, as their writer made them; the newest so many."""

from sqlalchemy import Connection, delete, select

from oomwatch.store.rows import put
from oomwatch.store.schema import reports


def keep(connection: Connection, incident: str, entry: bytes, report: bytes, at_most: int) -> None:
    """Keep a report, in place of an earlier one of that incident, and let the oldest go. Ids begin with the time."""
    put(connection, reports, [{"incident": incident, "entry": entry, "report": report}])
    ids = connection.scalars(select(reports.c.incident).order_by(reports.c.incident.desc())).all()
    connection.execute(delete(reports).where(reports.c.incident.in_(ids[at_most:])))


def entries(connection: Connection) -> list[tuple[str, bytes]]:
    """(incident, entry) of each, the newest first."""
    query = select(reports.c.incident, reports.c.entry).order_by(reports.c.incident.desc())
    return [(row.incident, row.entry) for row in connection.execute(query)]


def report_of(connection: Connection, incident: str) -> bytes | None:
    """One report, or None."""
    return connection.scalar(select(reports.c.report).where(reports.c.incident == incident))
