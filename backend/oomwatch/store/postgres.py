"""An engine on PostgreSQL by psycopg 3, on which every wait ends.

How long PostgreSQL may take is said three times, since each limit has a case that the others miss: PostgreSQL itself
gives up a statement, the kernel a connection whose other end is gone, and `Patience` one whose other end is silent.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import URL, Engine, NullPool, create_engine, event

from oomwatch.store.errors import StoreError
from oomwatch.store.patience import Patience


class Limits(NamedTuple):
    """In seconds. `patience` is above what PostgreSQL is given, so that its own word comes first."""

    connect: int = 5  # to each address of the host
    statement: float = 30.0
    lock: float = 10.0  # for a row that another server writes
    idle: float = 60.0  # between two statements of a transaction: one that does so holds its rows
    patience: float = 40.0


USUAL = Limits()
# To bring the tables to a new schema may take minutes, and to wait for another server that does so, too.
UNHURRIED = Limits(statement=0.0, lock=600.0, idle=600.0, patience=86_400.0)
# Who is to speak for all is asked every second or so.
IMPATIENT = Limits(connect=2, statement=2.0, lock=2.0, idle=0.0, patience=3.0)
# The kernel gives a silent connection up after about half a minute.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
POOL_WAIT_SECONDS = 10.0
READING: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
# What is written is worked out from what was read: a row that another server changed in between is an error, and the
# transaction is made again (Database.write).
WRITING: dict[str, Any] = {"isolation_level": "REPEATABLE READ"}
MIGRATING: dict[str, Any] = {"isolation_level": "READ COMMITTED"}  # it waits for a lock, and then reads what there is


class Pooled(NamedTuple):
    """An engine and what looks after it."""

    engine: Engine
    patience: Patience


def postgres_engine(url: URL, limits: Limits = USUAL, *, pooled: bool = True) -> Pooled:
    """Without a pool, a connection is closed when it is given back."""
    patience = Patience(limits.patience)
    pool: dict[str, Any] = (
        {"pool_pre_ping": True, "pool_timeout": POOL_WAIT_SECONDS} if pooled else {"poolclass": NullPool}
    )
    arguments = {"connect_timeout": limits.connect, "application_name": "oomwatch", **_KEEPALIVE}
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    engine = create_engine(url, connect_args=arguments, use_native_hstore=False, **pool)
    event.listen(engine, "do_connect", _connector(patience))
    event.listen(engine, "connect", partial(_prepare, limits))
    return Pooled(engine, patience)


class _Bounded(psycopg.Connection[Any]):
    """Every answer of the server is waited for in wait()."""

    patience: Patience

    def wait(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as psycopg declares it
        if self.pgconn.status != psycopg.pq.ConnStatus.OK:
            return super().wait(*args, **kwargs)  # says at once that it is closed
        with self.patience.with_(self.fileno()):
            return super().wait(*args, **kwargs)


def _connector(patience: Patience) -> Callable[..., psycopg.Connection[Any]]:
    class Bounded(_Bounded):
        pass

    Bounded.patience = patience

    def connect(_dialect: object, _record: object, args: Any, kwargs: dict[str, Any]) -> psycopg.Connection[Any]:  # noqa: ANN401
        connection: psycopg.Connection[Any] = Bounded.connect(*args, **kwargs)
        _refuse_another_encoding(connection)
        return connection

    return connect


def _refuse_another_encoding(connection: psycopg.Connection[Any]) -> None:
    """Before SQLAlchemy asks anything: of a database in SQL_ASCII it is given bytes for text, and takes that ill."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding == "UTF8":
        return
    name = connection.info.dbname
    connection.close()
    raise StoreError(
        f'database "{name}" keeps text in {encoding}; make one in UTF8: createdb --encoding=UTF8 --template=template0'
    )


def _prepare(limits: Limits, connection: psycopg.Connection[Any], _record: object) -> None:
    for name, seconds in (
        ("statement_timeout", limits.statement),
        ("lock_timeout", limits.lock),
        ("idle_in_transaction_session_timeout", limits.idle),
    ):
        connection.execute(f"SET {name} = {round(seconds * 1000)}".encode())
    # So that the server, too, lets go of a machine that vanished, and of the rows and locks that it holds.
    connection.execute(b"SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3")
    connection.commit()
