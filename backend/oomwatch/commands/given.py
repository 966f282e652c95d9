"""What the commands that read runs share: their flags, and what becomes of them."""

import argparse
import sys
import time
from pathlib import Path

from oomwatch.backtest.recording import INTERVAL_SECONDS_MAX
from oomwatch.backtest.source import Known
from oomwatch.commands.size import size_of
from oomwatch.options import SettingError
from oomwatch.settings import Settings, rules_path
from oomwatch.units import parse_duration

_PROGRESS_SECONDS = 0.5


def known_of(options: argparse.Namespace) -> Known:
    """What the flags say. Raises SettingError."""
    return Known(
        capacity_bytes=size_of(options.capacity, "--capacity"),
        host_memory_bytes=size_of(options.host_memory, "--host-memory"),
        interval_seconds=_time(options.interval, "--interval"),
        columns=tuple(name.strip() for name in options.columns.split(",")) if options.columns else (),
        kind=options.kind,
    )


def _time(text: str | None, flag: str) -> float | None:
    try:
        seconds = None if text is None else float(parse_duration(text))
    except ValueError as error:
        raise SettingError(f"flag {flag}: {error}") from error
    if seconds is not None and not 0 < seconds <= INTERVAL_SECONDS_MAX:
        raise SettingError(f"flag {flag}: must be more than 0s, and an hour at most")
    return seconds


def rules_file(path: Path | None) -> Path:
    """The named rule file, or the one that the server would use. Raises SettingError."""
    return rules_path(Settings(rules=path))


class Progress:
    """Tells how far it is on a terminal's last line, twice a second; nobody where nobody looks."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted or sys.stderr.isatty()
        self._told_at = float("-inf")

    def __call__(self, place: int, count: int, name: str, seconds: float) -> None:
        """Input `place` of `count`, and the seconds that have passed in it."""
        if self._wanted and time.monotonic() - self._told_at >= _PROGRESS_SECONDS:
            self._told_at = time.monotonic()
            self._print(f"{place}/{count} {name[-40:]}: {seconds / 3600:.1f} h")

    def end(self) -> None:
        """Leave the line empty for what comes next."""
        if self._wanted:
            self._print("")

    def _print(self, text: str) -> None:
        print(f"\r{text}\033[K", end="", file=sys.stderr, flush=True)
