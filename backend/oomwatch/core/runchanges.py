"""When a run was last restarted or configured anew: what people do when they are warned."""

from collections.abc import Container

from oomwatch import wire
from oomwatch.core.runrecord import RunRecord


class RunChanges:
    """Fed with events that the fleet has taken in. All of it comes again from stored events after a restart."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[dict[str, wire.ConfigValue], int]] = {}  # configuration and number of restarts
        self._at: dict[str, float] = {}

    def observe(self, event: wire.Event, run: RunRecord) -> None:
        """`run` is the event's, as it is now."""
        if not isinstance(event.body, wire.Config | wire.Step):
            return
        now = (run.config, run.steps.restarts)
        before = self._known.setdefault(run.name, now)
        self._known[run.name] = now
        was_configured_anew = bool(before[0]) and before[0] != now[0]
        if not event.backlog and (was_configured_anew or before[1] != now[1]):
            self._at[run.name] = event.at

    def last_at(self, run: str | None) -> float:
        """When that was last; minus infinity where it never was."""
        return self._at.get(run or "", float("-inf"))

    def shift(self, seconds: float) -> None:
        """The server's clock was set by so much."""
        self._at = {run: at + seconds for run, at in self._at.items()}

    def keep_only(self, runs: Container[str]) -> None:
        """Drop all others."""
        self._known = {run: known for run, known in self._known.items() if run in runs}
        self._at = {run: at for run, at in self._at.items() if run in runs}
