"""What the command line of each of these commands looks like. Nothing heavy is loaded for it."""

import argparse
from pathlib import Path

from oomwatch.backtest import KINDS

BACKTEST = """\
Tries rules on runs that are over: what would have fired when, how long before the memory ran out, and how many false
alarms a day. An input is a trace, a training log (verl's console alone is enough), the file logger's JSON lines, what
nvidia-smi printed as CSV, or a table series,t_seconds,used_bytes; the folder of a run is one input. See
docs/howto/backtest.md.

examples:
  oomwatch backtest --rules alerts.yaml driver.log
  oomwatch backtest --capacity 48GiB memory.csv.gz --json > result.json
  oomwatch backtest --rules old.yaml --rules new.yaml runs/* --html compare.html

Exit status: 0 where all inputs were judged, whatever was found; 1 where an input or a rule file cannot be used; 2 where
the command line cannot."""

RECORD = """\
Writes a run that is over (a log, tables of nvidia-smi, a run's folder: whatever oomwatch backtest reads) into a trace,
as if agents had sent it: one file that can be kept, passed on, replayed and backtested.

Without an input it runs the server and records what agents send it, live and exactly, until it is stopped: that is
oomwatch serve --record TRACE, with the settings of the environment and of --config.

examples:
  oomwatch record incident.jsonl runs/qwen7b/
  OOMWATCH_LISTEN=0.0.0.0:8642 oomwatch record tuesday.jsonl

Exit status: 0 where the trace was written; 1 where an input cannot be used or the file is there already."""

REPLAY = """\
Feeds a recording (oomwatch serve --record FILE, or oomwatch record) to the rules and prints what they would have said,
one JSON line a change of state. The same recording and rules give the same lines, byte for byte. Use it to try a rule
on what happened; oomwatch backtest says how good it was."""

TEST = """\
Tests of what a person wrote, before it is trusted."""

RULE_TESTS = """\
Runs tests of rules: YAML files in the form of promtool's, which say what readings come in and which alerts must fire
when. docs/howto/backtest.md

example:
  oomwatch test rules tests/rules/*.yaml

Exit status: 0 where all passed; 1 where one failed or a file has mistakes."""


def add_backtest_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of the command."""
    parser.add_argument(
        "--rules", type=Path, action="append", metavar="FILE",
        help="rule file; without it the one the server would use; given twice, both are compared",
    )  # fmt: skip
    parser.add_argument("--only", action="append", metavar="RULE", help="judge by this rule alone; may be repeated")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a report that needs nothing but a browser")
    parser.add_argument("--progress", action="store_true", help="tell how far it is, on standard error, in any case")
    add_input_flags(parser)


def add_record_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `record`."""
    parser.add_argument("trace", type=Path, metavar="TRACE", help="file to write")
    parser.add_argument("--config", metavar="FILE", help="settings of the server, where no input is named")
    parser.add_argument("--force", action="store_true", help="write over a file that is there already")
    add_input_flags(parser, needed=False)


def add_replay_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `replay`."""
    parser.add_argument("trace", type=Path, help="recording, of oomwatch serve --record or oomwatch record")
    parser.add_argument("--rules", type=Path, metavar="FILE", help="rule file; without it the one the server would use")


def add_rule_test_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `test rules`."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="rule tests, or folders with them")


def add_input_flags(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """The inputs, and what a person can say of them."""
    nargs = "+" if needed else "*"
    parser.add_argument("inputs", nargs=nargs, type=Path, metavar="INPUT", help="a file, the folder of one run, or -")
    for flag, metavar, text in INPUT_FLAGS:
        parser.add_argument(flag, metavar=metavar, help=text)
    parser.add_argument("--kind", choices=tuple(KINDS), help="what the files are, where it is not recognised")
    parser.add_argument("--together", action="store_true", help="the inputs are files of one run")


INPUT_FLAGS = (
    ("--capacity", "SIZE", "size of a card, such as 80GiB, where the input does not tell it"),
    ("--host-memory", "SIZE", "memory of the host, such as 1000GiB, to judge what step lines tell of its use"),
    ("--interval", "TIME", "time between the rows of an nvidia-smi table without times"),
    ("--columns", "NAMES", "columns of an nvidia-smi table without a header: timestamp,index,memory.used,..."),
)
