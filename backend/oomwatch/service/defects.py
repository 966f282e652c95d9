"""Defects of our own: each costs what it concerns and nothing else, is logged, and is counted."""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomwatch.core.engine import Engine

logger = logging.getLogger(__name__)


UNJUDGED_SECONDS = 300.0  # for so long after its last failure something counts as failing: a step may take minutes


class Defects:
    """The count since the start, which rules are known to be broken, and what was not judged of late."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self.total = 0
        self._steady = steady
        self._broken_rules: set[str] = set()
        self._unjudged_at: dict[str, float] = {}

    def count(self) -> None:
        """One that whoever found it has logged."""
        self.total += 1

    @contextlib.contextmanager
    def going_on(self, doing: str) -> Iterator[None]:
        """What fails in the block is logged and counted; what comes after it goes on."""
        try:
            yield
        except Exception as error:
            self._note(doing, error)

    @contextlib.contextmanager
    def judging(self, what: str) -> Iterator[None]:
        """The same for what an alert may hang on: for a while it is `unjudged`."""
        try:
            yield
        except Exception as error:
            self.note_unjudged(what, error)

    def note_unjudged(self, what: str, error: Exception) -> None:
        """What `judging` does, for who handles the error: a block of its own for each reading costs more than that."""
        self._unjudged_at[what] = self._steady()
        self._note(what, error)

    def _note(self, doing: str, error: Exception) -> None:
        self.count()
        logger.error("%s failed; everything else goes on", doing, exc_info=error)

    def unjudged(self) -> list[str]:
        """What could not be judged within the last five minutes: "the rule NAME", or what `judging` was told."""
        since = self._steady() - UNJUDGED_SECONDS
        self._unjudged_at = {what: at for what, at in self._unjudged_at.items() if at > since}
        return list(self._unjudged_at)

    def own_up(self, engine: "Engine") -> None:
        """Count the defects of single rules; of each rule in force the first one is in the log."""
        for defect in engine.defects:
            self.count()
            self._unjudged_at[f"the rule {defect.rule}"] = self._steady()
            if defect.rule not in self._broken_rules:
                self._broken_rules.add(defect.rule)
                logger.error(
                    "the rule %s cannot be judged of %s; every other rule goes on",
                    defect.rule,
                    " ".join(filter(None, defect.subject)),
                    exc_info=defect.error,
                )
        engine.defects.clear()

    def forgive_rules(self) -> None:
        """Other rules are in force: the log is to hear of their defects anew."""
        self._broken_rules.clear()
        self._unjudged_at.clear()
