"""What the memory of each run was when it last went well."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, delete, select, update

from oomwatch.core.past import Past
from oomwatch.store.rows import put
from oomwatch.store.schema import pasts

_decoder = msgspec.json.Decoder(Past)


def keep(connection: Connection, changed: Sequence[Past], now: float) -> None:
    """Keep these instead of what was kept of the same runs."""
    rows = {past.run: {"run": past.run, "kept_at": now, "document": _text(past)} for past in changed}
    put(connection, pasts, rows.values())


def known(connection: Connection) -> list[Past]:
    """Everything, the one that was kept last at the end."""
    return [_decoder.decode(text) for text in connection.scalars(select(pasts.c.document).order_by(pasts.c.kept_at))]


def prune(connection: Connection, cutoff: float, now: float, horizon: float) -> None:
    """Forget those that were kept before `cutoff`; one from after `horizon` was kept now."""
    connection.execute(update(pasts).where(pasts.c.kept_at > horizon).values(kept_at=now))
    connection.execute(delete(pasts).where(pasts.c.kept_at < cutoff))


def _text(past: Past) -> str:
    return msgspec.json.encode(past).decode()
