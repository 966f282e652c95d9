"""Silences, for as long as history is kept after their end."""

import logging
from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, delete, select

from oomwatch import wire
from oomwatch.core.mute.matcher import check
from oomwatch.store.rows import put
from oomwatch.store.schema import silences

_decoder = msgspec.json.Decoder(wire.Silence)

logger = logging.getLogger(__name__)


def keep(connection: Connection, changed: Sequence[wire.Silence]) -> None:
    """Keep these, in place of what was kept of the same ones."""
    rows = {one.id: {"id": one.id, "ends_at": one.ends_at, "document": wire.encode(one).decode()} for one in changed}
    put(connection, silences, rows.values())


def ending_after(connection: Connection, since: float) -> list[wire.Silence]:
    """Those that end later, the one that ends first at the beginning."""
    query = select(silences.c.document).where(silences.c.ends_at > since).order_by(silences.c.ends_at, silences.c.id)
    return [found for text in connection.scalars(query) if (found := _read(text)) is not None]


def prune(connection: Connection, cutoff: float) -> None:
    """Delete those that ended before."""
    connection.execute(delete(silences).where(silences.c.ends_at < cutoff))


def _read(text: str) -> wire.Silence | None:
    """One whose matchers another version wrote and this one cannot read hides nothing, and the log says so."""
    found = _decoder.decode(text)
    try:
        for matcher in found.matchers:
            check(matcher)
    except ValueError as error:
        logger.error("the silence %s is passed over: %s", found.id, error)  # noqa: TRY400 - the sentence is enough
        return None
    return found
