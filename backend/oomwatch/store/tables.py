"""What is stored, an hour at a time, for who takes all of it away: one hour's columns are in memory at once."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
from sqlalchemy import Connection, select

from oomwatch import wire
from oomwatch.store import columns, stretches, tiers
from oomwatch.store.columns import Columns
from oomwatch.store.schema import subjects, transitions
from oomwatch.store.tiers import HOUR_MS, RAW_MS, TIERS

Place: TypeAlias = tuple[str, str]  # node and GPU; "" is the host
_decoder = msgspec.json.Decoder(wire.Transition)


class Hour(NamedTuple):
    """Readings of some places (RAW_MS), or a tier's. `lacking`: of how many places only a coarser tier is left."""

    parts: list[tuple[Place, Columns]]
    lacking: int


def places(connection: Connection) -> list[Place]:
    """Everything of which readings were ever told, by node and label."""
    query = select(subjects.c.node, subjects.c.gpu).order_by(subjects.c.node, subjects.c.gpu)
    return [(row.node, row.gpu) for row in connection.execute(query)]


def hour(connection: Connection, wanted: Sequence[Place], start_ms: int, end_ms: int, width_ms: int) -> Hour:
    """Of an hour or a part of it, both ends within; `width_ms` is RAW_MS or that of a tier."""
    known = {(row.node, row.gpu): row.id for row in connection.execute(select(subjects))}
    ids = {known[place]: place for place in wanted if place in known}
    found = stretches.of(connection, list(ids), start_ms, end_ms, width_ms)
    whole: dict[int, Columns] = {}
    for subject, part in _finest(connection, found, start_ms, end_ms, width_ms):
        whole[subject] = part if subject not in whole else _both(whole[subject], part, width_ms)
    lacking = sum(one.width_ms > width_ms for one in found.values())
    return Hour([(ids[subject], whole[subject]) for subject in ids if subject in whole], lacking)


def _finest(
    connection: Connection, found: dict[int, stretches.Stretches], start_ms: int, end_ms: int, width_ms: int
) -> Iterator[tuple[int, Columns]]:
    raw: dict[int, list[Columns]] = defaultdict(list)
    for subject, part in stretches.raw_parts(connection, found):
        raw[subject].append(columns.between(part, start_ms, end_ms))
    for subject, parts in raw.items():
        whole = columns.merged(parts)
        if whole.at_ms:
            yield subject, whole if width_ms == RAW_MS else tiers.rolled(whole, width_ms)
    for tier in TIERS:
        if tier.width_ms == width_ms:
            yield from (
                (subject, part) for subject, part in stretches.rolled_parts(connection, found, tier) if part.at_ms
            )


def _both(one: Columns, other: Columns, width_ms: int) -> Columns:
    return columns.merged([one, other]) if width_ms == RAW_MS else tiers.joined(one, other)


def transitions_between(connection: Connection, start: float, end: float) -> Iterator[wire.Transition]:
    """Those of a stretch of time, in its order."""
    query = select(transitions.c.document).where(transitions.c.at >= start, transitions.c.at < end)
    yield from map(_decoder.decode, connection.scalars(query.order_by(transitions.c.at, transitions.c.seq)))


def hours(start: float, end: float) -> Iterator[tuple[int, int]]:
    """First and last millisecond of each hour from `start` to `end`, cut to these."""
    begin_ms, last_ms = round(start * 1000), round(end * 1000)
    while begin_ms <= last_ms:
        until_ms = min(last_ms, begin_ms // HOUR_MS * HOUR_MS + HOUR_MS - 1)
        yield begin_ms, until_ms
        begin_ms = until_ms + 1
