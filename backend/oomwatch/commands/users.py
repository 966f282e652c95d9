"""`oomwatch user`: people who sign in by name and password."""

import argparse
import getpass
import sys
import time

import msgspec

from oomwatch.access.password import hashed, objection
from oomwatch.access.person import User, name_objection, spelled
from oomwatch.commands.access import RefusedError, with_store
from oomwatch.commands.alerts import moment
from oomwatch.commands.tables import aligned
from oomwatch.options import SettingError
from oomwatch.store.store import Store

COLUMNS = ("NAME", "ROLE", "CREATED", "PASSWORD OF")


def run_add(options: argparse.Namespace) -> int:
    """Make a user. Gives the exit status."""
    name = spelled(options.name)
    wrong = name_objection(name)
    if wrong is not None:
        raise SettingError(f"NAME: {wrong}")

    def work(store: Store) -> None:
        known = store.people.user(name)
        if known is not None and known.removed_at is None:
            raise RefusedError(f'there is a user "{name}" already; oomwatch user password {name} changes the password')
        password, now = _password(options, name), time.time()
        store.people.keep_user(
            User(name=name, role=options.role, password=hashed(password), created_at=now, changed_at=now)
        )
        print(f"{name} may sign in as {options.role}; a running server knows within 2 seconds")

    return with_store(options, work, makes=True)


def run_list(options: argparse.Namespace) -> int:
    """List the users. Gives the exit status."""

    def work(store: Store) -> None:
        users = store.people.users()
        if options.json:
            print(msgspec.json.encode([_shown(user) for user in users]).decode())
        elif users:
            rows = ((one.name, one.role, moment(one.created_at), moment(one.changed_at)) for one in users)
            print("\n".join(aligned([COLUMNS, *rows])))
        else:
            print("no users")

    return with_store(options, work)


def run_remove(options: argparse.Namespace) -> int:
    """Remove a user. Gives the exit status."""

    def work(store: Store) -> None:
        user, now = _named(store, options.name), time.time()
        store.people.keep_user(msgspec.structs.replace(user, password="", removed_at=now))
        print(f"{user.name} is removed, and signed out everywhere")

    return with_store(options, work)


def run_password(options: argparse.Namespace) -> int:
    """Change a password. Gives the exit status."""

    def work(store: Store) -> None:
        user = _named(store, options.name)
        kept = hashed(_password(options, user.name))
        store.people.keep_user(msgspec.structs.replace(user, password=kept, changed_at=time.time()))
        print(f"the password of {user.name} is changed; every browser that signed in by the old one is signed out")

    return with_store(options, work)


def _named(store: Store, name: str) -> User:
    user = store.people.user(spelled(name))
    if user is None or user.removed_at is not None:
        raise RefusedError(f'there is no user "{name}"; oomwatch user list shows all')
    return user


def _password(options: argparse.Namespace, name: str) -> str:
    """Never from the command line, which every user of the machine can read."""
    if options.password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif not sys.stdin.isatty():
        raise RefusedError("there is no terminal to ask for the password on; --password-stdin reads it from a pipe")
    else:
        password = getpass.getpass(f"Password of {name}: ")
        if getpass.getpass("Again: ") != password:
            raise RefusedError("these are two different passwords; nothing is changed")
    wrong = objection(password, name)
    if wrong is not None:
        raise RefusedError(f"{wrong}; nothing is changed")
    return password


def _shown(user: User) -> dict[str, object]:
    return {
        name: value for name, value in msgspec.structs.asdict(user).items() if name not in {"password", "removed_at"}
    }
