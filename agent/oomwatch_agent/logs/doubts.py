"""Why lines that looked like events gave none: counted, for a person who wonders why a log says nothing."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

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
            yield f"{self._in_samples} lines in printed samples ([prompt] to [score]) were passed over"
        if self._without_traceback:
            yield (
                f"{self._without_traceback} lines with an error were passed over: a process that prints samples wrote "
                "them, and no traceback came before"
            )
        for literal, count in self._literals.most_common(_MOST_REASONS):
            yield f'{count} lines with "{literal}" are no record that is known'
