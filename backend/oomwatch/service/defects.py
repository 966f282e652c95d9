"""Defects of our own: each costs what it concerns and nothing else, is logged, and is counted."""

import contextlib
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomwatch.core.engine import Engine

logger = logging.getLogger(__name__)


class Defects:
    """The count since the start, and which rules are known to be broken."""

    def __init__(self) -> None:
        self.total = 0
        self._broken_rules: set[str] = set()

    def count(self) -> None:
        """One that whoever found it has logged."""
        self.total += 1

    @contextlib.contextmanager
    def going_on(self, doing: str) -> Iterator[None]:
        """What fails in the block is logged and counted; what comes after it goes on."""
        try:
            yield
        except Exception:
            self.count()
            logger.exception("%s failed; everything else goes on", doing)

    def own_up(self, engine: "Engine") -> None:
        """Count the defects of single rules; of each rule in force the first one is in the log."""
        for defect in engine.defects:
            self.count()
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
