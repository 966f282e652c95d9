"""Small helps for portable SQL."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, case
from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

T = TypeVar("T")
MAX_NAMES = 500  # of one IN (...): every database takes that many parameters
Value: TypeAlias = ColumnElement[Any]
Meeting: TypeAlias = Callable[[Value, Value], Value]  # what becomes of what is stored, and of what is new


def pieces(items: Iterable[T], size: int = MAX_NAMES) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    iterator = iter(items)
    while piece := list(islice(iterator, size)):
        yield piece


def put(
    connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]], meetings: Mapping[str, Meeting] = {}
) -> None:
    """Insert the rows; where there is one of that primary key, its values are replaced, or meet as `meetings` say.

    They are written in the order of their keys: two servers that write the same ones wait for each other, and not in a
    circle.
    """
    keys = [column.name for column in table.primary_key]
    ordered = sorted(rows, key=itemgetter(*keys))
    if not ordered:
        return
    insert = _insert(connection, table)
    new = insert.excluded
    values = {name: meetings.get(name, _newest)(table.c[name], new[name]) for name in ordered[0] if name not in keys}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=values), ordered)


def add(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows, in their order, without those that are there already by any of the table's unique keys."""
    if rows:
        connection.execute(_insert(connection, table).on_conflict_do_nothing(), rows)


def lesser(stored: Value, new: Value) -> Value:
    """For put()."""
    return case((new < stored, new), else_=stored)


def greater(stored: Value, new: Value) -> Value:
    """For put()."""
    return case((new > stored, new), else_=stored)


def either(stored: Value, new: Value) -> Value:
    """For put()."""
    return stored | new


def matching(table: Table, wanted: Mapping[str, object]) -> list[ColumnElement[bool]]:
    """A condition for each column that is to have a value; None leaves a column free."""
    return [table.c[name] == value for name, value in wanted.items() if value is not None]


def _newest(_stored: Value, new: Value) -> Value:
    return new


def _insert(connection: Connection, table: Table) -> "postgresql.Insert | sqlite.Insert":
    """SQL's standard knows no such insert, and both engines say it alike."""
    if connection.dialect.name != "postgresql":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - a server on SQLite does without: some MiB

    return postgresql.insert(table)
