"""`oomwatch backtest`: what rules would have said of runs that are over."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from oomwatch.backtest.inputs import sources_of
from oomwatch.backtest.result import Comparison, RulesResult
from oomwatch.backtest.run import Tried
from oomwatch.backtest.source import InputError, Source
from oomwatch.backtest.table import side_by_side, table_of
from oomwatch.commands.given import Progress, known_of, rules_file
from oomwatch.core.rule import RuleSet
from oomwatch.options import SettingError
from oomwatch.oserror import with_remedy
from oomwatch.rulefile import RuleFileError, read_rules

FAILED = 1


def run(options: argparse.Namespace) -> int:
    """Judge all inputs by each rule file. Gives the exit status."""
    known = known_of(options)
    try:
        files = [rules_file(path) for path in options.rules or [None]]
        rule_sets = [_only(read_rules(path).rules, options.only, path) for path in files]
        sources = sources_of(options.inputs, known, together=options.together)
        tried = _tried(sources, rule_sets, options)
    except (RuleFileError, InputError) as error:
        print(error, file=sys.stderr)
        return FAILED
    names = [str(path) for path in files]
    if options.html:
        try:
            options.html.write_text(_page(names, tried), encoding="utf-8")
        except OSError as error:
            print(f"{options.html}: cannot be written: {with_remedy(error)}", file=sys.stderr)
            return FAILED
    print(_as_json(names, tried) if options.json else _as_text(names, tried))
    return 0


def _tried(sources: Sequence[Source], rule_sets: Sequence[RuleSet], options: argparse.Namespace) -> list[Tried]:
    told = Progress(wanted=options.progress)
    try:
        return [Tried(sources, rules, with_readings=options.html is not None, told=told) for rules in rule_sets]
    finally:
        told.end()


def _only(rules: RuleSet, names: Sequence[str] | None, path: Path) -> RuleSet:
    """The rules of these names, by alert or by alert and severity ("gpu_memory_high/warning")."""
    if not names:
        return rules
    known = {name for rule in rules.rules for name in (rule.alert, rule.key)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SettingError(f'{path} has no rule "{unknown[0]}"; it has {", ".join(sorted(known))}')
    kept = tuple(rule for rule in rules.rules if rule.alert in names or rule.key in names)
    return msgspec.structs.replace(rules, rules=kept)


def _as_json(names: Sequence[str], tried: Sequence[Tried]) -> str:
    if len(tried) == 1:
        return msgspec.json.encode(tried[0].result).decode()
    results = (
        RulesResult(file=name, inputs=one.result.inputs, summary=one.result.summary)
        for name, one in zip(names, tried, strict=True)
    )
    return msgspec.json.encode(Comparison(rules=tuple(results))).decode()


def _as_text(names: Sequence[str], tried: Sequence[Tried]) -> str:
    results = [one.result for one in tried]
    return table_of(results[0]) if len(results) == 1 else side_by_side(names, results)


def _page(names: Sequence[str], tried: Sequence[Tried]) -> str:
    from oomwatch.backtest.page import page_of  # noqa: PLC0415 - plotly takes longer to load than most inputs to judge

    return page_of(names, [one.result for one in tried], [one.driven for one in tried])
