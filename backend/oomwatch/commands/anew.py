"""`oomwatch begin-anew`: give a damaged database up, without opening the server to everybody.

Who may come in stands in the database. An empty one would let in whoever can reach the server, so that the new one asks
for tokens of every role, and has none that is good.

Whenever it is cut short, no server starts as at a first start: the new one is made whole under another name, and from
the moment on when it has that of `unfinished`, servers refuse to start until this command was run to its end.
"""

import argparse
import os
import sys
import time
from contextlib import closing
from pathlib import Path

from oomwatch.access.token import ROLES, Token
from oomwatch.commands.stored import file_of_it
from oomwatch.options import SettingError
from oomwatch.oserror import with_place
from oomwatch.store.claim import claimed
from oomwatch.store.errors import StoreError
from oomwatch.store.soundness import damage, files_of, is_ours, put_aside, unfinished
from oomwatch.store.store import Store

FAILED = 1
_CLOSED = """\
It lets nobody in yet: users and tokens are gone with the old one. Make new ones before or after the server starts:
    oomwatch user add NAME --role operator
    oomwatch token create --role agent NAME
Tokens that the server's settings give are good as before."""
_OPEN = "It asks for nothing: until there is a user or a token, whoever can reach the server may look, act and send."


def run(options: argparse.Namespace) -> int:
    """Put the file aside, and an empty database in its place. Gives the exit status."""
    file = file_of_it(options.db)
    if file is None:
        raise SettingError("db: is no file; only a SQLite file can be put aside")
    if not file.is_file() and not unfinished(file).exists():
        raise SettingError(f"db: there is no {file}")
    try:
        with claimed(str(file)):
            aside = _begin(file, is_open=options.open)
    except (StoreError, OSError) as error:
        print(f"oomwatch: {with_place(error)}", file=sys.stderr)
        return FAILED
    print(f"{file} is now {aside}, and an empty database is in its place.\n{_OPEN if options.open else _CLOSED}")
    return 0


def _begin(file: Path, *, is_open: bool) -> Path:
    """Gives the name that the old file has now. Raises StoreError, OSError."""
    ready = unfinished(file)
    if ready.exists():
        begun_at = ready.stat().st_mtime  # of an attempt that was cut short: parts of the old one may bear its name
    else:
        _check_lost(file)
        begun_at = time.time()
    _make(file, ready, begun_at, is_open=is_open)
    aside = put_aside(file, begun_at)
    ready.rename(file)
    return aside


def _check_lost(file: Path) -> None:
    """Raises StoreError where there is nothing to give up."""
    wrong = damage(file)
    if wrong is None:
        raise StoreError(f"database {file}: is sound; nothing is done")
    if not is_ours(file):
        raise StoreError(
            f"database {file}: is damaged or no database ({wrong}), and nothing in it shows that it is oomwatch's; if "
            "it is, move it away yourself"
        )


def _make(file: Path, ready: Path, at: float, *, is_open: bool) -> None:
    """An empty database, `ready` as a whole or not at all."""
    new = file.with_name(file.name + ".new")
    for part in files_of(new):
        part.unlink(missing_ok=True)  # of an attempt that came to no end
    with closing(Store.open(str(new))) as store:
        if not is_open:
            _close_to_all(store, at)
    os.utime(new, (at, at))
    new.rename(ready)


def _close_to_all(store: Store, now: float) -> None:
    """A token that was there once makes its role ask for one."""
    for role in ROLES:
        store.keep_token(
            Token(
                id=f"gone {role}", name="of the damaged database", role=role, digest=f"none {role}",
                created_at=now, revoked_at=now,
            )
        )  # fmt: skip
