"""Records that a terminal broke into rows, put together again.

A log that was copied from a terminal is hard-wrapped: a record goes on in the next row, which has no envelope, and the
break may fall into a number. Rows are joined only where that makes more of them: a record that is complete stays as
it is, whatever follows it.
"""

import re
from collections.abc import Callable, Iterator

import msgspec

from oomwatch_agent.logs.envelope import unwrap, without_colours
from oomwatch_agent.logs.pattern import Bodies
from oomwatch_agent.logs.scan import Row

_WIDTHS = range(40, 513)  # of terminals
_MOST_ROWS = 220  # a step line of 8,000 letters at 40 a row
_SURE_AFTER = 2  # joins at one width: from then on a number at a row's end is believed to go on
_BARS = re.compile(r"\d%\|")  # a progress bar is as wide as the terminal, and no part of anything

Recognise = Callable[[str], Bodies]


class Rejoiner:
    """Rows in, records out, in their order. `recognise` gives what a text says without remembering it."""

    def __init__(self, recognise: Recognise) -> None:
        self._recognise = recognise
        self._rows: list[Row] = []
        self._joins: dict[int, int] = {}

    @property
    def waiting(self) -> bool:
        """Whether the next row decides what the last one was."""
        return bool(self._rows)

    def feed(self, row: Row) -> Iterator[Row]:
        """The rows or records that are decided now."""
        if self._rows:
            text = self._continued(row.text)
            if text is not None and len(self._rows) < _MOST_ROWS:
                self._rows.append(row._replace(text=text))
                if not row.complete and self._fills(self._rows[-1]):
                    return
                yield from self.flush()
                return
            yield from self.flush()
        if row.candidate and row.before is not None and self._width_of(row.before) in _WIDTHS:
            self._rows = [Row(row.before, max(0, row.number - 1), row.passed - 1), row._replace(passed=0)]
            if row.complete or not self._fills(row):
                yield from self.flush()
        elif row.candidate and not row.complete and self._width_of(row.text) in _WIDTHS:
            self._rows.append(row)
        else:
            yield row

    def flush(self) -> Iterator[Row]:
        """Whatever is waiting: as one record where the rows say more together, else as they came."""
        rows, self._rows = self._rows, []
        if len(rows) > 1 and (joined := self._joined(rows)) is not None:
            yield joined
        else:
            yield from rows

    def _continued(self, text: str) -> str | None:
        """The row without colours if it can be the middle or the end of the record; else None."""
        width = self._width_of(self._rows[0].text)
        if not text or len(text) > 4 * width:
            return None
        if text[0] in "\x1b([" and unwrap(text).pid is not None:
            return None  # the usual case: every line of a Ray driver's log has its own envelope
        clean = without_colours(text)
        if len(clean) > width + (len(self._rows) == 1) or _BARS.search(clean):
            return None
        return None if unwrap(clean).text != clean.rstrip() or self._recognise(clean) else clean

    def _fills(self, row: Row) -> bool:
        width = max(self._width_of(one.text) for one in self._rows[:2])
        return width - 1 <= len(row.text) <= width

    def _joined(self, rows: list[Row]) -> Row | None:
        width = max(self._width_of(row.text) for row in rows[:2])
        text = "".join(_padded(row.text, width) for row in rows[:-1]) + rows[-1].text
        alone = self._recognise(rows[0].text) or self._recognise(rows[1].text)
        together = self._recognise(text)
        sure = self._joins.get(width, 0) >= _SURE_AFTER and self._width_of(rows[0].text) == width
        if not together or together == alone or not (sure or _richness(together) > _richness(alone)):
            return None
        if len(self._joins) < len(_WIDTHS):
            self._joins[width] = self._joins.get(width, 0) + 1
        return Row(text, rows[0].number, rows[0].passed)

    @staticmethod
    def _width_of(text: str) -> int:
        return len(without_colours(text))


def _padded(text: str, width: int) -> str:
    """A row whose last letter was a space lost it when it was copied."""
    return text + " " if len(without_colours(text)) == width - 1 else text


def _richness(bodies: Bodies) -> int:
    """How many figures there are in all."""
    fields = (msgspec.structs.asdict(body) for body in bodies)
    return sum(
        len(value) if isinstance(value, dict | tuple) else value is not None for one in fields for value in one.values()
    )
