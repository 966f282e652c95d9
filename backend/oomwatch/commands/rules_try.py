"""`oomwatch rules try`: what a changed rule file would have done, by the database or by a running server."""

import argparse
import sys
import time
from math import isfinite
from pathlib import Path

import msgspec

from oomwatch.commands.client import Client, ServerError, client_of
from oomwatch.commands.given import rules_file
from oomwatch.commands.stored import opened
from oomwatch.core.rule import RuleSet
from oomwatch.options import SettingError
from oomwatch.oserror import with_place
from oomwatch.rulefile import FILE_BYTES_MAX, RuleFileError, decoded, parse_rules, read_rules, text_of
from oomwatch.store.errors import StoreError
from oomwatch.tryout.attempt import Wanted, attempt
from oomwatch.tryout.recording import NothingChosenError
from oomwatch.tryout.result import Tryout
from oomwatch.tryout.table import table
from oomwatch.units import parse_duration

FAILED = 1
HOURS_MAX = 24.0 * 31
BUDGET_SECONDS_MAX = 3600.0
GRACE_SECONDS = 30.0  # beyond the budget, for the server to start and to answer
PROGRESS_SECONDS = 0.5


def run(options: argparse.Namespace) -> int:
    """Try it, and print what came out. Gives the exit status."""
    wanted = _wanted(options)
    client = None if options.db else client_of(options)
    try:
        found = _ask(client, options, wanted) if client else _try_here(options, wanted)
    except (RuleFileError, StoreError, NothingChosenError, ServerError, OSError) as error:
        print(error if isinstance(error, RuleFileError) else f"oomwatch: {with_place(error)}", file=sys.stderr)
        return FAILED
    print(msgspec.json.encode(found).decode() if options.json else "\n".join(table(found)))
    return 0


def _wanted(options: argparse.Namespace) -> Wanted:
    if not (isfinite(options.hours) and 0 < options.hours <= HOURS_MAX):
        raise SettingError(f"flag --hours: must be more than 0, and {HOURS_MAX:g} at most")
    try:
        budget = float(parse_duration(options.budget))
    except ValueError as error:
        raise SettingError(f"flag --budget: {error}") from error
    if not 1 <= budget <= BUDGET_SECONDS_MAX:
        raise SettingError("flag --budget: must be 1s at least, and an hour at most")
    return Wanted(
        end_at=time.time(),
        hours=options.hours,
        node=options.node,
        run=options.run,
        budget_seconds=budget,
        judge_all=options.all,
    )


def _text(file: str) -> str:
    """Raises RuleFileError."""
    if file != "-":
        return text_of(Path(file))
    content = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
    try:
        return decoded(content)
    except ValueError as error:
        raise RuleFileError.unreadable("standard input", error) from error


def _try_here(options: argparse.Namespace, wanted: Wanted) -> Tryout:
    tried = parse_rules(_text(options.file), "standard input" if options.file == "-" else options.file).rules
    store = opened(options.db, otherwise=", or a server with --server")
    told = _Progress()
    try:
        return attempt(store, tried, _in_force(options), wanted, told=told)
    finally:
        told.end()
        store.close()


def _in_force(options: argparse.Namespace) -> RuleSet | None:
    return None if options.alone else read_rules(rules_file(options.against)).rules


def _ask(client: Client, options: argparse.Namespace, wanted: Wanted) -> Tryout:
    if options.against is not None:
        raise SettingError("flag --against: a server compares with its own rules; leave it out, or use --db")
    query = {
        "hours": wanted.hours,
        "run": wanted.run,
        "node": wanted.node,
        "all": wanted.judge_all,
        "alone": options.alone,
        "budget": wanted.budget_seconds,
    }
    answer = client.ask(
        "POST", "/api/v1/rules/try", query, _text(options.file).encode(),
        headers={"Content-Type": "application/yaml"}, within_seconds=wanted.budget_seconds + GRACE_SECONDS,
    )  # fmt: skip
    return answer.read_as(Tryout)


class _Progress:
    """Tells how far it is on a terminal's last line, twice a second."""

    def __init__(self) -> None:
        self._wanted = sys.stderr.isatty()
        self._told_at = float("-inf")

    def __call__(self, share: float) -> None:
        if self._wanted and time.monotonic() - self._told_at >= PROGRESS_SECONDS:
            self._told_at = time.monotonic()
            print(f"\r{share:.0%} of the time is judged\033[K", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._wanted:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
