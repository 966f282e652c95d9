"""People who sign in by name, and the sessions of their browsers. Of passwords and sessions only hashes are kept."""

from collections.abc import Mapping

import msgspec
from sqlalchemy import Connection, RowMapping, delete, insert, or_, select, update

from oomwatch.access.person import Session, User
from oomwatch.store.database import Database
from oomwatch.store.schema import sessions, users


class People:
    """Two tables. Every call may raise StoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def users(self, *, removed: bool = False) -> list[User]:
        """Those there are, by name; with those that were removed, too."""
        query = select(users).order_by(users.c.name)
        with self._database.reading() as connection:
            found = [_user(row) for row in connection.execute(query).mappings()]
        return [one for one in found if removed or one.removed_at is None]

    def user(self, name: str) -> User | None:
        """The one of this name, who may have been removed."""
        with self._database.reading() as connection:
            row = connection.execute(select(users).where(users.c.name == name)).mappings().first()
        return _user(row) if row is not None else None

    def has_users(self) -> bool:
        """Whether there ever was one."""
        with self._database.reading() as connection:
            return connection.execute(select(users.c.name).limit(1)).first() is not None

    def keep_user(self, user: User) -> None:
        """Keep one in place of what was kept of that name, and end their sessions: what these know is no longer so."""
        self._database.write(_keep_user, user)

    def renew_hash(self, name: str, old: str, new: str) -> None:
        """The same password, hashed anew; nothing where it was changed meanwhile."""
        self._database.write(_renew_hash, name, old, new)

    def sessions(self) -> list[Session]:
        """All that are kept, whether they are over or not."""
        with self._database.reading() as connection:
            return [_session(row) for row in connection.execute(select(sessions)).mappings()]

    def session(self, digest: str) -> Session | None:
        """One of them."""
        with self._database.reading() as connection:
            row = connection.execute(select(sessions).where(sessions.c.digest == digest)).mappings().first()
        return _session(row) if row is not None else None

    def begin_session(self, session: Session, as_of: User | None = None) -> bool:
        """Somebody has signed in. False, and nothing is kept, where the user is not what it was then any more."""
        return self._database.write(_begin_session, session, as_of)

    def end_session(self, digest: str) -> None:
        """Somebody has signed out."""
        self._database.write(_end_session, digest)

    def use_sessions(self, used_at: Mapping[str, float]) -> None:
        """By id, when they were last used."""
        self._database.write(_use_sessions, used_at)

    def prune_sessions(self, *, created_before: float, used_before: float) -> None:
        """Forget those that began, or were last used, before then."""
        self._database.write(_prune_sessions, created_before, used_before)


def _keep_user(connection: Connection, user: User) -> None:
    connection.execute(delete(users).where(users.c.name == user.name))
    connection.execute(insert(users), [msgspec.structs.asdict(user)])
    connection.execute(delete(sessions).where(sessions.c.name == user.name, sessions.c.door == "password"))


def _renew_hash(connection: Connection, name: str, old: str, new: str) -> None:
    connection.execute(update(users).where(users.c.name == name, users.c.password == old).values(password=new))


def _begin_session(connection: Connection, session: Session, as_of: User | None) -> bool:
    if as_of is not None and not _is_still(connection, as_of):
        return False
    connection.execute(insert(sessions), [msgspec.structs.asdict(session)])
    return True


def _is_still(connection: Connection, user: User) -> bool:
    """Whether nobody changed the user since.

    The row is written, and not only read: whoever changes the user at the same moment at another server then has to
    begin anew, and sees the session that is to be ended (a transaction sees what was there when it began).
    """
    same = (users.c.name == user.name, users.c.changed_at == user.changed_at, users.c.removed_at.is_(None))
    return connection.execute(update(users).where(*same).values(changed_at=users.c.changed_at)).rowcount == 1


def _end_session(connection: Connection, digest: str) -> None:
    connection.execute(delete(sessions).where(sessions.c.digest == digest))


def _use_sessions(connection: Connection, used_at: Mapping[str, float]) -> None:
    for session_id, at in used_at.items():
        connection.execute(
            update(sessions).where(sessions.c.id == session_id, sessions.c.used_at < at).values(used_at=at)
        )


def _prune_sessions(connection: Connection, created_before: float, used_before: float) -> None:
    connection.execute(
        delete(sessions).where(or_(sessions.c.created_at < created_before, sessions.c.used_at < used_before))
    )


def _user(row: RowMapping) -> User:
    return User(**{name: row[name] for name in User.__struct_fields__})


def _session(row: RowMapping) -> Session:
    return Session(**{name: row[name] for name in Session.__struct_fields__})
