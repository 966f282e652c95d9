"""What has come for a channel and was not looked at yet. To put something by cannot fail, whatever it is. Pure."""

from collections import deque
from typing import TypeAlias

from oomwatch import wire
from oomwatch.notify.outbox import Mail
from oomwatch.notify.route import Target

# Of a channel whose account cannot be read, or whose task is gone. Long ones of all channels together are 140 MiB.
ARRIVALS_MAX = 30_000

Routed: TypeAlias = tuple[wire.Transition, Target | None]
"""A transition, and its route to the channel; None where there is none."""


class Inbox:
    """In the order in which things come, each with the loop's time then. Beyond its room what comes is dropped."""

    def __init__(self) -> None:
        self._arrivals: deque[tuple[Routed | Mail, float]] = deque()
        self.dropped_total = 0  # alerts

    @property
    def has_any(self) -> bool:
        """Whether anything in it is meant for the channel."""
        return any(isinstance(what, Mail) or what[1] is not None for what, _ in self._arrivals)

    def put(self, what: Routed | Mail, now: float) -> None:
        if len(self._arrivals) < ARRIVALS_MAX:
            self._arrivals.append((what, now))
        elif not isinstance(what, Mail) and what[1] is not None:
            self.dropped_total += what[0].state == "firing" and what[0].change == "state"

    def pop(self) -> tuple[Routed | Mail, float] | None:
        """The oldest; None where there is nothing."""
        return self._arrivals.popleft() if self._arrivals else None
