"""`oomwatch token` and `oomwatch audit`: who may do what, and what was done."""

import argparse
import secrets
import sys
import time
from collections.abc import Callable
from contextlib import closing

import msgspec

from oomwatch.access.audit import Deed
from oomwatch.access.token import Role, Token, digest_of, text_of
from oomwatch.commands.alerts import moment
from oomwatch.commands.stored import database_of, opened
from oomwatch.commands.tables import aligned
from oomwatch.figures import printable
from oomwatch.options import SettingError
from oomwatch.store.store import Store, StoreError
from oomwatch.units import parse_duration

FAILED = 1
SECRET_BYTES = 32
DEEDS_MAX = 1000
NAME_CHARS_MAX = 80
COLUMNS = ("NAME", "ROLE", "NODES", "CREATED", "GOOD", "ID")
DEED_COLUMNS = ("AT", "WHO", "ROLE", "FROM", "WHAT", "STATUS")


def run_create(options: argparse.Namespace) -> int:
    """Make a token. Gives the exit status."""
    if options.node and options.role != "agent":
        raise SettingError(f"flag --node: is for agents; a token of the role {options.role} is for no node")
    if not 0 < len(options.name) <= NAME_CHARS_MAX or not options.name.isprintable():
        raise SettingError(f"NAME: must be 1 to {NAME_CHARS_MAX} printable characters")
    lifetime = _seconds("--expires", options.expires)
    nodes = tuple(options.node)
    return with_store(options, lambda store: _create(store, options.name, options.role, nodes, lifetime), makes=True)


def run_list(options: argparse.Namespace) -> int:
    """List the tokens. Gives the exit status."""

    def work(store: Store) -> None:
        known, now = store.tokens(), time.time()
        if options.json:
            print(msgspec.json.encode([msgspec.structs.replace(one, digest="") for one in known]).decode())
        elif known:
            print("\n".join(aligned([COLUMNS, *(_cells(one, now) for one in known)])))
        else:
            print("no tokens")

    return with_store(options, work)


def run_rotate(options: argparse.Namespace) -> int:
    """Make another, and let the old ones go. Gives the exit status."""
    grace = _seconds("--grace", options.grace) or 0.0

    def work(store: Store) -> None:
        now = time.time()
        old = _named(store, options.name, now)
        _create(store, old[-1].name, old[-1].role, old[-1].nodes, None)
        for token in old:
            store.change_token(
                msgspec.structs.replace(token, expires_at=min(token.expires_at or now + grace, now + grace))
            )
        print(f"the old one is good for another {options.grace}", file=sys.stderr)

    return with_store(options, work)


def run_revoke(options: argparse.Namespace) -> int:
    """Make tokens useless. Gives the exit status."""

    def work(store: Store) -> None:
        now = time.time()
        for token in _named(store, options.name, now):
            store.change_token(msgspec.structs.replace(token, revoked_at=now))
            print(f"{token.name} ({token.role}, {token.id}) is revoked")

    return with_store(options, work)


def run_audit(options: argparse.Namespace) -> int:
    """List what was done. Gives the exit status."""
    since = time.time() - (_seconds("--since", options.since) or 0.0)

    def work(store: Store) -> None:
        found = store.deeds(since, DEEDS_MAX)
        if options.json:
            print(msgspec.json.encode(found).decode())
        else:
            print("\n".join(aligned([DEED_COLUMNS, *map(_deed_cells, found)])) if found else "nothing was done")

    return with_store(options, work)


def _create(store: Store, name: str, role: Role, nodes: tuple[str, ...], lifetime: float | None) -> None:
    text, now = text_of(role, secrets.token_urlsafe(SECRET_BYTES)), time.time()
    expires_at = None if lifetime is None else now + lifetime
    store.keep_token(
        Token(
            id=secrets.token_hex(6), name=name, role=role, digest=digest_of(text), nodes=nodes,
            created_at=now, expires_at=expires_at,
        )
    )  # fmt: skip
    print(text)
    print("It is shown this once. A running server takes it within 2 seconds.", file=sys.stderr)


class RefusedError(Exception):
    """It is not done; the text says why."""


def _named(store: Store, name: str, now: float) -> list[Token]:
    """The good tokens of this name or id, the oldest first."""
    found = [one for one in store.tokens() if name in (one.name, one.id) and one.is_good(now)]
    if not found:
        raise RefusedError(f'there is no token "{name}" that is good; oomwatch token list shows all')
    return sorted(found, key=lambda token: token.created_at)


def with_store(options: argparse.Namespace, work: Callable[[Store], None], *, makes: bool = False) -> int:
    """Do it with the server's database, which is made where there is none if `makes`. Gives the exit status."""
    try:
        with closing(Store.open(database_of(options.db)) if makes else opened(options.db)) as store:
            work(store)
    except (StoreError, RefusedError) as error:
        print(f"oomwatch: {error}", file=sys.stderr)
        return FAILED
    return 0


def _seconds(flag: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(parse_duration(text))
    except ValueError as error:
        raise SettingError(f"flag {flag}: {error}") from error


def _cells(token: Token, now: float) -> tuple[str, ...]:
    return token.name, token.role, " ".join(token.nodes) or "any", moment(token.created_at), _good(token, now), token.id


def _good(token: Token, now: float) -> str:
    if token.revoked_at is not None:
        return f"revoked {moment(token.revoked_at)}"
    if token.expires_at is None:
        return "always"
    return ("until " if now < token.expires_at else "expired ") + moment(token.expires_at)


def _deed_cells(one: Deed) -> tuple[str, ...]:
    return moment(one.at), one.who, one.role, one.address, printable(f"{one.method} {one.path}"), str(one.status)
