"""Tokens, of which only digests are kept, and the log of what their holders did."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, delete, insert, select, update

from oomwatch.access.audit import Deed
from oomwatch.access.token import Token
from oomwatch.store.schema import audit, tokens

_decoder = msgspec.json.Decoder(Token)


def keep(connection: Connection, token: Token) -> None:
    """Keep a new token."""
    row = {"id": token.id, "name": token.name, "digest": token.digest, "document": _text(token)}
    connection.execute(insert(tokens), [row])


def change(connection: Connection, token: Token) -> None:
    """Keep a token in place of the one with its id."""
    connection.execute(update(tokens).where(tokens.c.id == token.id).values(document=_text(token)))


def known(connection: Connection) -> list[Token]:
    """Every token, by name."""
    query = select(tokens.c.document).order_by(tokens.c.name, tokens.c.id)
    return [_decoder.decode(text) for text in connection.scalars(query)]


def note(connection: Connection, deeds: Sequence[Deed]) -> None:
    """Add to the log."""
    if deeds:
        connection.execute(insert(audit), [msgspec.structs.asdict(deed) for deed in deeds])


def deeds(connection: Connection, since: float, limit: int) -> list[Deed]:
    """What was done since then, the latest first."""
    query = select(audit).where(audit.c.at >= since).order_by(audit.c.id.desc()).limit(limit)
    names = Deed.__struct_fields__
    return [Deed(**{name: row[name] for name in names}) for row in connection.execute(query).mappings()]


def prune(connection: Connection, cutoff: float) -> None:
    """Delete what was done before."""
    connection.execute(delete(audit).where(audit.c.at < cutoff))


def _text(token: Token) -> str:
    return msgspec.json.encode(token).decode()
