"""What a backtest reads: an input with a name, whose lines are those of a trace."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from oomwatch.trace import Line


class InputError(ValueError):
    """An input that cannot be used. The text names the file, the line where there is one, and what would be right."""


class Known(Struct, frozen=True, kw_only=True):
    """What a person says of the inputs, where they do not tell themselves."""

    capacity_bytes: int | None = None  # of every card
    host_memory_bytes: int | None = None
    interval_seconds: float | None = None  # between the rows of a table without times
    columns: tuple[str, ...] = ()  # of an nvidia-smi table without a header
    kind: str | None = None


class Source(Struct, frozen=True, kw_only=True):
    """One input. `lines` reads it anew at each call, and may raise InputError or TraceError.

    `live`: an agent sent it second by second, so that silence in it means something.
    """

    name: str
    lines: Callable[[], Iterator[Line]]
    live: bool = False
    notes: tuple[str, ...] = ()  # what cannot be judged, and why
