"""What is exported, as rows: the columns of each table, and the rows of some hours at a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from oomwatch import wire
from oomwatch.options import SettingError
from oomwatch.store import chunks, columns, tiers
from oomwatch.store.columns import Columns, Field
from oomwatch.store.store import Store
from oomwatch.store.tables import Place, hours
from oomwatch.store.tiers import RAW_MS

Kind: TypeAlias = Literal["time", "text", "whole", "number"]
Row: TypeAlias = tuple[Any, ...]
Told: TypeAlias = Callable[[float], None]  # up to which moment it is


class Column(NamedTuple):
    name: str
    kind: Kind


class Table(NamedTuple):
    """`batches` gives the rows, some at a time; times are whole milliseconds since 1970."""

    columns: Sequence[Column]
    batches: Callable[[Told], Iterator[list[Row]]]


class Wanted(NamedTuple):
    """What of it. `nodes` None: all of them."""

    start: float
    end: float
    nodes: frozenset[str] | None
    gpus: frozenset[str]  # none: all of them
    run: str | None
    width_ms: int  # RAW_MS, or that of a tier
    only: tuple[str, ...]  # columns; none: all of them

    def has_node(self, node: str | None) -> bool:
        return self.nodes is None or node in self.nodes


class Lacking:
    """How many hours of how many GPUs and hosts were only kept more coarsely than asked for."""

    def __init__(self) -> None:
        self.hours = 0


AT = Column("at_utc", "time")
NODE, GPU, RUN = Column("node", "text"), Column("gpu", "text"), Column("run", "text")
EVENT_COLUMNS = (AT, NODE, RUN, Column("kind", "text"), GPU, Column("backlog", "text"), Column("body", "text"))
TRANSITION_COLUMNS = (
    AT, Column("id", "text"), Column("alert", "text"), Column("severity", "text"), Column("state", "text"),
    Column("change", "text"), Column("started_at_utc", "time"), NODE, GPU, RUN, Column("value", "number"),
    Column("limit", "number"), Column("unit", "text"), Column("document", "text"),
)  # fmt: skip


def readings(store: Store, wanted: Wanted, *, of_gpus: bool, lacking: Lacking) -> Table:
    """The table `gpus` or `hosts`. Raises SettingError for a column that there is not."""
    fields = chunks.all_fields_of("0" if of_gpus else chunks.HOST)
    chosen = [place for place, field in enumerate(fields) if not wanted.only or field.name in wanted.only]
    if not chosen:
        raise SettingError(f"flag --columns: there is none of these; there are {', '.join(one.name for one in fields)}")
    head = [AT, NODE, *([GPU] if of_gpus else [])]
    is_raw = wanted.width_ms == RAW_MS
    shown = _raw_columns(fields, chosen) if is_raw else _rolled_columns(fields, chosen)

    def batches(told: Told) -> Iterator[list[Row]]:
        places = [place for place in store.places() if _is_wanted(place, wanted, of_gpus=of_gpus)]
        for start_ms, end_ms in hours(wanted.start, wanted.end):
            found = store.hour(places, start_ms, end_ms, wanted.width_ms)
            lacking.hours += found.lacking
            for (node, gpu), part in found.parts:
                cells = _raw_cells(fields, chosen, part) if is_raw else _rolled_cells(fields, chosen, part)
                place = (node, gpu) if of_gpus else (node,)
                yield [(at_ms, *place, *row) for at_ms, *row in zip(part.at_ms, *cells, strict=True)]
            told(end_ms / 1000)

    return Table([*head, *shown], batches)


def events(store: Store, wanted: Wanted) -> Table:
    """The table `events`."""

    def batches(told: Told) -> Iterator[list[Row]]:
        for start_ms, end_ms in hours(wanted.start, wanted.end):
            until = (end_ms + 1) / 1000
            found = store.recent_events(start_ms / 1000, until)
            yield [_event_row(node, one) for node, one in found if one.at < until and _is_told(node, one, wanted)]
            told(end_ms / 1000)

    return Table(EVENT_COLUMNS, batches)


def transitions(store: Store, wanted: Wanted) -> Table:
    """The table `transitions`."""

    def batches(told: Told) -> Iterator[list[Row]]:
        for start_ms, end_ms in hours(wanted.start, wanted.end):
            found = store.transitions_between(start_ms / 1000, (end_ms + 1) / 1000)
            yield [_transition_row(one) for one in found if _is_of(one, wanted)]
            told(end_ms / 1000)

    return Table(TRANSITION_COLUMNS, batches)


def _is_wanted(place: Place, wanted: Wanted, *, of_gpus: bool) -> bool:
    node, gpu = place
    if (gpu != chunks.HOST) != of_gpus or not wanted.has_node(node):
        return False
    return not of_gpus or not wanted.gpus or gpu in wanted.gpus


def _raw_columns(fields: Sequence[Field], chosen: Sequence[int]) -> list[Column]:
    return [Column(fields[place].name, _kind(fields[place])) for place in chosen]


def _kind(field: Field) -> Kind:
    return "text" if field.words else "whole" if field.whole else "number"


def _raw_cells(fields: Sequence[Field], chosen: Sequence[int], part: Columns) -> list[Sequence[Any]]:
    return [
        columns.read_back(fields[place], part.values[place]) if place < len(part.values) else [None] * len(part.at_ms)
        for place in chosen
    ]


def _rolled_columns(fields: Sequence[Field], chosen: Sequence[int]) -> list[Column]:
    """A mean of words is none."""
    shown = [Column("readings", "whole")]
    for field in (fields[place] for place in chosen if not fields[place].words):
        shown += [Column(f"{field.name}_{end}", _kind(field)) for end in ("min", "max")]
        shown.append(Column(f"{field.name}_mean", "number"))
    return shown


def _rolled_cells(fields: Sequence[Field], chosen: Sequence[int], part: Columns) -> list[Sequence[Any]]:
    cells: list[Sequence[Any]] = [[int(count) for count in part.values[0]]]
    nothing: Sequence[None] = [None] * len(part.at_ms)
    for place in (place for place in chosen if not fields[place].words):
        rolled = tiers.rolled_field(part, place)
        if rolled is None:
            cells += [nothing] * 3
            continue
        ends = (columns.read_back(fields[place], column) for column in (rolled.low, rolled.high))
        scale = fields[place].per_unit
        means = [mean / scale if count else None for mean, count in zip(rolled.mean, rolled.counts, strict=True)]
        cells += [*ends, means]
    return cells


def _is_told(node: str, event: wire.Event, wanted: Wanted) -> bool:
    if not wanted.has_node(node):
        return False
    return wanted.run is None or event.run in (None, wanted.run)


def _event_row(node: str, event: wire.Event) -> Row:
    body = event.body
    kind = str(body.__struct_config__.tag)
    gpu = getattr(body, "gpu", None)
    return round(event.at * 1000), node, event.run, kind, gpu, _said(event.backlog), wire.encode(body).decode()


def _said(is_so: bool) -> str:
    return "true" if is_so else "false"


def _is_of(transition: wire.Transition, wanted: Wanted) -> bool:
    labels = transition.labels
    if wanted.run is not None and labels.get("run") == wanted.run:
        return True
    return wanted.has_node(labels.get("node")) and (wanted.run is None or "run" not in labels)


def _transition_row(one: wire.Transition) -> Row:
    labels = one.labels
    return (
        round(one.at * 1000), one.id, one.alert, one.severity, one.state, one.change, round(one.started_at * 1000),
        labels.get("node"), labels.get("gpu"), labels.get("run"), one.value, one.limit, one.unit,
        wire.encode(one).decode(),
    )  # fmt: skip
