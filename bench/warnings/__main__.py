"""The command: runs are made, shown to every detector, and scored."""

import argparse
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import bench.warnings
from bench._options import parser_of
from bench.warnings import report, scenarios
from bench.warnings.detectors import SHIPPED
from bench.warnings.measure import Task, measure
from bench.warnings.report import Result
from bench.warnings.series import measure_series
from bench.warnings.show import show

from oomwatch.core.rule import RuleSet
from oomwatch.rulefile import read_rules

RUNS = 120


def main(arguments: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(arguments)
    if asked.list:
        print(
            "\n".join(f"{name:32} {' '.join((one.__doc__ or '').split())}" for name, one in scenarios.SCENARIOS.items())
        )
        return 0
    rules = read_rules(asked.rules or SHIPPED).rules  # once: the file may change while the runs go on
    if asked.show is not None:
        for line in show(asked.show[0], int(asked.show[1]), rules, asked.trace):
            print(line)
        return 0
    if asked.healthy_series is not None:
        found = measure_series(asked.healthy_series, asked.capacity, asked.detector, rules)
        return _tell(found.text, found.figures, asked.json)
    seeds = scenarios.REPORTING_SEEDS if asked.report else scenarios.TUNING_SEEDS
    print(f"{'reporting' if asked.report else 'tuning'} seeds, {seeds[asked.first]} and on", flush=True)
    results = list(_results(_tasks(asked, seeds, rules), asked.jobs))
    cpu = sum(one.cpu_seconds for one in results) / max(1, len(results))
    figures = {
        "seeds": "reporting" if asked.report else "tuning",
        "summary": report.summary(results),
        "runs": [_plain(one) for one in results],
    }
    return _tell(f"{report.text(results)}\n\n{cpu:.1f} s of CPU a run", figures, asked.json)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(bench.warnings.__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help=f"how many (default {RUNS})")
    parser.add_argument("--first", type=int, default=0, help="how many seeds of the range to leave out")
    parser.add_argument(
        "--only", action="append", default=[], metavar="SCENARIO", help="this scenario alone; repeatable"
    )
    parser.add_argument("--family", help="scenarios of this module alone: healthy, failing_trends, failing_sudden")
    parser.add_argument("--detector", action="append", default=[], help="this one alone, by how its name begins")
    parser.add_argument("--rules", type=Path, help="other rules than the shipped alerts.yaml")
    parser.add_argument("--report", action="store_true", help="the seeds to report on; without it, those to tune on")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="write all figures, and every run, to this file")
    parser.add_argument("--list", action="store_true", help="the scenarios, and what each is")
    parser.add_argument("--show", nargs=2, metavar=("SCENARIO", "SEED"), help="one run, and all that our rules say")
    parser.add_argument("--trace", type=Path, help="with --show: write the run down as a trace")
    parser.add_argument(
        "--healthy-series", type=Path, metavar="CSV", help="series,t_seconds,used_bytes; may be gzipped"
    )
    parser.add_argument("--capacity", default="48GiB", help="of the cards of those series (default 48GiB)")
    return parser


def _tasks(asked: argparse.Namespace, seeds: range, rules: RuleSet) -> list[Task]:
    chosen = seeds[asked.first :]
    unknown = [name for name in asked.only if name not in scenarios.SCENARIOS]
    if unknown:
        raise SystemExit(f"no scenario is called {', '.join(unknown)}: --list names them")
    pool = asked.only or [
        name for name, one in scenarios.SCENARIOS.items() if asked.family in (None, one.__module__.rpartition(".")[2])
    ]
    wanted = tuple(asked.detector)
    if asked.only or asked.family:
        return [Task(pool[place % len(pool)], chosen[place], wanted, rules) for place in range(asked.runs)]
    names = scenarios.names_for(chosen[: asked.runs])
    return [Task(name, chosen[place], wanted, rules) for place, name in enumerate(names)]


def _results(tasks: list[Task], jobs: int) -> Iterator[Result]:
    started = time.monotonic()
    with ExitStack() as stack:
        pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(jobs)) if jobs > 1 else None
        for done, result in enumerate(pool.imap(measure, tasks) if pool else map(measure, tasks), start=1):
            took = time.monotonic() - started
            print(f"\r{done}/{len(tasks)} runs, {took:.0f} s", end="", file=sys.stderr, flush=True)
            yield result
    print(file=sys.stderr)


def _plain(one: Result) -> dict[str, object]:
    verdicts = {name: verdict._asdict() for name, verdict in one.verdicts.items()}
    for verdict in verdicts.values():
        warned = verdict["warned"]
        verdict["warned"] = warned and {**warned._asdict(), "remedies": [each.remedy for each in warned.remedies]}
    return {**one._asdict(), "truth": one.truth._asdict(), "verdicts": verdicts}


def _tell(text: str, figures: object, path: Path | None) -> int:
    print(text)
    if path is not None:
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
