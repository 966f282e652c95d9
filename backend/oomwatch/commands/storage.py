"""`oomwatch storage`: how large a server's database is, how fast it grows, and what of it is history."""

import argparse
import time
from collections.abc import Iterator

from msgspec import Struct

from oomwatch.commands.alerts import LANGUAGE, asked, moment
from oomwatch.commands.client import Client
from oomwatch.commands.tables import aligned
from oomwatch.figures import duration, size, stretch

PATH = "/api/v1/storage"
COLUMNS = ("HISTORY", "SIZE", "BLOCKS", "OLDEST", "NEWEST")
KEPT = {"raw": "every reading", "10s": "ten seconds together", "1m": "minutes"}
UNKNOWN = "-"


class History(Struct, frozen=True):
    """Readings of one fineness (docs/reference/api.md)."""

    kept: str
    chunks: int
    bytes: int
    oldest_at: float | None
    newest_at: float | None


class Storage(Struct, frozen=True):
    """What was measured last; None: not measured yet."""

    measured_at: float | None
    database_bytes: int | None
    used_bytes: int | None
    growth_bytes_per_day: float | None
    growth_since_at: float | None
    history: tuple[History, ...]


def run(options: argparse.Namespace) -> int:
    """Tell of the database. Gives the exit status."""

    def work(client: Client) -> None:
        answer = client.ask("GET", PATH)
        print(answer.body.decode() if options.json else "\n".join(told(answer.read_as(Storage), time.time())))

    return asked(options, work)


def told(storage: Storage, now: float) -> Iterator[str]:
    """The lines for a terminal."""
    if storage.measured_at is None:
        yield "nothing is measured yet: the server does so soon after its start, and every ten minutes"
        return
    whole, used = storage.database_bytes, storage.used_bytes
    room = f", {size(used)} of it in use" if used is not None and used != whole else ""
    yield f"database  {'its size is not told' if whole is None else size(whole)}{room}"
    yield f"growth    {_growth(storage)}"
    yield f"measured  {duration(now - storage.measured_at, LANGUAGE)} ago"
    if storage.history:
        yield ""
        yield from aligned([COLUMNS, *[_cells(one) for one in storage.history]])


def _growth(storage: Storage) -> str:
    """What a day brings, with the time that this was seen in."""
    growth, since, at = storage.growth_bytes_per_day, storage.growth_since_at, storage.measured_at
    if growth is None or since is None or at is None:
        return "not known before an hour was measured"
    return f"{size(growth)} a day, by the last {stretch(at - since, LANGUAGE)}"


def _cells(one: History) -> tuple[str, ...]:
    ends = (UNKNOWN if at is None else moment(at) for at in (one.oldest_at, one.newest_at))
    return (KEPT.get(one.kept, one.kept), size(one.bytes), f"{one.chunks:,}", *ends)
