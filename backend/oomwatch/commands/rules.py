"""`oomwatch rules list`, `show`, `enable`, `disable`: of a rule file, or of a running server's."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from oomwatch.commands.client import Client, ServerError, client_of
from oomwatch.commands.given import rules_file
from oomwatch.options import SettingError
from oomwatch.ruleedit.file import NotWritableError, Replacement
from oomwatch.ruleedit.marks import EditError
from oomwatch.ruleedit.rows import OverrideRow, RuleRow, rows_of
from oomwatch.ruleedit.switch import Switch, switched
from oomwatch.rulefile import RuleFileError, parse_rules, text_of
from oomwatch.settings import is_shipped
from oomwatch.units import counted, format_duration

FAILED = 1
COLUMNS = ("rule", "severity", "enabled", "for", "keeps firing", "watches")


def run_list(options: argparse.Namespace) -> int:
    """Print a table of the rules. Gives the exit status."""
    return _told(options, lambda rows: _listed(rows, options))


def run_show(options: argparse.Namespace) -> int:
    """Print one rule, at all its severities. Gives the exit status."""
    return _told(options, lambda rows: _shown(rows, options))


def run_enable(options: argparse.Namespace) -> int:
    """Switch a rule on. Gives the exit status."""
    return _switch(options, enabled=True)


def run_disable(options: argparse.Namespace) -> int:
    """Switch a rule off. Gives the exit status."""
    return _switch(options, enabled=False)


# ---------------------------------------------------------------- showing


def _told(options: argparse.Namespace, tell: Callable[[Sequence[RuleRow]], int]) -> int:
    try:
        client = _client(options)
        rows = client.get("/api/v1/rules/all", tuple[RuleRow, ...]) if client else _of_file(options)
    except (RuleFileError, ServerError) as error:
        return _failed(error)
    return tell(rows)


def _client(options: argparse.Namespace) -> Client | None:
    """The server to ask: a file that is named is read here."""
    if options.rules is not None and options.server is not None:
        raise SettingError("give --rules for a file on this machine or --server for a running server, not both")
    return None if options.rules is not None else client_of(options)


def _of_file(options: argparse.Namespace) -> tuple[RuleRow, ...]:
    path = rules_file(options.rules)
    return rows_of(parse_rules(text_of(path), str(path)).rules)


def _listed(rows: Sequence[RuleRow], options: argparse.Namespace) -> int:
    print(_as_json(rows) if options.json else "\n".join(table(rows)))
    return 0


def _as_json(rows: Sequence[RuleRow]) -> str:
    return msgspec.json.encode(rows).decode()


def table(rows: Sequence[RuleRow]) -> list[str]:
    """The lines for a terminal."""
    with_firing = any(row.firing is not None for row in rows)
    lines = [
        (*COLUMNS[:-1], *(["firing"] if with_firing else []), COLUMNS[-1]),
        *(_line(row, with_firing) for row in rows),
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _line(row: RuleRow, with_firing: bool) -> tuple[str, ...]:
    return (
        row.alert,
        row.severity,
        _enabled(row),
        format_duration(row.for_seconds),
        _keeps(row.keep_firing_for_seconds, row.keep_firing_steps),
        *([str(row.firing)] if with_firing else []),
        row.watches,
    )


def _enabled(row: RuleRow) -> str:
    others = sum(one.enabled != row.enabled for one in row.overrides)
    return ("yes" if row.enabled else "no") + (f", {others} otherwise" if others else "")


def _keeps(seconds: float, steps: int) -> str:
    return format_duration(seconds) + (f" or {counted(steps, 'step')}" if steps else "")


def _shown(rows: Sequence[RuleRow], options: argparse.Namespace) -> int:
    found = [row for row in rows if row.alert == options.name and options.severity in (None, row.severity)]
    if not found:
        known = ", ".join(dict.fromkeys(row.alert for row in rows)) or "none"
        return _failed(f'there is no rule "{options.name}"; there are {known}')
    print(_as_json(found) if options.json else "\n\n".join("\n".join(_in_full(row)) for row in found))
    return 0


def _in_full(row: RuleRow) -> list[str]:
    firing = "" if row.firing is None else f", {row.firing} firing now"
    lines = [
        f"{row.alert} ({row.severity}), {'on' if row.enabled else 'OFF'}{firing}",
        f"  judges      {row.scope}",
        f"  when        {row.watches}",
        f"  for         {format_duration(row.for_seconds)}",
        f"  keeps       {_keeps(row.keep_firing_for_seconds, row.keep_firing_steps)}",
    ]
    text = row.texts.get("en")
    if text is not None:
        lines += [f"  says        {text.summary}", *(f"  advises     {one}" for one in text.advice)]
    return [*lines, *(f"  override    {_override(one)}" for one in row.overrides)]


def _override(one: OverrideRow) -> str:
    state = "on" if one.enabled else "OFF"
    return f"node {one.node}, run {one.run}: {state}, for {format_duration(one.for_seconds)}, {one.watches}"


# ---------------------------------------------------------------- switching


def _switch(options: argparse.Namespace, *, enabled: bool) -> int:
    switch = Switch(options.name, enabled, options.severity, options.node, options.run)
    try:
        client = _client(options)
        where = _ask(client, switch) if client else _edit(_own_file(options.rules), switch)
    except RuleFileError as error:
        print(error, file=sys.stderr)
        return FAILED
    except (EditError, NotWritableError, ServerError) as error:
        return _failed(error)
    print(f"{where}: {options.name} is {'on' if enabled else 'off'}{_for_whom(switch)}")
    return 0


def _for_whom(switch: Switch) -> str:
    return "".join(f", {name} {value}" for name, value in switch.match.items())


def _own_file(given: Path | None) -> Path:
    """The file to change. Raises EditError for the one that is shipped, where nobody named it."""
    path = rules_file(given)
    if given is None and is_shipped(path):
        raise EditError(
            f"these are the rules that are shipped ({path}), and an update would undo the change; copy them to "
            "./alerts.yaml and start the server there, or name a file of your own with --rules"
        )
    return path


def _edit(path: Path, switch: Switch) -> str:
    before = text_of(path)
    after = switched(before, switch, str(path))
    if after != before:
        Replacement(path, after, instead_of=before).take()
    return str(path)


def _ask(client: Client, switch: Switch) -> str:
    what = "enable" if switch.enabled else "disable"
    query = {"severity": switch.severity, "node": switch.node, "run": switch.run}
    client.ask("POST", f"/api/v1/rules/{quote(switch.alert, safe='')}/{what}", query)
    return client.server


def _failed(why: object) -> int:
    print(f"oomwatch: {why}", file=sys.stderr)
    return FAILED
