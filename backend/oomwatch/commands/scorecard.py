"""`oomwatch scorecard`: how good the warnings of each rule were, from a server that runs or from its database."""

import argparse
import os
import sys
import time
from contextlib import closing

import msgspec

from oomwatch.commands.client import Client, ServerError
from oomwatch.commands.stored import opened
from oomwatch.options import SettingError, read_secret
from oomwatch.oserror import with_place
from oomwatch.rulefile import RuleFileError, read_rules
from oomwatch.scorecard import RuleScore, Scorecard, foretold
from oomwatch.settings import Settings, rules_path
from oomwatch.store.errors import StoreError
from oomwatch.units import format_duration, parse_duration

FAILED = 1
ASK_SECONDS = 30.0
COLUMNS = (
    "rule",
    "failures",
    "in time",
    "recall",
    "lead median",
    "lead p10",
    "avoided",
    "false",
    "false/GPU-day",
    "open",
)


def run(options: argparse.Namespace) -> int:
    """Print the scorecard. Gives the exit status."""
    try:
        end = time.time()
        start = end - parse_duration(options.since)
    except ValueError as error:
        raise SettingError(f"flag --since: {error}") from error
    try:
        card = _ask(options, start, end) if options.server else _read(options, start, end)
    except (RuleFileError, StoreError, ServerError, OSError) as error:
        print(error if isinstance(error, RuleFileError) else f"oomwatch: {with_place(error)}", file=sys.stderr)
        return FAILED
    print(msgspec.json.encode(card).decode() if options.json else "\n".join(table(card)))
    return 0


def _ask(options: argparse.Namespace, start: float, end: float) -> Scorecard:
    """Raises ServerError."""
    asked = {"from": start, "to": end, "run": options.run}
    return Client(options.server, _token(options)).ask("GET", "/api/v1/scorecard", asked).read_as(Scorecard)


def _token(options: argparse.Namespace) -> str | None:
    file = options.token_file
    return read_secret(file, "flag --token-file") if file else os.environ.get("OOMWATCH_READER_TOKEN")


def _read(options: argparse.Namespace, start: float, end: float) -> Scorecard:
    predicts = foretold(read_rules(rules_path(Settings(rules=options.rules))).rules)
    with closing(opened(options.db, otherwise=", or a server with --server")) as store:
        return store.scorecard(start, end, options.run, predicts)


def table(card: Scorecard) -> list[str]:
    """The lines for a terminal."""
    rows = [COLUMNS, *(_row(rule) for rule in card.rules)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    told = ", ".join(f"{count} of {channel}" for channel, count in sorted(card.failures.items())) or "none"
    head = f"{card.gpu_days:.1f} GPU-days watched; failures: {told}"
    return [head, "", *("  ".join(map(_placed, row, widths, range(len(row)))).rstrip() for row in rows)]


def _placed(text: str, width: int, column: int) -> str:
    return text.ljust(width) if column == 0 else text.rjust(width)


def _row(rule: RuleScore) -> tuple[str, ...]:
    return (
        f"{rule.alert} ({rule.severity})",
        str(rule.failures),
        str(rule.in_time),
        "-" if rule.recall is None else f"{rule.recall:.0%}",
        _lead(rule.lead_seconds_median, rule.lead_steps_median),
        _lead(rule.lead_seconds_p10, rule.lead_steps_p10),
        str(rule.avoided),
        str(rule.false),
        "-" if rule.false_per_gpu_day is None else f"{rule.false_per_gpu_day:.3f}",
        str(rule.open),
    )


def _lead(seconds: float | None, steps: float | None) -> str:
    if seconds is None:
        return "-"
    lead = format_duration(round(seconds))
    return lead if steps is None else f"{lead}, {steps:g} {'step' if steps == 1 else 'steps'}"
