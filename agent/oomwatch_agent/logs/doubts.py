"""Why lines that looked like events gave none: counted, for a person who wonders why a log says nothing."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from oomwatch.units import counted

_MOST_REASONS = 12


class Doubts:
    """What was passed over in one log. `telling` are the literals that are worth a word."""

    def __init__(self, telling: Collection[str]) -> None:
        self._telling = telling
        self._in_samples = self._without_traceback = 0
        self._literals: Counter[str] = Counter()

    def in_sample(self) -> None:
        """A line that stands in a printed sample."""
        self._in_samples += 1

    def without_traceback(self) -> None:
        """A line that would be a failure if something else had printed it."""
        self._without_traceback += 1

    def unknown(self, literals: Iterable[str]) -> None:
        """A line with these literals that no pattern recognised."""
        self._literals.update(literal for literal in literals if literal in self._telling)

    def reasons(self) -> Iterator[str]:
        """One sentence for each, the frequent ones first."""
        if self._in_samples:
            yield f"passed over: {counted(self._in_samples, 'line')} in printed samples ([prompt] to [score])"
        if self._without_traceback:
            yield (
                f"passed over: {counted(self._without_traceback, 'line')} with an error, from a process that prints "
                "samples and with no traceback before"
            )
        for literal, count in self._literals.most_common(_MOST_REASONS):
            yield f'not known as a record: {counted(count, "line")} with "{literal}"'
