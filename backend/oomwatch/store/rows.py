"""Small helps for portable SQL."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, insert, update

T = TypeVar("T")
MAX_NAMES = 500  # of one IN (...): every database takes that many parameters


def pieces(items: Iterable[T], size: int = MAX_NAMES) -> Iterator[list[T]]:
    """The items in lists of at most `size`."""
    iterator = iter(items)
    while piece := list(islice(iterator, size)):
        yield piece


def put(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], known: Iterable[tuple[Any, ...]]
) -> None:
    """Update the rows whose primary key is among `known`, insert the others."""
    keys = [column.name for column in table.primary_key]
    present = set(known)
    old = [row for row in rows if tuple(row[key] for key in keys) in present]
    new = [row for row in rows if tuple(row[key] for key in keys) not in present]
    if new:
        connection.execute(insert(table), new)
    if old:
        same = and_(*(table.c[key] == bindparam(f"key_{key}") for key in keys))
        changed: dict[str, Any] = {name: bindparam(f"new_{name}") for name in old[0] if name not in keys}
        connection.execute(update(table).where(same).values(changed), [_renamed(row, keys) for row in old])


def matching(table: Table, wanted: Mapping[str, object]) -> list[ColumnElement[bool]]:
    """A condition for each column that is to have a value; None leaves a column free."""
    return [table.c[name] == value for name, value in wanted.items() if value is not None]


def _renamed(row: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {("key_" if name in keys else "new_") + name: value for name, value in row.items()}
