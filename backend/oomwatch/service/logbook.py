"""Alerts in the server's log: a line when one fires, changes its severity or ends, for who has the log alone."""

import logging
from collections.abc import Callable, Sequence

from oomwatch import wire

logger = logging.getLogger(__name__)

LINES_A_SECOND = 20  # more is a storm: the page and `oomwatch alerts` have it all, and the log shall stay readable
LANGUAGE = "en"  # as everything in the log
CHANGES = ("state", "severity")


class Logbook:
    """`steady` is a clock that is never set, in seconds."""

    def __init__(self, steady: Callable[[], float]) -> None:
        self._steady = steady
        self._second = -1.0
        self._lines = 0

    def note(self, transitions: Sequence[wire.Transition]) -> None:
        """People are being told of these now."""
        for transition in transitions:
            if (
                transition.change in CHANGES
                and transition.state != "pending"
                and not transition.quiet
                and self._has_room()
            ):
                _write(transition)

    def _has_room(self) -> bool:
        second = self._steady() // 1
        self._lines = self._lines + 1 if second == self._second else 1
        self._second = second
        if self._lines == LINES_A_SECOND + 1:
            logger.warning(
                "more alerts change in this second than are logged: `oomwatch alerts --state all` lists them"
            )
        return self._lines <= LINES_A_SECOND


def _write(transition: wire.Transition) -> None:
    text = transition.texts.get(LANGUAGE)
    summary = (
        text.summary if text is not None else ", ".join(f"{key} {name}" for key, name in transition.labels.items())
    )
    where = "simulated: " if transition.simulated else ""
    if transition.state == "firing":
        level = logging.INFO if transition.severity == "info" else logging.WARNING
        logger.log(level, "alert %s, %s: %s%s", transition.alert, transition.severity, where, summary)
    else:
        logger.info("alert %s is over (%s): %s%s", transition.alert, transition.reason or "recovered", where, summary)
